//! Tests of each published caching rule with figures computed by hand, then of the same rules through whole requests.

use throughline_tokens::{Catalogue, PricedCall, Usage};
use throughline_transcript::WireFormat;
use throughline_wire::Request;

use super::*;

const MINUTE_MS: i64 = 60_000;
const M5: Option<CacheTtl> = Some(CacheTtl::FiveMinutes);
const H1: Option<CacheTtl> = Some(CacheTtl::OneHour);

/// Positions of blocks of a thousand tokens each; the blocks in `marked` carry these marks.
fn thousands(blocks: usize, marked: &[(usize, Option<CacheTtl>)]) -> Vec<Position> {
    let position = |index: usize| Position {
        chain: pieces::test_chain(index),
        end_tokens: 1_000 * (index as u64 + 1),
        mark: marked.iter().find(|(at, _)| *at == index).and_then(|(_, mark)| *mark),
    };
    (0..blocks).map(position).collect()
}

fn marks() -> PrefixCache {
    PrefixCache::new(CacheStyle::Marks)
}

/// Sends a prompt with an immediate answer; returns the tokens read, written, written for an hour, and neither.
fn call(cache: &mut PrefixCache, positions: &[Position], at_ms: i64) -> (u64, u64, u64, u64) {
    let prompt = cache.ask_marked(positions, 1_024, at_ms);
    cache.answer_began(&prompt, at_ms);
    figures(&prompt)
}

fn figures(prompt: &PricedPrompt) -> (u64, u64, u64, u64) {
    let ReportedUsage { usage, cache_write_1h } = prompt.reported;
    (usage.cache_read, usage.cache_write, cache_write_1h, usage.input)
}

#[test]
fn what_is_marked_is_written_once_and_read_from_then_on() {
    let mut cache = marks();
    // Ten blocks, the mark on the ninth: nine thousand tokens are written, the last block is plain input.
    assert_eq!(call(&mut cache, &thousands(10, &[(8, M5)]), 0), (0, 9_000, 0, 1_000));
    // Two more blocks, the mark on the twelfth: it finds the entry three blocks back and writes three more.
    assert_eq!(call(&mut cache, &thousands(12, &[(11, M5)]), 0), (9_000, 3_000, 0, 0));
    assert_eq!(call(&mut cache, &thousands(12, &[(11, M5)]), 0), (12_000, 0, 0, 0));
}

#[test]
fn without_a_mark_nothing_is_read_or_written() {
    let mut cache = marks();
    call(&mut cache, &thousands(4, &[(3, M5)]), 0);
    assert_eq!(call(&mut cache, &thousands(4, &[]), 0), (0, 0, 0, 4_000));
}

#[test]
fn a_mark_looks_back_twenty_blocks_itself_included() {
    let mut cache = marks();
    call(&mut cache, &thousands(10, &[(9, M5)]), 0);
    // The entry is at block 9; a mark at 28 looks at 28 down to 9.
    assert_eq!(call(&mut cache, &thousands(29, &[(28, M5)]), 0), (10_000, 19_000, 0, 0));
    let mut cache = marks();
    call(&mut cache, &thousands(10, &[(9, M5)]), 0);
    // A mark at 29 looks at 29 down to 10: everything is paid again.
    assert_eq!(call(&mut cache, &thousands(30, &[(29, M5)]), 0), (0, 30_000, 0, 0));
}

#[test]
fn a_mark_in_between_bridges_a_long_turn() {
    let mut cache = marks();
    call(&mut cache, &thousands(10, &[(9, M5)]), 0);
    let bridged = thousands(60, &[(9, M5), (59, M5)]);
    assert_eq!(call(&mut cache, &bridged, 0), (10_000, 50_000, 0, 0));
}

#[test]
fn entries_live_five_minutes_after_their_last_use() {
    let mut cache = marks();
    let prompt = thousands(4, &[(3, M5)]);
    assert_eq!(call(&mut cache, &prompt, 0), (0, 4_000, 0, 0));
    // Read at four minutes, which renews it for five more.
    assert_eq!(call(&mut cache, &prompt, 4 * MINUTE_MS), (4_000, 0, 0, 0));
    assert_eq!(call(&mut cache, &prompt, 9 * MINUTE_MS - 1), (4_000, 0, 0, 0));
    assert_eq!(call(&mut cache, &prompt, 15 * MINUTE_MS), (0, 4_000, 0, 0));
}

