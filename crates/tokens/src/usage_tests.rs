//! Tests of the providers' report formats, and of contradictory figures.

use super::*;

fn read(json: &str) -> Usage {
    let reading = UsageReading::parse(json).unwrap();
    assert_eq!(reading.doubts, [], "{json}");
    reading.usage
}

#[test]
fn anthropic_reports_the_cache_beside_the_input() {
    let usage = read(
        r#"{"input_tokens":21000,"cache_read_input_tokens":60000,"cache_creation_input_tokens":0,"output_tokens":3000}"#,
    );
    assert_eq!(usage, Usage { input: 21_000, output: 3_000, cache_read: 60_000, ..Usage::default() });
    assert_eq!((usage.prompt(), usage.total()), (81_000, 84_000));
}

#[test]
fn anthropic_writes_may_come_only_by_lifetime() {
    let usage = read(
        r#"{"input_tokens":8,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":20},"output_tokens":1}"#,
    );
    assert_eq!(usage.cache_write, 120);
    assert_eq!(usage.prompt(), 128);
}

#[test]
fn cache_writes_are_distinguished_by_lifetime() {
    let json = r#"{"input_tokens":3,"cache_creation_input_tokens":120,"cache_read_input_tokens":0,
        "cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":20},"output_tokens":1}"#;
    let reading = UsageReading::parse(json).unwrap();
    assert_eq!((reading.usage.cache_write, reading.cache_write_1h), (120, 20));
    assert_eq!(reading.doubts, []);
    let without = UsageReading::parse(r#"{"input_tokens":3,"cache_creation_input_tokens":120}"#).unwrap();
    assert_eq!((without.usage.cache_write, without.cache_write_1h), (120, 0));
    for odd in [r#"null"#, r#"7"#, r#"{}"#, r#"{"ephemeral_1h_input_tokens":null}"#] {
        let json =
            format!(r#"{{"input_tokens":3,"cache_creation_input_tokens":120,"cache_creation":{odd}}}"#);
        assert_eq!(UsageReading::parse(&json).unwrap(), without, "{odd}");
    }
}

#[test]
fn cache_writes_that_do_not_add_up_are_reported() {
    for (whole, short, long, write) in [(0, 0, 500, 500), (100, 90, 20, 110), (100, 10, 20, 100)] {
        let json = format!(
            r#"{{"input_tokens":1,"cache_creation_input_tokens":{whole},
                "cache_creation":{{"ephemeral_5m_input_tokens":{short},"ephemeral_1h_input_tokens":{long}}}}}"#
        );
        let reading = UsageReading::parse(&json).unwrap();
        assert_eq!((reading.usage.cache_write, reading.cache_write_1h), (write, long));
        assert_eq!(reading.doubts, [UsageDoubt::CacheWritePartsDiffer { whole, parts: short + long }]);
    }
}

#[test]
fn codex_logs_name_the_cache_their_own_way() {
    let usage = read(
        r#"{"input_tokens":81000,"cached_input_tokens":60000,"output_tokens":3000,"reasoning_output_tokens":500,"total_tokens":84000}"#,
    );
    let expected = Usage { input: 21_000, output: 3_000, cache_read: 60_000, cache_write: 0, reasoning: 500 };
    assert_eq!(usage, expected);
}

#[test]
fn zeros_under_one_name_do_not_hide_figures_under_another() {
    let usage = read(
        r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},
            "cache_read_input_tokens":60,"cache_creation_input_tokens":10}"#,
    );
    assert_eq!((usage.input, usage.cache_read, usage.cache_write), (30, 60, 10));
    let other_wire = read(
        r#"{"prompt_tokens":0,"completion_tokens":0,"input_tokens":40,"output_tokens":2,"cache_read_input_tokens":7}"#,
    );
    assert_eq!(other_wire, Usage { input: 40, output: 2, cache_read: 7, ..Usage::default() });
    let nothing = read(r#"{"prompt_tokens":0,"completion_tokens":0}"#);
    assert_eq!(nothing, Usage::default());
}

