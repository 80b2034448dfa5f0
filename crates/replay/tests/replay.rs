//! Whole conversations, priced twice.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail their test")]

use throughline_engine::ToolOutputPolicy;
use throughline_provider::CacheTtl;
use throughline_replay::{Bill, Recording, ReplayError, ReplayOptions, SessionReplay, SummaryCost};
use throughline_testkit::big_transcript;
use throughline_tokens::{Catalogue, Economy, LimitPolicy};
use throughline_transcript::{DecodeOptions, Transcript, WireFormat};

fn talk(json: String) -> Recording {
    Recording::of(&Transcript::decode(json.into_bytes(), &DecodeOptions::default()).unwrap())
}

/// A coding session of so many bytes.
fn session(wire_format: WireFormat, bytes: usize) -> Recording {
    talk(big_transcript(wire_format, bytes, bytes / 1_300, 3))
}

fn options(wire_format: WireFormat, window_tokens: u64) -> ReplayOptions {
    let model = if wire_format == WireFormat::Anthropic { "claude-opus-4-5" } else { "gpt-5" };
    ReplayOptions {
        model: model.to_owned(),
        limits: LimitPolicy::for_window(window_tokens),
        ttl: Some(CacheTtl::FiveMinutes),
        tool_output: ToolOutputPolicy { exempt: Vec::new(), ..ToolOutputPolicy::default() },
        summaries: SummaryCost::ByModel,
        catalogue: Catalogue::shipped(),
        summary_wait: None,
        client: None,
        own_tools: Vec::new(),
    }
}

async fn priced(talk: &Recording, options: &ReplayOptions) -> SessionReplay {
    talk.replay(options).await.unwrap()
}

/// The sum holds: buckets add up, and nothing is without a price.
fn sound(bill: &Bill) {
    assert_eq!(bill.unpriced_calls, 0);
    assert!(bill.micro_usd > 0 && bill.largest_prompt_tokens > 0);
    assert!(bill.summaries_micro_usd <= bill.micro_usd);
}

#[tokio::test]
async fn as_long_as_there_is_room_it_costs_no_more_than_the_client_alone() {
    for wire_format in WireFormat::ALL {
        let talk = session(wire_format, 120_000);
        let report = priced(&talk, &options(wire_format, 1_000_000)).await;
        let (without, with) = (&report.without, &report.with);
        sound(without);
        sound(with);
        assert_eq!(with.calls, talk.calls.len() as u64, "{wire_format}");
        assert_eq!((with.calls, with.compactions), (without.calls, 0));
        assert_eq!(with.usage.output, without.usage.output);
        assert_eq!(with.usage.prompt(), without.usage.prompt(), "{wire_format}: the same prompts");
        assert!(
            with.micro_usd <= without.micro_usd,
            "{wire_format}: {} > {}",
            with.micro_usd,
            without.micro_usd
        );
        assert!(with.cache_read_share() > 0.8, "{wire_format}: {}", with.cache_read_share());
        // Only the small prompts of the beginning are not read from the cache.
        let expected = ["first call", "below the minimum"];
        let is_expected = |reason: &&'static str| expected.contains(reason);
        assert!(report.cache_misses.keys().all(is_expected), "{wire_format}: {:?}", report.cache_misses);
    }
}

#[tokio::test]
async fn compactions_keep_prompts_small_and_their_summaries_are_billed() {
    for wire_format in WireFormat::ALL {
        let talk = session(wire_format, 400_000);
        let by_model = options(wire_format, 60_000);
        let by_rules = ReplayOptions { summaries: SummaryCost::Free, ..by_model.clone() };
        let (model, rules) = (priced(&talk, &by_model).await, priced(&talk, &by_rules).await);
        assert!(model.with.compactions > 1, "{wire_format}");
        assert!(model.with.largest_prompt_tokens < model.without.largest_prompt_tokens / 2, "{wire_format}");
        assert!(model.with.summary_calls >= model.with.compactions, "{wire_format}: {:?}", model.with);
        assert!(model.with.summaries_micro_usd > 0);
        assert_eq!(model.with.calls, model.without.calls + model.with.summary_calls, "{wire_format}");
        assert_eq!((rules.with.summary_calls, rules.with.summaries_micro_usd), (0, 0));
        assert_eq!(rules.with.calls, talk.calls.len() as u64);
        assert!(rules.with.micro_usd < model.with.micro_usd);
        // Nothing was compacted in the list, so the client alone pays the same for every writer of summaries.
        assert_eq!(rules.without, model.without);
    }
}