#[test]
fn an_hour_is_an_hour_and_written_apart() {
    let mut cache = marks();
    let prompt = thousands(4, &[(3, H1)]);
    assert_eq!(call(&mut cache, &prompt, 0), (0, 4_000, 4_000, 0));
    assert_eq!(call(&mut cache, &prompt, 59 * MINUTE_MS), (4_000, 0, 0, 0));
    assert_eq!(call(&mut cache, &prompt, 119 * MINUTE_MS), (0, 4_000, 4_000, 0));
}

#[test]
fn mixed_lifetimes_are_written_up_to_each_mark() {
    let mut cache = marks();
    // For an hour up to block 1, for five minutes up to block 5, plain input after it.
    let first = thousands(8, &[(1, H1), (5, M5)]);
    assert_eq!(call(&mut cache, &first, 0), (0, 6_000, 2_000, 2_000));
    // Ten minutes later only the hour's entry is left: two thousand read, four thousand written for five minutes again.
    assert_eq!(call(&mut cache, &first, 10 * MINUTE_MS), (2_000, 4_000, 0, 2_000));
}

#[test]
fn a_mark_inside_what_is_read_stays_alive_with_it() {
    let mut cache = marks();
    let prompt = |blocks: usize| thousands(blocks, &[(1, M5), (blocks - 1, M5)]);
    call(&mut cache, &prompt(4), 0);
    call(&mut cache, &prompt(5), 4 * MINUTE_MS);
    // At eight minutes the messages differ and the system prompt is the same: block 1 was renewed at four.
    let mut compacted = prompt(6);
    for position in compacted.iter_mut().skip(2) {
        position.chain = pieces::test_chain(position.end_tokens as usize + 1_000);
    }
    assert_eq!(call(&mut cache, &compacted, 8 * MINUTE_MS), (2_000, 4_000, 0, 0));
}

#[test]
fn prefixes_below_the_minimum_are_not_cached() {
    let mut cache = marks();
    let small = thousands(3, &[(0, M5)]);
    assert_eq!(call(&mut cache, &small, 0), (0, 0, 0, 3_000));
    assert_eq!(call(&mut cache, &small, 0), (0, 0, 0, 3_000));
    // At two thousand it is above 1,024.
    assert_eq!(call(&mut cache, &thousands(3, &[(1, M5)]), 0), (0, 2_000, 0, 1_000));
}

#[test]
fn an_entry_can_be_read_once_the_answer_has_begun() {
    let mut cache = marks();
    let prompt = thousands(4, &[(3, M5)]);
    let first = cache.ask_marked(&prompt, 1_024, 0);
    let meanwhile = cache.ask_marked(&prompt, 1_024, 10);
    assert_eq!(figures(&meanwhile), (0, 4_000, 0, 0));
    cache.answer_began(&first, 20);
    assert_eq!(figures(&cache.ask_marked(&prompt, 1_024, 30)), (4_000, 0, 0, 0));
}

#[test]
fn money_follows_the_multipliers() {
    // Claude Opus 4.5: 5 dollars a million for input; writes 1.25 times and twice, reads a tenth.
    let catalogue = Catalogue::shipped();
    let micro_usd = |prompt: &PricedPrompt| {
        let ReportedUsage { usage, cache_write_1h } = prompt.reported;
        let call =
            PricedCall { model: "claude-opus-4-5", provider: "anthropic", at_ms: 0, usage, cache_write_1h };
        catalogue.cost(&call).micro_usd
    };
    let mut cache = marks();
    let (short, long) = (thousands(8, &[(7, M5)]), thousands(8, &[(7, H1)]));
    assert_eq!(micro_usd(&cache.ask_marked(&thousands(8, &[]), 1_024, 0)), Some(40_000));
    assert_eq!(micro_usd(&cache.ask_marked(&long, 1_024, 0)), Some(80_000));
    let first = cache.ask_marked(&short, 1_024, 0);
    assert_eq!(micro_usd(&first), Some(50_000));
    cache.answer_began(&first, 0);
    assert_eq!(micro_usd(&cache.ask_marked(&short, 1_024, 1)), Some(4_000));
}

/// A cache without marks: tokens read, written, neither.
fn automatic(cache: &mut PrefixCache, positions: &[Position], at_ms: i64, charges: bool) -> (u64, u64, u64) {
    let rules = AutomaticCache { minimum_tokens: 1_024, lifetime_ms: 5 * MINUTE_MS, charges_writes: charges };
    let prompt = cache.ask_unmarked(positions, rules, at_ms);
    cache.answer_began(&prompt, at_ms);
    let (read, write, _, input) = figures(&prompt);
    (read, write, input)
}