#[test]
fn hits_and_misses_that_do_not_add_up_are_reported() {
    let json = r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":30}"#;
    let reading = UsageReading::parse(json).unwrap();
    assert_eq!((reading.usage.input, reading.usage.cache_read), (36, 64));
    assert_eq!(reading.doubts, [UsageDoubt::HitsAndMissesDiffer { prompt: 100, together: 94 }]);
    let odd = UsageReading::parse(r#"{"prompt_tokens":10,"prompt_cache_hit_tokens":"x"}"#).unwrap();
    assert_eq!(odd.doubts.len(), 1, "a field is doubted once: {:?}", odd.doubts);
}

#[test]
fn anthropic_tells_thinking_within_the_output() {
    let usage =
        read(r#"{"input_tokens":1,"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}"#);
    assert_eq!(usage.reasoning, 30);
}

#[test]
fn responses_reports_the_cache_within_the_input() {
    let usage = read(
        r#"{"input_tokens":81000,"input_tokens_details":{"cached_tokens":60000,"cache_creation_tokens":1000},
            "output_tokens":3000,"output_tokens_details":{"reasoning_tokens":500},"total_tokens":84000}"#,
    );
    let expected =
        Usage { input: 20_000, output: 3_000, cache_read: 60_000, cache_write: 1_000, reasoning: 500 };
    assert_eq!(usage, expected);
    assert_eq!((usage.prompt(), usage.total()), (81_000, 84_000));
}

#[test]
fn chat_reports_the_cache_within_the_prompt() {
    let usage = read(
        r#"{"prompt_tokens":81000,"completion_tokens":3000,"total_tokens":84000,
            "prompt_tokens_details":{"cached_tokens":60000},"completion_tokens_details":{"reasoning_tokens":700}}"#,
    );
    let expected = Usage { input: 21_000, output: 3_000, cache_read: 60_000, cache_write: 0, reasoning: 700 };
    assert_eq!(usage, expected);
}

#[test]
fn a_cache_larger_than_the_prompt_is_cut_and_reported() {
    let json = r#"{"prompt_tokens":100,"completion_tokens":5,
        "prompt_tokens_details":{"cached_tokens":90,"cache_write_tokens":30}}"#;
    let reading = UsageReading::parse(json).unwrap();
    let expected = Usage { input: 0, output: 5, cache_read: 90, cache_write: 10, reasoning: 0 };
    assert_eq!(reading.usage, expected);
    assert_eq!(reading.usage.prompt(), 100, "the prompt stays what the provider called the prompt");
    let doubt = UsageDoubt::CacheExceedsPrompt { prompt: 100, cache_read: 90, cache_write: 30 };
    assert_eq!(reading.doubts, [doubt]);
}

#[test]
fn deepseek_reports_hits_and_misses() {
    let usage = read(
        r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
    );
    assert_eq!((usage.input, usage.cache_read, usage.prompt()), (36, 64, 100));
    let without_sum =
        read(r#"{"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"completion_tokens":7}"#);
    assert_eq!(without_sum, usage);
}

#[test]
fn anthropic_names_on_a_chat_shape_count_as_part_of_the_prompt() {
    let usage = read(
        r#"{"prompt_tokens":100,"completion_tokens":1,"cache_read_input_tokens":60,"cache_creation_input_tokens":10}"#,
    );
    assert_eq!((usage.input, usage.cache_read, usage.cache_write), (30, 60, 10));
}

#[test]
fn more_reasoning_than_output_is_cut_and_reported() {
    let json = r#"{"input_tokens":1,"output_tokens":10,"output_tokens_details":{"reasoning_tokens":11}}"#;
    let reading = UsageReading::parse(json).unwrap();
    assert_eq!(reading.usage.reasoning, 10);
    assert_eq!(reading.doubts, [UsageDoubt::ReasoningExceedsOutput { output: 10, reasoning: 11 }]);
}

#[test]
fn what_is_no_count_is_zero_and_reported() {
    let reading = UsageReading::parse(r#"{"prompt_tokens":"many","completion_tokens":-3}"#).unwrap();
    assert_eq!(reading.usage, Usage::default());
    let fields: Vec<String> = reading.doubts.iter().map(ToString::to_string).collect();
    assert_eq!(
        fields,
        [
            "`prompt_tokens` is not a count; it was read as 0",
            "`completion_tokens` is not a count; it was read as 0"
        ]
    );
}

#[test]
fn null_details_and_floating_counts_are_read() {
    let usage = read(
        r#"{"prompt_tokens":12.0,"completion_tokens":3,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}"#,
    );
    assert_eq!(usage, Usage { input: 12, output: 3, ..Usage::default() });
}

#[test]
fn no_counts_at_all_is_an_error_not_zero() {
    for json in ["null", "{}", "[1]", r#"{"cost":3}"#, r#"{"prompt_tokens":null}"#] {
        assert!(matches!(UsageReading::parse(json), Err(UsageError::NoCounts)), "{json}");
    }
    assert!(matches!(UsageReading::parse("{"), Err(UsageError::Json(_))));
}

#[test]
fn sums_add_every_bucket_without_overflow() {
    let one = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 5 };
    let sum: Usage = [one, one].into_iter().sum();
    assert_eq!(sum, Usage { input: 2, output: 4, cache_read: 6, cache_write: 8, reasoning: 10 });
    let huge = Usage { input: u64::MAX, cache_read: 1, ..Usage::default() };
    assert_eq!(huge.prompt(), u64::MAX);
}
