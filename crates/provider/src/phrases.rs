//! Phrases that distinguish kinds of errors if a provider gives no code.
//!
//! A phrase is searched in the text of an error without capitals and punctuation. Each list names one kind; `classify` defines their order.
//! A phrase with two possible meanings belongs in none of them.

use crate::lexemes::Lexeme;
use crate::wordings::CAP_NAMES;

/// Returns the text of an error in one line: lower case, single spaces, no punctuation except signs.
pub(crate) fn flat(lexemes: &[Lexeme]) -> String {
    let mut line = String::from(" ");
    for lexeme in lexemes {
        match lexeme {
            Lexeme::Word(word) => line.push_str(word),
            Lexeme::Number(value, _) => line.push_str(&value.to_string()),
            Lexeme::Fraction(value) => line.push_str(&value.to_string()),
            Lexeme::Sign(sign) => line.push_str(sign),
        }
        line.push(' ');
    }
    line
}

/// Whether the line contains any of the phrases. Phrases that begin and end with a space match whole words only.
pub(crate) fn says(line: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| line.contains(phrase))
}

/// The prompt does not fit.
pub(crate) const PROMPT_TOO_LONG: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "prompt is too large",
    "input is too long",
    "input too long",
    "input is too large",
    "input length too long",
    "messages is too long",
    "context is too long",
    "prompt exceeds max",
    "prompt exceeds the max",
    "prompt exceeds the model",
    "exceeds the context",
    "exceed the context",
    "exceeded the context",
    "exceeds context",
    "exceeds the model's context",
    "exceeds this model's context",
    "exceeds the model's maximum context",
    "exceeds the maximum context",
    "exceeds maximum context",
    "exceeds the available context",
    "exceeded max context",
    "exceeded this model context",
    "greater than the context length",
    "longer than the model's context",
    "longer than the context",
    "longer than the maximum model length",
    "longer than the specified maximum sequence length",
    "context length exceeded",
    "context window exceeded",
    "context window exceeds",
    "context size exceeded",
    "context_length_exceeded",
    "context_window_exceeded",
    "context overflow",
    "context the overflows",
    "context overflows",
    "maximum context length is",
    "maximum prompt length is",
    "reduce the length of the messages",
    "reduce the length of your messages",
    "reduce the length of the prompt",
    "reduce the length of the input",
    "reduce your prompt",
    "too many tokens",
    "too many input tokens",
    "input tokens exceeded",
    "input tokens exceeds",
    "input tokens exceed",
    "input token count exceeds",
    "exceeds the max input token",
    "exceeds the maximum number of tokens",
    "exceeds the maximum allowed input",
    "exceeded model token limit",
    "exceeds the model's max",
    "token limit exceeded",
    "size limit exceeded by",
    "range of input length should be",
    "exceed max message tokens",
    "too large for model with",
    "slot context",
    "n_ctx_slot",
    "超过最大长度",
    "超出最大长度",
    "超过模型最大",
    "超出模型最大",
    "超过了模型",
    "上下文长度超",
    "超过上下文",
    "超出上下文",
    "输入过长",
    "提示词过长",
    "输入长度超",
    "プロンプトが長すぎ",
    "コンテキスト長を超え",
    "컨텍스트 길이",
    "contexto é muito longo",
    "zu lang für das kontextfenster",
    "превышает максимальн",
];

/// Something is too long; the words before the phrase name it.
const LENGTH_EXCEEDED: &[&str] =
    &["exceeds maximum length", "exceeds max length", "exceeds the maximum allowed length"];

/// Words for a prompt or a part of one.
const PROMPT_WORDS: &[&str] = &[
    "input",
    "inputs",
    "prompt",
    "prompts",
    "request",
    "message",
    "messages",
    "context",
    "conversation",
    "sequence",
    "text",
    "token",
    "tokens",
    "content",
];

/// Words that may be between a thing and the statement of its length.
const WORDS_OF_LENGTH: &[&str] = &[
    "length", "size", "count", "number", "of", "the", "a", "is", "was", "has", "which", "that", "it", "total",
];