#[tokio::test]
async fn notes_by_a_model_do_not_put_compactions_off() {
    let talk = session(WireFormat::Anthropic, 600_000);
    let mut by_model = options(WireFormat::Anthropic, 200_000);
    by_model.limits.economy = Economy::BALANCED;
    by_model.summary_wait = Some(std::time::Duration::from_secs(2));
    let by_rules = ReplayOptions { summaries: SummaryCost::Free, ..by_model.clone() };
    let (model, rules) = (priced(&talk, &by_model).await, priced(&talk, &by_rules).await);
    assert!(rules.with.compactions > 2, "{:?}", rules.with);
    assert!(model.with.summary_calls > 0, "{:?}", model.with);
    assert!(model.with.compactions * 10 >= rules.with.compactions * 9, "{:?} {:?}", model.with, rules.with);
    // They are paid from what was saved.
    assert!(model.worst_permille <= 1_050, "{}", model.worst_permille);
    assert!(model.with.micro_usd * 100 <= model.without.micro_usd * 103);
}

#[tokio::test]
async fn the_same_conversation_costs_the_same_again() {
    let talk = session(WireFormat::Anthropic, 300_000);
    let options = ReplayOptions { summaries: SummaryCost::Free, ..options(WireFormat::Anthropic, 60_000) };
    let (first, second) = (priced(&talk, &options).await, priced(&talk, &options).await);
    assert_eq!(first.with, second.with);
    assert_eq!(first.without, second.without);
}

/// A session in which the model reads a long file and later uses a name that stands in the middle of it.
fn long_read(uses: &str) -> Recording {
    let words: String = (0..400).map(|n| format!("plain words about nothing {n}\\n")).collect();
    let file = format!("{words}fn decode_header()\\n{words}");
    let read = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a.rs"}}]}"#;
    let result = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{file}"}}]}}"#
    );
    let text = |role: &str, text: &str| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
    let mut list =
        vec![text("user", "Read a.rs"), read.to_owned(), result, text("assistant", "I have read it.")];
    for turn in 0..20 {
        list.push(text("user", &format!("Go on with part {turn}")));
        list.push(text("assistant", &format!("Done with it. {uses}")));
    }
    talk(format!("[{}]", list.join(",")))
}

#[tokio::test]
async fn long_results_are_set_aside_and_read_again_when_they_are_needed() {
    let mut options = options(WireFormat::Anthropic, 200_000);
    let whole = priced(&long_read("Nothing else."), &options).await;
    options.limits.tool_result_chars = 8_000;
    let unused = priced(&long_read("Nothing else."), &options).await;
    assert_eq!((unused.with.set_aside, unused.with.reread_calls), (1, 0));
    assert!(unused.with.micro_usd < whole.with.micro_usd);
    assert_eq!(whole.with.set_aside, 0);
    let used = priced(&long_read("I changed decode_header."), &options).await;
    assert_eq!((used.with.set_aside, used.with.reread_calls), (1, 1), "once, however often it is used");
    assert_eq!(used.with.calls, used.without.calls + 1);
    assert!(used.with.micro_usd > unused.with.micro_usd);
}

#[tokio::test]
async fn a_model_without_a_price_is_counted_and_not_guessed() {
    let talk = session(WireFormat::Chat, 60_000);
    let nameless = ReplayOptions { model: "house-model-7".to_owned(), ..options(WireFormat::Chat, 200_000) };
    let report = priced(&talk, &nameless).await;
    assert_eq!(report.with.unpriced_calls, report.with.calls);
    assert_eq!((report.with.micro_usd, report.without.micro_usd), (0, 0));
    assert!(report.with.usage.prompt() > 0);
}

#[tokio::test]
async fn what_cannot_be_replayed_says_why() {
    let nothing = talk(r#"[{"role":"user","content":"Hello"}]"#.to_owned());
    let error = nothing.replay(&options(WireFormat::Chat, 200_000)).await.unwrap_err();
    assert!(matches!(error, ReplayError::NoCalls));
    let tiny = session(WireFormat::Anthropic, 60_000)
        .replay(&options(WireFormat::Anthropic, 100))
        .await
        .unwrap_err();
    assert!(tiny.to_string().contains("window"), "{tiny}");
}
