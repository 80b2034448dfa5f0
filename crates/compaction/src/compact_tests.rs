//! Tests of the guards of an attempt, which cannot be reached from outside.

use throughline_testkit::{ConversationOptions, conversation_from_seed, from_picture};
use throughline_transcript::{Role, decode_message_text, text_message};

use super::*;
use crate::builtin::RuleSummariser;
use crate::plan::Earlier;
use crate::sections::Section;

fn count(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn count_message(message: &Message) -> u64 {
    count(message.json())
}

fn budgets(window_tokens: u64) -> Budgets {
    Budgets {
        window_tokens,
        threshold_tokens: window_tokens / 2,
        tail_permille: 200,
        tail_tokens: window_tokens / 10,
        stretched_tail_tokens: window_tokens / 10 + window_tokens / 20,
        target_tokens: None,
        head_tokens: window_tokens / 20,
        summary_cap_tokens: window_tokens / 8,
        summary_floor_tokens: 2_000,
        protect_first_n: 3,
        protect_last_n: 20,
    }
}

/// Calls `with` with a conversation and the options of a forced attempt.
fn with_attempt<T>(
    wire_format: WireFormat,
    messages: &[Message],
    window_tokens: u64,
    with: impl FnOnce(&Conversation<'_>, &Options<'_>) -> T,
) -> T {
    let groups = Groups::of(messages);
    let sizes: Vec<u64> = messages.iter().map(count_message).collect();
    let conversation =
        Conversation { wire_format, messages, groups: &groups, sizes: &sizes, ledger: None, fixed_tokens: 0 };
    let budgets = budgets(window_tokens);
    let options = Options {
        force: true,
        focus: None,
        budgets: &budgets,
        prune: PruneRules::default(),
        redactor: None,
        corrections: &[],
        recall: None,
        pay: PayCheck::Skip,
        cut_at: None,
        tells_pinned: false,
        shown_tokens: &|tokens| tokens,
        count_tokens: &count,
        count_message: &count_message,
        clock_us: &|| 0,
    };
    with(&conversation, &options)
}

#[test]
fn a_preview_shows_the_plan_that_is_followed() {
    for wire_format in WireFormat::ALL {
        for seed in 0..120 {
            let list = conversation_from_seed(&ConversationOptions::new(wire_format).at_most_units(40), seed);
            with_attempt(wire_format, &list.messages(), 6_000, |conversation, options| {
                let shown = preview(conversation, options);
                let attempt = pollster::block_on(compact(conversation, options, &RuleSummariser));
                assert_eq!(shown.plan.clone().ok(), attempt.plan, "{wire_format}, seed {seed}");
                assert_eq!(shown.report.plan, attempt.report.plan, "{wire_format}, seed {seed}");
                if let Err(reason) = shown.plan {
                    assert_eq!(attempt.outcome, Outcome::no_op(reason));
                }
            });
        }
    }
}

#[test]
fn facts_gathered_before_change_nothing() {
    for wire_format in WireFormat::ALL {
        for seed in 0..60 {
            let messages =
                conversation_from_seed(&ConversationOptions::new(wire_format).at_most_units(40), seed)
                    .messages();
            with_attempt(wire_format, &messages, 6_000, |conversation, options| {
                let cold = pollster::block_on(compact(conversation, options, &RuleSummariser));
                let ledger = Ledger::of(conversation.messages, conversation.groups, None);
                let live = Conversation { ledger: Some(&ledger), ..*conversation };
                let live = pollster::block_on(compact(&live, options, &RuleSummariser));
                assert_eq!(live.items, cold.items, "{wire_format}, seed {seed}");
            });
        }
    }
}

/// Returns the size of a view that passes the last guard, or the reason why it fails.
fn guarded(wire_format: WireFormat, list: &str, items: &[ViewItem]) -> Result<u64, String> {
    let messages = from_picture(wire_format, list).messages();
    with_attempt(wire_format, &messages, 1_000, |conversation, options| {
        measure(conversation, options, items).map(|measured| measured.tokens)
    })
}

#[test]
fn a_view_that_breaks_a_rule_is_refused() {
    use ViewItem::Verbatim;
    let whole: Vec<ViewItem> = (0..5).map(Verbatim).collect();
    assert!(guarded(WireFormat::Chat, "uATau", &whole).is_ok());
    let parted = [Verbatim(0), Verbatim(2), Verbatim(3)];
    let refused = guarded(WireFormat::Chat, "uATau", &parted).unwrap_err();
    assert!(refused.contains("would break a rule the conversation kept"), "{refused}");
    let leads = [ViewItem::Summary(text_message(WireFormat::Chat, Role::Assistant, "notes")), Verbatim(4)];
    assert!(guarded(WireFormat::Chat, "uATau", &leads).is_err());
    // A rule that was broken before may stay broken.
    assert!(guarded(WireFormat::Chat, "uTau", &[Verbatim(0), Verbatim(1), Verbatim(2)]).is_ok());
    // Invalid items.
    assert!(guarded(WireFormat::Chat, "ua", &[Verbatim(7)]).unwrap_err().contains("message 7"));
    assert!(guarded(WireFormat::Chat, "ua", &[ViewItem::Summary("nonsense".to_owned())]).is_err());
}

#[test]
fn a_head_never_counts_for_more_once_it_is_pruned() {
    for wire_format in WireFormat::ALL {
        for seed in 0..200 {
            let list = conversation_from_seed(&ConversationOptions::new(wire_format).at_most_units(12), seed);
            let messages = list.messages();
            if messages.len() < 2 {
                continue;
            }
            let groups = Groups::of(&messages);
            let ledger = Ledger::of(&messages, &groups, None);
            let end = messages.len() - 1;
            let plan = Plan {
                head: 0..end,
                middle: end..end,
                tail: end..end + 1,
                pinned: None,
                earlier: Earlier::default(),
                summary_role: Role::User,
                acknowledge: false,
            };
            let (renditions, _) = prune(&messages, &plan, &ledger, PruneRules::default());
            let pruned: Vec<Message> = (0..messages.len())
                .map(|at| match renditions.get(&at) {
                    Some(rendition) => decode_message_text(rendition.json.clone()).unwrap(),
                    None => messages[at].clone(),
                })
                .collect();
            let sizes = |list: &[Message]| {
                with_attempt(wire_format, list, 1_000, |conversation, _| {
                    pruned_head_sizes(conversation, usize::MAX, u64::MAX)
                })
            };
            for (at, (before, after)) in sizes(&messages).into_iter().zip(sizes(&pruned)).enumerate() {
                assert!(after <= before, "{wire_format}, seed {seed}, message {at}: {after} after {before}");
            }
        }
    }
}

#[test]
fn an_answer_of_no_use_is_an_error_and_an_honest_nothing_is_none() {
    let nothing = SummaryDocument::default;
    let mut words = SummaryDocument::default();
    words.add(Section::Goal, "word ".repeat(400));
    let is_unusable = |answer| matches!(answer, Err(SummariseError::Unusable(_)));
    assert!(is_unusable(usable(nothing(), Maker::Model, 1_000, &count)));
    assert!(is_unusable(usable(words.clone(), Maker::Model, 500, &count)));
    assert!(usable(words.clone(), Maker::Model, 5_000, &count).is_ok());
    assert!(usable(words, Maker::Rules, 500, &count).is_ok());
    assert!(usable(nothing(), Maker::Rules, 1_000, &count).is_ok());
}

#[test]
fn what_the_head_shows_is_known_and_what_was_pruned_is_not() {
    let long = "hidden_name ".repeat(40);
    let json = [
        text_message(WireFormat::Chat, Role::User, "see first_name"),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"x","arguments":"{\"a\":\"called\\nname_2\"}"}},{"id":"d","type":"function","function":{"name":"x","arguments":"{}"}}]}"#.to_owned(),
        format!(r#"{{"role":"tool","tool_call_id":"c","content":"{long}"}}"#),
        r#"{"role":"tool","tool_call_id":"d","content":"short_name"}"#.to_owned(),
        text_message(WireFormat::Chat, Role::User, "middle_name"),
        text_message(WireFormat::Chat, Role::Assistant, "ok"),
    ];
    let messages: Vec<Message> = json.into_iter().map(|text| decode_message_text(text).unwrap()).collect();
    let groups = Groups::of(&messages);
    let ledger = Ledger::of(&messages, &groups, None);
    let plan = Plan {
        head: 0..4,
        middle: 4..5,
        tail: 5..6,
        pinned: None,
        earlier: Earlier::default(),
        summary_role: Role::User,
        acknowledge: false,
    };
    let (renditions, _) = prune(&messages, &plan, &ledger, PruneRules::default());
    let text = with_attempt(WireFormat::Chat, &messages, 1_000, |conversation, _| {
        shown_text(conversation.messages, &plan, &renditions)
    });
    for (name, shown) in [
        ("first_name", true),
        ("name_2", true),
        ("short_name", true),
        ("hidden_name", false),
        ("middle_name", false),
    ] {
        assert_eq!(text.contains(name), shown, "{name} in {text}");
    }
}