/// Whether the line says that a prompt is longer than allowed. Names, titles and descriptions have lengths too, so the thing named right
/// before must be part of a prompt, or nothing may be named.
pub(crate) fn length_of_prompt_exceeded(line: &str) -> bool {
    LENGTH_EXCEEDED.iter().flat_map(|phrase| line.match_indices(phrase)).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let sentence = before.rsplit(" . ").next().unwrap_or_default();
        let mut words = sentence.split_whitespace().rev().filter(|word| {
            !WORDS_OF_LENGTH.contains(word) && !word.bytes().all(|byte| byte.is_ascii_digit())
        });
        words.next().is_none_or(|thing| PROMPT_WORDS.contains(&thing))
    })
}

/// Phrases that mean the output limit if one of its names is next to them.
const CAP_TOO_LARGE: &[&str] = &[
    "too large",
    "too big",
    "too high",
    "exceed",
    "at most",
    "less than or equal",
    " <= ",
    "maximum value",
    "above maximum",
    "must be less",
    "must be in range",
    "range of",
    "valid range",
    "supported range",
    "larger than",
    "greater than the maximum",
    "超",
];

/// Whether the line contains a name of the output limit.
pub(crate) fn names_cap(line: &str) -> bool {
    CAP_NAMES.iter().any(|name| line.contains(name))
        || says(
            line,
            &[
                "maximum tokens you requested",
                "max output tokens",
                "maximum output tokens",
                "output token limit",
            ],
        )
}

/// Whether the line complains about an output limit, regardless of the numbers in it.
pub(crate) fn cap_too_large(line: &str) -> bool {
    names_cap(line) && says(line, CAP_TOO_LARGE)
}

/// Rates; a number next to one is not a size.
pub(crate) const RATE: &[&str] = &[
    "per minute",
    "per min ",
    "per day",
    "per hour",
    "per second",
    "tokens min ",
    " tpm ",
    " rpm ",
    " tpd ",
    " rpd ",
    " itpm ",
    " otpm ",
    "rate limit",
    "rate_limit",
    "ratelimit",
    "rate-limit",
    "too many requests",
    "requests rate",
    "request rate",
    "throttl",
    "频率",
    "限流",
    "请求过于频繁",
    "速率限制",
];

/// The request itself is larger than the plan allows, so waiting does not help.
pub(crate) const LARGER_THAN_RATE: &[&str] = &[
    "request too large",
    "must be reduced in order to run",
    "reduce your message size",
    "reduce the size of your request",
];

/// A plan that excludes long prompts.
pub(crate) const LONG_CONTEXT_PLAN: &[&str] = &[
    "long context requests",
    "long context usage",
    "long context beta",
    "long context is not",
    "prompt tokens limit exceeded",
];

/// The account has no credit left.
pub(crate) const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient quota",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient_balance",
    "not enough credits",
    "not enough balance",
    "requires more credits",
    "credit balance is too low",
    "out of credits",
    "no credits",
    "used all available credits",
    "billing hard limit",
    "billing_hard_limit",
    "billing details",
    "spending limit",
    "usage limit",
    "monthly limit",
    "weekly limit",
    "quota exceeded",
    "quota has been exceeded",
    "payment required",
    "in arrears",
    "account is not active",
    "check your plan",
    "余额不足",
    "欠费",
    "额度",
];

/// The key is missing or wrong.
pub(crate) const AUTH: &[&str] = &[
    "invalid api key",
    "invalid api_key",
    "incorrect api key",
    "invalid x-api-key",
    "api key not valid",
    "api key is invalid",
    "api key is missing",
    "api key expired",
    "api_key_invalid",
    "invalid_api_key",
    "no api key",
    "no auth credentials",
    "missing authentication",
    "missing bearer",
    "invalid authentication",
    "authentication fails",
    "authentication failed",
    "unauthorized",
    "invalid token",
    "token expired",
    "token has expired",
    "invalid bearer",
    "didn't provide an api key",
    "could not resolve authentication",
    "无效的令牌",
    "令牌已过期",
    "鉴权失败",
    "身份验证失败",
];

/// The model does not exist there.
pub(crate) const UNKNOWN_MODEL: &[&str] = &[
    "model_not_found",
    "model not found",
    "model does not exist",
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
    "no endpoints found for",
    "no models loaded",
    "no model loaded",
    "failed to load model",
    "try pulling it first",
    "does not exist or you do not have access",
    "unsupported model",
    "model is not supported",
    "model identifier is invalid",
    "模型不存在",
];

