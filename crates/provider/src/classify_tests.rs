//! Tests of errors about sizes: every wording found so far, with its meaning. Add a wording that is classified wrongly here first.

use super::{Failure, ProviderError};
use crate::provider_error::ProviderErrorKind;
use crate::sizes::RequestLimits;

pub(super) fn kind(status: u16, body: &str) -> ProviderErrorKind {
    ProviderError::classify(
        Failure::Answer { status, headers: &[], body: body.as_bytes() },
        RequestLimits::default(),
    )
    .kind
}

fn prompt(window: impl Into<Option<u64>>, prompt: impl Into<Option<u64>>) -> ProviderErrorKind {
    ProviderErrorKind::PromptTooLong { window_tokens: window.into(), prompt_tokens: prompt.into() }
}

fn cap(
    largest: impl Into<Option<u64>>,
    window: impl Into<Option<u64>>,
    prompt: impl Into<Option<u64>>,
) -> ProviderErrorKind {
    ProviderErrorKind::OutputCapTooLarge {
        largest_cap_tokens: largest.into(),
        window_tokens: window.into(),
        prompt_tokens: prompt.into(),
    }
}

/// Returns the same words in every known envelope.
fn envelopes(words: &str) -> Vec<String> {
    let text = serde_json::to_string(words).unwrap();
    let inner = serde_json::to_string(&format!(r#"{{"error":{{"message":{text},"code":400}}}}"#)).unwrap();
    vec![
        format!(
            r#"{{"error":{{"message":{text},"type":"invalid_request_error","param":null,"code":null}}}}"#
        ),
        format!(
            r#"{{"type":"error","error":{{"type":"invalid_request_error","message":{text}}},"request_id":"req_1"}}"#
        ),
        format!(r#"{{"object":"error","message":{text},"type":"BadRequestError","param":null,"code":400}}"#),
        format!(r#"{{"error":{text}}}"#),
        format!(r#"{{"detail":{text}}}"#),
        format!(r#"{{"message":{text}}}"#),
        format!(r#"[{{"error":{{"code":400,"message":{text},"status":"INVALID_ARGUMENT"}}}}]"#),
        format!(
            r#"{{"error":{{"message":"Provider returned error","code":400,"metadata":{{"raw":{inner},"provider_name":"x"}}}}}}"#
        ),
        words.to_owned(),
    ]
}

/// Checks wordings in every envelope and as events inside a stream, and lists every one that is classified wrongly.
fn check_all<'a>(wordings: impl IntoIterator<Item = (&'a str, ProviderErrorKind)>) {
    let mut wrong = Vec::new();
    for (words, expected) in wordings {
        let mut bodies = envelopes(words);
        let event =
            ProviderError::classify(Failure::Event { data: &bodies[0] }, RequestLimits::default()).kind;
        if event != expected {
            wrong.push(format!("as an event: {words}\n  found {event:?}"));
        }
        bodies.retain(|body| kind(400, body) != expected);
        wrong.extend(
            bodies.iter().map(|body| format!("{body}\n  found {:?}\n  wanted {expected:?}", kind(400, body))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prompts_too_long_with_window_and_size() {
    check_all([
        ("prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462),
        ("The model returned the following errors: prompt is too long: 200,049 tokens > 200,000 maximum", 200_000, 200_049),
        ("This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.", 128_000, 204_308),
        ("This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.", 16_384, 112_946),
        ("This model's maximum context length is 65536 tokens. However, you requested 69648 tokens (69648 in the messages, 0 in the completion). Please reduce the length of the messages or completion.", 65_536, 69_648),
        ("This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.", 8_191, 10_346),
        ("This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=262145)", 262_144, 262_145),
        ("You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens. Please reduce the length of the input prompt.", 202_752, 202_753),
        ("The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.", 32_768, 40_000),
        ("The engine prompt length 57349 exceeds the max_model_len 32768. Please reduce prompt.", 32_768, 57_349),
        ("The input (61709 tokens) is longer than the model's context length (40960 tokens).", 40_960, 61_709),
        ("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.", 59_862, 160_062),
        ("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131_040, 131_393),
        ("request (10031 tokens) exceeds the available context size (2048 tokens), try increasing it", 2_048, 10_031),
        ("Prompt tokens (9000) exceeds context size (8192)", 8_192, 9_000),
        ("The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13413>= n_ctx: 8192). Try to load the model with a larger context length, or provide a shorter input.", 8_192, 13_413),
        ("Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input. Error Data: n/a, Additional Data: n/a", 32_768, 111_490),
        ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1_048_575, 1_196_265),
        ("The input token count (1,196,265) exceeds the maximum number of tokens allowed (1,048,575).", 1_048_575, 1_196_265),
        ("Unable to submit request because the input token count is 32825 but model only supports up to 32768. Reduce the input token count and try again. You can also use the CountTokens API to calculate prompt token count and billable characters.", 32_768, 32_825),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
        ("prompt token count of 138000 exceeds the limit of 128000", 128_000, 138_000),
        ("Please reduce the length of the messages or completion. Current length is 139299 while limit is 131072", 131_072, 139_299),
        ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768, 40_000),
        ("The prompt is too long: 150000, model maximum context length: 131071", 131_071, 150_000),
        ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 308234 tokens. Please reduce the length of the messages.", 272_000, 308_234),
        ("length of prompt_tokens (33000) must be less than max_seq_len (32768).", 32_768, 33_000),
        ("the number of input tokens 8193 cannot exceed the total tokens limit 8192 for this model", 8_192, 8_193),
        ("Too many input tokens. Max input tokens: 300000, request input token count: 312345", 300_000, 312_345),
        ("Token indices sequence length is longer than the specified maximum sequence length for this model (18294 > 16384).", 16_384, 18_294),
        ("too many tokens: size limit exceeded by 19296 tokens. Try using shorter or fewer inputs. The limit for this model is 132000 tokens.", 132_000, 151_296),
        ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", 4_095, 5_000),
        ("This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.", 32_768, 42_832),
        ("Prompt has 140,000 tokens, context window is 65,536 tokens", 65_536, 140_000),
        ("The prompt has 140000 tokens; the context length of this model is 65536 tokens", 65_536, 140_000),
        ("Your input contains 70000 tokens, context size is 32768", 32_768, 70_000),
        ("prompt is 140000 tokens, context window is 65536 tokens", 65_536, 140_000),
        ("Input length 9000 exceeds the maximum allowed token length 8192", 8_192, 9_000),
        ("Input length (9,000) exceeds the maximum token length of 8,192", 8_192, 9_000),
        ("Prompt length 9000 exceeds the maximum supported input token count 8192.", 8_192, 9_000),
        ("Maximum input is 8192 tokens, but your prompt contains 9000 tokens", 8_192, 9_000),
        ("maximum context length is 1,048,576 tokens, your prompt contains 1,200,000 tokens", 1_048_576, 1_200_000),
        ("Le contexte: maximum context length is 131\u{202f}072 tokens but input token count is 140\u{202f}000", 131_072, 140_000),
    ]
    .map(|(words, window, size)| (words, prompt(window, size))));
}

#[test]
fn prompts_too_long_with_only_the_window() {
    check_all([
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)", 262_144),
        ("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.", 131_072),
        ("the request exceeds the available context size (32768 tokens)", 32_768),
        ("context_length_exceeded: 131072", 131_072),
        ("prompt exceeds max length: context window of 262144", 262_144),
        ("prompt is too long for max_model_len (32768)", 32_768),
        ("Too many tokens: the total number of tokens in the prompt exceeds the limit of 4081.", 4_081),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]", 204_800),
        ("Range of input length should be [1, 30720]", 30_720),
        ("your prompt is too long, limit of 272000 tokens", 272_000),
        ("AiError: The estimated number of input and maximum output tokens (37000) exceeded this model context window limit (24000).", 24_000),
        ("total tokens exceeds the model's max of 4096", 4_096),
        ("Your input exceeds the context window of this model, which is 1,048,576 tokens", 1_048_576),
        ("模型上下文长度 131072，输入长度超出限制", 131_072),
    ]
    .map(|(words, window)| (words, prompt(window, None))));
}

#[test]
fn prompts_too_long_without_numbers() {
    check_all([
        "prompt too long; exceeded max context length by 123 tokens",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "Your input exceeds the model's context window.",
        "Input is too long for requested model.",
        "The input is too long",
        "Input exceeds the max input token limit",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        "the request exceeds the available context size, try increasing it",
        "the input length exceeds the context length",
        "ollama: context length exceeded for llama3",
        "invalid params, context window exceeds limit (2013)",
        "Prompt exceeds max length",
        "Please reduce the length of the messages or completion.",
        "The total length of all messages is too long.",
        "Total tokens of image and text exceed max message tokens",
        "输入过长，超过模型最大上下文",
        "max_tokens must be at least 1, got -186.",
    ]
    .map(|words| (words, prompt(None, None))));
}

#[test]
fn caps_too_large_for_the_window() {
    check_all([
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again", 10_000, 200_000, 190_000),
        ("input length and max_tokens exceed context limit: 184915 +\n20000 > 204648, decrease input length or max_tokens and try again", 19_733, 204_648, 184_915),
        ("190000 + 20000 > 200000", 10_000, 200_000, 190_000),
        ("max_tokens: 32768 > context_window: 200000 - input_tokens: 190000 = available_tokens: 10000", 10_000, 200_000, 190_000),
        ("This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.", 8_130, 131_072, 122_942),
        ("This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.", 5_480, 6_048, 568),
        ("'max_tokens' or 'max_completion_tokens' is too large: 65536. This model's maximum context length is 131072 tokens and your request has 65537 input tokens (65536 > 131072 - 65537).", 65_535, 131_072, 65_537),
        ("This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(8, 2045))", 2_040, 2_048, 8),
        ("You passed 31769 input tokens and requested 1000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 31768 tokens.", 999, 32_768, 31_769),
        ("Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 132528 tokens: 66992 tokens from the input messages and 65536 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.", 64_080, 131_072, 66_992),
        ("This endpoint's maximum context length is 204800 tokens. However, you requested about 240000 tokens (100000 of text input, 40000 of tool input, 100000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.", 64_800, 204_800, 140_000),
        ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`", 1_988, 8_192, 6_204),
    ]
    .map(|(words, largest, window, size)| (words, cap(largest, window, size))));
}

#[test]
fn caps_too_large_for_the_model() {
    check_all([
        ("max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514", 64_000),
        ("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 65536]", 65_536),
        ("Range of max_tokens should be [1, 131072]", 131_072),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8_192),
        ("The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 32768, but got 65536 instead.", 32_768),
        ("Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 8192 instead.", 4_096),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.", 16_384),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", 8_192),
        ("max_tokens must be ≤ 8192", 8_192),
        ("max_tokens exceeds server limit (32768)", 32_768),
        ("litellm.BadRequestError: OpenAIException - Error code: 400 - {'detail': 'max_tokens exceeds server limit (32768)'}. Received Model Group=x", 32_768),
        ("The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048.", 2_048),
        ("The maximum tokens you requested exceeds the model limit of 32768", 32_768),
        ("Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.", 8_192),
        ("max_tokens must be between 1 and 8192", 8_192),
        ("max_completion_tokens cannot exceed 16,384", 16_384),
    ]
    .map(|(words, largest)| (words, cap(largest, None, None))));
}

#[test]
fn caps_too_large_in_other_words() {
    check_all(
        [
            "max_tokens is too large for this model",
            "The value of max_output_tokens exceeds what this deployment allows",
            "`max_completion_tokens` must be less than the model allows",
        ]
        .map(|words| (words, cap(None, None, None))),
    );
    let characters = "This model's maximum context length is 65536 tokens. However, you requested 65536 output tokens and your prompt contains 77409 characters (more than 0 characters, which is the upper bound for 0 input tokens). Please reduce the length of the input prompt or the number of requested output tokens.";
    assert_eq!(kind(400, &envelopes(characters)[0]), cap(39_733, 65_536, None));
}

#[test]
fn structured_fields_come_first() {
    let body = r#"{"error":{"code":400,"message":"request (10031 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":10031,"n_ctx":2048}}"#;
    assert_eq!(kind(400, body), prompt(2_048, 10_031));
    let silent =
        r#"{"error":{"code":400,"message":"no","type":"context_exceeded","n_prompt_tokens":9,"n_ctx":8192}}"#;
    assert_eq!(kind(400, silent), prompt(None, 9), "figures that contradict each other are no window");
    let code = r#"{"error":{"message":"Sorry.","code":"context_length_exceeded"}}"#;
    assert_eq!(kind(400, code), prompt(None, None));
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}"#;
    let event = ProviderError::classify(Failure::Event { data: failed }, RequestLimits::default());
    assert_eq!(event.kind, prompt(None, None));
    assert_eq!(event.code.as_deref(), Some("context_length_exceeded"));
}

#[test]
fn what_was_asked_for_settles_the_rest() {
    let asked =
        |window: u64, cap: u64| RequestLimits { output_cap_tokens: Some(cap), window_tokens: Some(window) };
    let with = |words: &str, limits| {
        let body = envelopes(words).remove(0);
        ProviderError::classify(Failure::Answer { status: 400, headers: &[], body: body.as_bytes() }, limits)
            .kind
    };
    let total = "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.";
    assert_eq!(with(total, asked(200_000, 40_000)), cap(31_072, 131_072, 100_000));
    assert_eq!(with(total, asked(200_000, 1_000)), prompt(131_072, 139_000));
    // The rest after the output limit, stated as if it were the window.
    let wrong = "This model's maximum context length is 3 tokens. However, your request has 8 input tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=8)";
    assert_eq!(with(wrong, asked(2_048, 2_045)), cap(2_040, None, 8));
    let larger = "This model's maximum context length is 30000 tokens. However, your request has 31000 input tokens. Please reduce the length of the input messages.";
    assert_eq!(with(larger, asked(32_000, 2_000)), cap(1_000, None, 31_000));
    assert_eq!(with(larger, asked(32_000, 500)), prompt(30_000, 31_000));
}

#[test]
fn rates_are_no_windows() {
    for (status, words) in [
        (429, "Rate limit reached: limit 60000 tokens per minute"),
        (429, "Please retry after 12345 limit"),
        (400, "rate limit: 60000 tokens per minute, retry after 12345"),
        (429, "Too many tokens per minute, please slow down"),
        (429, "This request exceeds the limit of 30000 tokens per minute"),
        (429, "Too many tokens, please wait before trying again."),
    ] {
        assert_eq!(kind(status, words), ProviderErrorKind::RateLimit, "{words}");
    }
    let tier = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}"#;
    assert_eq!(
        kind(429, tier),
        ProviderErrorKind::OverAllowance { allowed_tokens: None, asked_tokens: None }
    );
    let openai = "Request too large for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Requested 45123. The input or output tokens must be reduced in order to run successfully.";
    let over = ProviderErrorKind::OverAllowance { allowed_tokens: Some(30_000), asked_tokens: Some(45_123) };
    assert_eq!(kind(429, openai), over);
    let groq = r#"{"error":{"message":"Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7500, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    assert_eq!(
        kind(413, groq),
        ProviderErrorKind::OverAllowance { allowed_tokens: Some(6_000), asked_tokens: Some(7_500) }
    );
    let free = r#"{"error":{"message":"Prompt tokens limit exceeded: 41213 > 10231. To increase, visit the site","code":402}}"#;
    assert_eq!(
        kind(402, free),
        ProviderErrorKind::OverAllowance { allowed_tokens: Some(10_231), asked_tokens: Some(41_213) }
    );
    let reached = "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s.";
    assert_eq!(kind(429, reached), ProviderErrorKind::RateLimit);
}

#[test]
fn what_a_user_wrote_is_no_error() {
    let echo = r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"messages":[{"role":"user","content":"prompt is too long: 213462 tokens > 200000 maximum"}]}}]}"#;
    assert!(matches!(kind(422, echo), ProviderErrorKind::MalformedRequest { .. }));
    let answer = r#"{"choices":[{"message":{"content":"prompt is too long: 213462 tokens > 200000 maximum"}}],"error":null}"#;
    assert!(matches!(kind(200, answer), ProviderErrorKind::WrongWire { .. }));
}

#[test]
fn words_like_an_overflow_that_are_none() {
    for words in [
        "Prompt has 1,000 tokens, context window is 65,536 tokens",
        "Output length 9000 exceeds the maximum allowed token length 8192",
        "File name length 9000 exceeds the maximum allowed length 8192",
        "The description exceeds maximum length of 1024",
        "Prompt has 140,000 characters, the title may have 65,536",
        "The request has 3 tokens for context 12 of the cache",
    ] {
        for body in envelopes(words) {
            let found = kind(400, &body);
            assert!(!matches!(found, ProviderErrorKind::PromptTooLong { .. }), "{words}: {found:?}");
        }
    }
}
