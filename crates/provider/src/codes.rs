//! Codes, types and reasons by which providers name kinds of errors, in lower case.
//!
//! Codes that several providers use for different errors (`invalid_request_error`, plain numbers) are in none of the lists.

/// The content was refused.
pub(crate) const POLICY: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "contentfilter",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "datainspectionfailed",
    "prohibited_content",
    "safety",
    "moderation_blocked",
    "sensitive_content",
];

/// The prompt, or the prompt with the output limit, does not fit.
pub(crate) const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "exceed_context_size_error",
    "context_exceeded",
    "model_max_prompt_tokens_exceeded",
    "input_too_long",
    "prompt_too_long",
];

/// The key is missing or wrong.
pub(crate) const AUTH: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "invalid_authentication_error",
    "incorrect_api_key_error",
    "api_key_invalid",
    "unrecognizedclientexception",
    "expiredtokenexception",
    "invalidapikey",
    "unauthenticated",
    "token_expired",
];

/// The account has no credit left.
pub(crate) const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "insufficient_credits",
    "exceeded_current_quota_error",
    "arrearage",
    "payment_required",
    "usage_limit_reached",
    "usage_limit_exceeded",
    "billing_error",
    "servicequotaexceededexception",
];

/// The model does not exist there.
pub(crate) const UNKNOWN_MODEL: &[&str] =
    &["model_not_found", "model_not_exist", "modelnotfound", "invalid_model", "model_not_supported"];

/// The server is overloaded.
pub(crate) const OVERLOAD: &[&str] = &[
    "overloaded_error",
    "engine_overloaded_error",
    "server_overloaded",
    "slow_down",
    "unavailable_error",
    "serviceunavailableexception",
    "modelnotreadyexception",
];

/// A rate limit, by codes with no other meaning. `rate_limit_error` is not included: plan limits use it too.
pub(crate) const THROTTLED: &[&str] = &["throttlingexception", "throttling", "throttling.ratequota"];

/// The request timed out.
pub(crate) const TIMEOUT: &[&str] =
    &["request_timeout", "timeout_error", "modeltimeoutexception", "deadline_exceeded"];