/// The server is overloaded.
pub(crate) const OVERLOAD: &[&str] = &[
    "overloaded",
    "over capacity",
    "at capacity",
    "no capacity",
    "capacity exceeded",
    "server is busy",
    "server busy",
    "service is busy",
    "temporarily unavailable",
    "service unavailable",
    "currently loading",
    "loading model",
    "high demand",
    "high load",
    "no healthy upstream",
    "no available channel",
    "model is not ready",
    "服务繁忙",
    "系统繁忙",
    "负载",
];

/// The request timed out.
pub(crate) const TIMEOUT: &[&str] =
    &["timed out", "timeout", "time out", "deadline exceeded", "deadline_exceeded", "took too long", "超时"];

/// Refused because of the content.
pub(crate) const POLICY: &[&str] = &[
    "content filtering policy",
    "content filter",
    "content_filter",
    "content policy",
    "content management policy",
    "content_policy",
    "usage policy",
    "usage policies",
    "safety system",
    "responsible ai",
    "inappropriate content",
    "content exists risk",
    "considered high risk",
    "prohibited_content",
    "data_inspection_failed",
    "datainspectionfailed",
    "input was flagged",
    "requires moderation",
    "flagged by moderation",
    "sensitive content",
    "违规",
    "敏感内容",
    "不安全或敏感",
    "内容安全",
];

/// The key is valid, but not for this.
pub(crate) const FORBIDDEN: &[&str] = &[
    "permission",
    "not allowed to",
    "access denied",
    "not authorized",
    "country region or territory not supported",
    "unsupported_country",
    "data policy",
    "forbidden",
];

/// A request of too many bytes.
pub(crate) const PAYLOAD: &[&str] = &[
    "request_too_large",
    "request entity too large",
    "entity too large",
    "payload too large",
    "payload size exceeds",
    "payload_too_large",
    "request body too large",
    "body is too large",
    "body too large",
    "request exceeds the maximum size",
    "request exceeds the maximum allowed number of bytes",
    "content too large",
    "request size exceeds",
    "request is too large",
    "string too long",
    "string_above_max_length",
    "maximum string length",
];

/// The path does not exist there.
pub(crate) const NO_SUCH_PATH: &[&str] = &[
    "unexpected endpoint or method",
    "invalid url",
    "file not found",
    "page not found",
    "cannot post",
    "method not allowed",
    "no route",
    "unknown endpoint",
    "unknown request url",
];

/// An unknown parameter.
pub(crate) const UNKNOWN_PARAMETER: &[&str] = &[
    "unsupported parameter",
    "unsupported_parameter",
    "unknown parameter",
    "unknown_parameter",
    "unrecognized request argument",
    "unrecognized parameter",
    "unexpected keyword argument",
    "extra inputs are not permitted",
    "extra fields not permitted",
    "additional properties are not allowed",
    "is not supported with this model",
    "is not supported by this model",
    "unknown field",
    "unknown name",
];

/// Reasoning that was changed or comes from another provider.
pub(crate) const FOREIGN_REASONING: &[&str] = &[
    "invalid signature in thinking",
    "signature in thinking block",
    "thinking blocks in the latest assistant message cannot be modified",
    "redacted_thinking blocks in the latest",
    "expected thinking or redacted_thinking",
    "must start with a thinking block",
    "invalid_encrypted_content",
    "encrypted content could not be",
    "encrypted content for item",
    "reasoning_content in the thinking mode must be passed back",
    "thought_signature",
    "thought signature",
];

/// Calls and results that do not pair.
pub(crate) const TOOL_PAIRING: &[&str] = &[
    "tool_use ids were found without tool_result",
    "unexpected tool_use_id found in tool_result",
    "must be followed by tool messages",
    "must be a response to a preceeding message with tool_calls",
    "must be a response to a preceding message with tool_calls",
    "no tool output found for function call",
    "no tool call found for function call output",
    "tool_call_id is not found",
    "number of function response parts",
    "not the same number of function calls and responses",
];

/// Roles out of order.
pub(crate) const ROLE_ORDER: &[&str] = &[
    "roles must alternate",
    "must alternate between",
    "first message must use the user role",
    "expected last role user or tool",
    "unexpected role",
    "invalid_request_message_order",
    "must end with a user message",
    "does not support assistant message prefill",
];