#[test]
fn without_marks_prefixes_are_read_in_steps_of_128_from_1024_on() {
    let mut cache = PrefixCache::new(CacheStyle::AUTOMATIC);
    assert_eq!(automatic(&mut cache, &thousands(1, &[]), 0, false), (0, 0, 1_000));
    assert_eq!(automatic(&mut cache, &thousands(2, &[]), 0, false), (0, 0, 2_000));
    // 2,000 are 15 steps and a remainder: 1,920.
    assert_eq!(automatic(&mut cache, &thousands(3, &[]), 0, false), (1_920, 0, 1_080));
    // The same again: 3,000 are 23 steps, 2,944.
    assert_eq!(automatic(&mut cache, &thousands(3, &[]), 0, false), (2_944, 0, 56));
    // A common prefix of a thousand tokens is below the minimum.
    let mut other = thousands(3, &[]);
    for position in other.iter_mut().skip(1) {
        position.chain = pieces::test_chain(900 + position.end_tokens as usize);
    }
    assert_eq!(automatic(&mut cache, &other, 0, false), (0, 0, 3_000));
}

#[test]
fn without_marks_entries_die_too_and_writes_cost_where_they_are_priced() {
    let mut cache = PrefixCache::new(CacheStyle::AUTOMATIC);
    assert_eq!(automatic(&mut cache, &thousands(4, &[]), 0, true), (0, 3_968, 32));
    assert_eq!(automatic(&mut cache, &thousands(5, &[]), 4 * MINUTE_MS, true), (3_968, 1_024, 8));
    assert_eq!(automatic(&mut cache, &thousands(5, &[]), 10 * MINUTE_MS, true), (0, 4_992, 8));
    let charged = |model| rules::CacheWrites::AsPriced.charged_for(&Catalogue::shipped(), model, 0);
    assert!(charged("gpt-5.6") && !charged("gpt-5"));
    assert!(!rules::CacheWrites::Free.charged_for(&Catalogue::shipped(), "gpt-5.6", 0));
}

// Through whole requests.

/// Returns a text of many tokens that is different for each number.
fn words(seed: usize) -> String {
    (0..400).map(|word| format!("word{} of {seed}, ", word * 7 + seed)).collect()
}

