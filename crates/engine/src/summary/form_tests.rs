//! Tests of the choice of the cheaper form, and of its description.

use super::*;

const AT_MS: i64 = 1_794_787_200_000;

fn facts(inline: Result<(u64, u64), InlineObstacle>, standalone_tokens: u64) -> FormFacts<'static> {
    FormFacts {
        model: "some-local-model",
        provider: "llama.cpp",
        at_ms: AT_MS,
        answer_tokens: 1_000,
        inline,
        standalone_tokens,
        standalone_calls: 1,
    }
}

#[test]
fn a_warm_cache_is_ridden_on_and_a_cold_one_is_not() {
    use SummaryForm::{Inline, Standalone};
    let cases = [
        // Cached, new, standalone.
        ("warm", Ok((100_000, 700)), 60_000, Inline),
        ("cold", Ok((0, 100_700)), 60_000, Standalone),
        ("warm, but little is compacted", Ok((100_000, 700)), 5_000, Standalone),
        ("not possible", Err(InlineObstacle::NotSent), 60_000, Standalone),
    ];
    for (name, inline, standalone_tokens, form) in cases {
        assert_eq!(choose_form(&facts(inline, standalone_tokens)).form, form, "{name}");
    }
}

#[test]
fn answers_of_several_parts_count() {
    let one = facts(Ok((100_000, 700)), 9_000);
    assert_eq!(choose_form(&one).form, SummaryForm::Standalone);
    let four = FormFacts { standalone_calls: 4, ..one };
    assert_eq!(choose_form(&four).form, SummaryForm::Inline);
}

#[test]
fn money_decides_where_there_are_prices() {
    let facts =
        FormFacts { model: "claude-sonnet-4-5", provider: "anthropic", ..facts(Ok((90_000, 800)), 40_000) };
    let choice = choose_form(&facts);
    assert_eq!(choice.form, SummaryForm::Inline);
    let (inline, standalone) =
        (choice.inline.unwrap().micro_usd.unwrap(), choice.standalone.micro_usd.unwrap());
    assert!(inline < standalone, "{inline} {standalone}");
    assert_eq!(
        choice.to_string(),
        "riding (riding: 800 tokens new, 90000 from the cache, 1000 answered, $0.044400; \
         apart: 40000 tokens new, 0 from the cache, 1000 answered, $0.135000)"
    );
}

#[test]
fn why_not_is_said() {
    let choice = choose_form(&facts(Err(InlineObstacle::NoRoom), 40_000));
    assert_eq!(
        choice.to_string(),
        "apart (riding: not possible, the window has no room for it; \
         apart: 40000 tokens new, 0 from the cache, 1000 answered)"
    );
}
