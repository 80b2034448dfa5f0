//! The output of `usage`.

use throughline_store::UsageOverview;
use throughline_tokens::Usage;

use super::*;
use crate::record::test_samples::{plain, session, total, widest};

const USAGE: Usage =
    Usage { input: 1_200, output: 31_000, cache_read: 1_000_000, cache_write: 70_000, reasoning: 10_000 };

fn page(total: UsageTotal) -> UsagePage<'static> {
    UsagePage {
        session: None,
        context: None,
        savings: None,
        calls: UsageOverview {
            by_model: vec![
                UsageTotal { group: "gpt-5.2".to_owned(), unpriced: 2, calls: 2, ..UsageTotal::default() },
                UsageTotal { group: "claude-opus-4-6".to_owned(), ..total.clone() },
            ],
            by_task: vec![UsageTotal { group: "chat".to_owned(), ..total.clone() }],
            by_program: Vec::new(),
            by_cache_miss: vec![
                UsageTotal { group: "expired".to_owned(), calls: 3, usage: USAGE, ..UsageTotal::default() },
                UsageTotal { group: "first call".to_owned(), calls: 1, ..UsageTotal::default() },
            ],
            total,
        },
    }
}

#[test]
fn tokens_cost_and_what_the_cache_saved() {
    let mut sum = total("", 132, USAGE, 12_400_000, 80_100_000);
    sum.failed = 2;
    sum.unpriced = 2;
    let shown = render(&page(sum), 80);
    assert!(widest(&shown) <= 80);
    insta::assert_snapshot!(plain(&shown));
}

#[test]
fn usage_tells_what_the_same_requests_would_have_cost_directly() {
    let shown = |direct_micro_usd| {
        let paid = SavingsTotal { paid_micro_usd: 2_000_000, direct_micro_usd, ..SavingsTotal::default() };
        let sum = total("", 1, USAGE, 2_000_000, 2_000_000);
        plain(&render(&UsagePage { savings: Some(paid), ..page(sum) }, 120))
    };
    assert!(shown(5_000_000).contains("would have cost about $5.00: $3.00 saved"), "{}", shown(5_000_000));
    assert!(shown(1_000_000).contains("would have cost about $1.00: $1.00 less"));
    assert!(!shown(2_000_000).contains("directly"));
}

#[test]
fn estimated_figures_are_marked() {
    let mut sum = total("", 5, USAGE, 1_000_000, 1_000_000);
    sum.estimated = 3;
    let shown = plain(&render(&page(sum), 80));
    assert!(shown.contains("(3 with estimated tokens)") && shown.contains("~1,000,000"), "{shown}");
}

#[test]
fn a_cache_that_did_not_pay_says_so() {
    let dear = total("", 1, USAGE, 1_250_000, 1_000_000);
    assert_eq!(
        saving_words(&dear).unwrap(),
        "without a cache the same calls would have cost $1.00: the cache cost $0.25 more than it saved"
    );
    assert_eq!(saving_words(&total("", 1, USAGE, 5, 5)), None);
}

#[test]
fn without_prices_no_sum_is_invented() {
    let mut sum = total("", 3, USAGE, 0, 0);
    sum.unpriced = 3;
    let own = [total("a-model-of-my-own", 3, USAGE, 0, 0)];
    assert_eq!(cost_lines(&sum, &own), ["unknown: the price list does not have these models"]);
    // The model has a list price, but not at the provider that was called.
    let elsewhere = [total("claude-sonnet-4-5", 3, USAGE, 0, 0)];
    assert_eq!(
        cost_lines(&sum, &elsewhere),
        ["unknown: the price list has these models, but not for the endpoint used"]
    );
}

#[test]
fn a_session_without_calls_says_so() {
    let session = session(1, "2026-11-15T09:00:00Z");
    let mut page = page(UsageTotal::default());
    page.session = Some(&session);
    insta::assert_snapshot!(plain(&render(&page, 80)));
}