fn text(seed: usize) -> String {
    format!(r#"{{"type":"text","text":"{}"}}"#, words(seed))
}

fn marked(block: &str) -> String {
    let open = block.strip_suffix('}').unwrap();
    format!(r#"{open},"cache_control":{{"type":"ephemeral"}}}}"#)
}

fn anthropic(body: &str) -> Request {
    Request::decode(WireFormat::Anthropic, body.as_bytes()).unwrap()
}

/// A request with marks on the tool, the system prompt and the last message, and these additional members.
fn three_marks(tool: usize, system: usize, message: usize, more: &str) -> String {
    let tool_json =
        format!(r#"{{"name":"look","description":"{}","input_schema":{{"type":"object"}}}}"#, words(tool));
    format!(
        r#"{{"model":"claude-opus-5","max_tokens":100,"tools":[{}],"system":[{}],"messages":[{{"role":"user","content":[{}]}}]{more}}}"#,
        marked(&tool_json),
        marked(&text(system)),
        marked(&text(message)),
    )
}

fn ask(cache: &mut PrefixCache, body: &str) -> Usage {
    let prompt = cache.ask(&anthropic(body), 0).unwrap();
    cache.answer_began(&prompt, 0);
    prompt.reported.usage
}

/// Returns which of tools, system and messages are still read after a change.
fn survivors(change: &str, before: &str) -> &'static str {
    let mut cache = marks();
    let all = ask(&mut cache, before);
    assert_eq!((all.cache_read, all.input), (0, 0), "everything is marked");
    let again = ask(&mut cache, before);
    assert_eq!(again.cache_read, all.cache_write, "nothing changed, so everything is read");
    let read = ask(&mut cache, change).cache_read;
    let part = all.cache_write / 3;
    match read {
        0 => "nothing",
        _ if read == all.cache_write => "all",
        _ if read.abs_diff(part) < part / 4 => "tools",
        _ if read.abs_diff(2 * part) < part / 4 => "tools and system",
        other => panic!("{other} of {} read", all.cache_write),
    }
}

#[test]
fn what_changes_voids_what_stands_behind_it() {
    let before = three_marks(1, 2, 3, "");
    let with = |more: &str| three_marks(1, 2, 3, more);
    let table = [
        (three_marks(9, 2, 3, ""), "nothing"),
        (before.replace("claude-opus-5", "claude-opus-4-8"), "nothing"),
        (three_marks(1, 9, 3, ""), "tools"),
        (with(r#","speed":"fast""#), "tools"),
        (
            before.replace(r#""tools":["#, r#""tools":[{"type":"web_search_20260209","name":"web_search"},"#),
            "tools",
        ),
        (
            before.replace(
                r#"{"role":"user","content":["#,
                r#"{"role":"user","content":[{"type":"document","source":{"type":"text","data":"x"},"citations":{"enabled":true}},"#,
            ),
            "tools",
        ),
        (three_marks(1, 2, 9, ""), "tools and system"),
        (with(r#","tool_choice":{"type":"any"}"#), "tools and system"),
        (with(r#","thinking":{"type":"adaptive"}"#), "tools and system"),
        (
            before.replace(
                r#"}]}]}"#,
                r#"}]},{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]}]}"#,
            ),
            "tools and system",
        ),
        (with(r#","temperature":0.5,"stream":true"#), "all"),
        (before.replace(r#""max_tokens":100"#, r#""max_tokens":200"#), "all"),
    ];
    for (change, expected) in table {
        assert_ne!(change, before);
        let short: String = change.chars().filter(|c| !c.is_ascii_digit()).take(200).collect();
        assert_eq!(survivors(&change, &before), expected, "{short}");
    }
}

#[test]
fn a_text_is_the_same_as_a_string_and_as_a_block_and_marks_may_move() {
    let mut cache = marks();
    let with_messages =
        |messages: &str| format!(r#"{{"model":"claude-opus-5","max_tokens":9,"messages":[{messages}]}}"#);
    let block = format!(r#"{{"role":"user","content":[{}]}}"#, marked(&text(1)));
    let string = format!(r#"{{"role":"user","content":"{}"}}"#, words(1));
    let answer = r#"{"role":"assistant","content":"Yes."}"#;
    let next = format!(r#"{{"role":"user","content":[{}]}}"#, marked(&text(2)));
    let first = ask(&mut cache, &with_messages(&block));
    let second = ask(&mut cache, &with_messages(&[string.as_str(), answer, &next].join(",")));
    assert_eq!(second.cache_read, first.cache_write);
    assert!(second.cache_write > 0 && second.input == 0);
}

#[test]
fn a_mark_for_the_whole_request_goes_to_the_last_block_that_takes_one() {
    let mut cache = marks();
    let body = format!(
        r#"{{"model":"claude-opus-5","max_tokens":9,"cache_control":{{"type":"ephemeral"}},"messages":[{{"role":"user","content":"{}"}}]}}"#,
        words(1)
    );
    let first = ask(&mut cache, &body);
    assert!(first.cache_write > 0 && first.input == 0);
    assert_eq!(ask(&mut cache, &body).cache_read, first.cache_write);
}

#[test]
fn marks_that_providers_refuse_are_refused() {
    let with_blocks = |blocks: &str| {
        format!(
            r#"{{"model":"claude-opus-5","max_tokens":9,"messages":[{{"role":"user","content":[{blocks}]}}]}}"#
        )
    };
    let five = vec![marked(&text(1)); 5].join(",");
    let thinking = marked(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#);
    let empty = marked(r#"{"type":"text","text":""}"#);
    let hour = text(2).replace('}', r#","cache_control":{"type":"ephemeral","ttl":"1h"}}"#);
    let day = text(2).replace('}', r#","cache_control":{"type":"ephemeral","ttl":"1d"}}"#);
    let table = [
        (five, MarkComplaint::TooMany { found: 5 }),
        (thinking, MarkComplaint::NotThere { kind: "thinking".into() }),
        (empty, MarkComplaint::NotThere { kind: "empty text".into() }),
        ([marked(&text(1)), hour].join(","), MarkComplaint::LongBehindShort),
        (day, MarkComplaint::Unreadable { mark: r#"{"type":"ephemeral","ttl":"1d"}"#.into() }),
    ];
    for (blocks, complaint) in table {
        assert_eq!(marks().ask(&anthropic(&with_blocks(&blocks)), 0).unwrap_err(), complaint);
    }
}

#[test]
fn marks_in_parts_of_chat_messages_count_as_well() {
    let body = format!(
        r#"{{"model":"anthropic/claude-opus-5","messages":[{{"role":"system","content":[{}]}},{{"role":"user","content":"hi"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"1","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"1","content":[{}]}}]}}"#,
        marked(&text(1)),
        marked(&text(2)),
    );
    let request = Request::decode(WireFormat::Chat, body.into_bytes()).unwrap();
    let mut cache = marks();
    let first = cache.ask(&request, 0).unwrap();
    cache.answer_began(&first, 0);
    assert!(first.reported.usage.input == 0);
    assert_eq!(cache.ask(&request, 0).unwrap().reported.usage.cache_read, first.tokens());
}

#[test]
fn without_marks_a_key_parts_conversations_and_prefixes_may_end_inside_a_message() {
    let body = |key: &str, text: &str| {
        let body = format!(
            r#"{{"model":"gpt-5","prompt_cache_key":"{key}","instructions":"{text}","input":[{{"role":"user","content":"hi"}}]}}"#
        );
        Request::decode(WireFormat::Responses, body.into_bytes()).unwrap()
    };
    let long: String = (0..4).map(words).collect();
    let mut cache = PrefixCache::new(CacheStyle::AUTOMATIC);
    let mut ask = |request: &Request| {
        let prompt = cache.ask(request, 0).unwrap();
        cache.answer_began(&prompt, 0);
        prompt.reported.usage
    };
    let first = ask(&body("a", &long));
    assert_eq!((first.cache_read, first.cache_write), (0, 0));
    assert_eq!(ask(&body("b", &long)).cache_read, 0);
    let grown = ask(&body("a", &format!("{long}{}", words(9))));
    let shared = grown.cache_read as f64 / first.prompt() as f64;
    assert!((0.9..=1.0).contains(&shared), "{shared}");
    assert_eq!(grown.cache_read % 128, 0);
}

#[test]
fn where_nothing_is_cached_everything_is_input() {
    let mut cache = PrefixCache::new(CacheStyle::None);
    let body = three_marks(1, 2, 3, "");
    for _ in 0..2 {
        let usage = ask(&mut cache, &body);
        assert_eq!((usage.cache_read, usage.cache_write), (0, 0));
        assert_eq!(usage.input, usage.prompt());
    }
}

#[test]
fn the_pieces_of_a_prompt_add_up_to_what_the_estimator_says_of_the_whole() {
    use throughline_tokens::{ContentProfile, Family, TokenModel};
    let body = three_marks(1, 2, 3, "");
    let request = anthropic(&body);
    let messages: ContentProfile = request.messages().iter().map(ContentProfile::of_message).sum();
    let whole = messages + ContentProfile::of_preamble(&request.preamble());
    let estimate = TokenModel::of(Family::Claude47).estimate_content(&whole);
    let counted = marks().ask(&request, 0).unwrap().tokens();
    // One figure includes the marks and the other does not.
    assert!(counted.abs_diff(estimate) * 50 < estimate, "{counted} against {estimate}");
}

#[test]
fn a_deferred_tool_costs_nothing_until_something_refers_to_it() {
    let before = three_marks(1, 2, 3, "");
    let tool =
        format!(r#"{{"name":"rare","description":"{}","input_schema":{{}},"defer_loading":true}}"#, words(7));
    let with = before.replace(r#""tools":["#, &format!(r#""tools":[{tool},"#));
    assert_ne!(with, before);
    let mut cache = marks();
    let all = ask(&mut cache, &before);
    let again = ask(&mut cache, &with);
    assert_eq!(
        (again.cache_read, again.prompt()),
        (all.cache_write, all.prompt()),
        "it is not in the prompt"
    );
    // A result that refers to the tool loads it at that position, after everything cached.
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"rare"}]}]}"#;
    let referring = format!("{},{result}]}}", with.strip_suffix("]}").unwrap());
    let loaded = ask(&mut cache, &referring);
    assert_eq!(loaded.cache_read, all.cache_write, "everything before is still read");
    let size = |tokens: u64| tokens - all.prompt();
    assert!(size(loaded.prompt()) > 200, "{loaded:?}");
    let absent = ask(&mut marks(), &referring.replace("\"tool_name\":\"rare\"", "\"tool_name\":\"other\""));
    assert!(size(absent.prompt()) < 60, "{absent:?}");
}
