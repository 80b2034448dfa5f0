//! Tests of errors that are not about sizes, by provider, and of their details.

use std::time::Duration;

use super::tests::kind;
use super::{Failure, ProviderError, TransportFault};
use crate::provider_error::{
    ConnectStage, ImageComplaint, ProviderErrorKind, RequestComplaint, Retry, WrongWireSign,
};
use crate::sizes::RequestLimits;

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> ProviderError {
    ProviderError::classify(
        Failure::Answer { status, headers, body: body.as_bytes() },
        RequestLimits::default(),
    )
}

/// Checks answers and lists every one that is classified wrongly.
fn check_all<'a>(expected: &ProviderErrorKind, answers: impl IntoIterator<Item = (u16, &'a str)>) {
    let found = answers.into_iter().map(|(status, body)| (status, body, kind(status, body)));
    let wrong: Vec<_> = found
        .filter(|(_, _, found)| found != expected)
        .map(|(status, body, found)| format!("{status} {body}\n  found {found:?}"))
        .collect();
    assert!(wrong.is_empty(), "wanted {expected:?}\n{}", wrong.join("\n"));
}

#[test]
fn rate_limits() {
    check_all(
        &ProviderErrorKind::RateLimit,
        [
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}"#,
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#,
            ),
            (
                429,
                r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 41.5s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"41s"}]}}"#,
            ),
            (429, r#"{"message":"Too many requests, please wait before trying again."}"#),
            (
                429,
                r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream. Please retry shortly.","provider_name":"y"}}}"#,
            ),
            (
                400,
                r#"{"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again."}"#,
            ),
            (402, r#"{"error":{"message":"Limit reached, try again in 5 minutes"}}"#),
            (429, ""),
            (429, "<html><head><title>429</title></head><body>slow down</body></html>"),
            (200, r#"{"error":{"code":429,"message":"Rate limited"}}"#),
            (
                429,
                r#"{"error":{"code":"1302","message":"您当前使用该API的并发数过高，请降低并发，或联系客服增加限额。"}}"#,
            ),
        ],
    );
}

#[test]
fn quotas() {
    check_all(
        &ProviderErrorKind::Quota { affordable_tokens: None },
        [
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
            ),
            (
                402,
                r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
            ),
            (
                402,
                r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}"#,
            ),
            (
                429,
                r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":12345}}"#,
            ),
            (
                403,
                r#"{"code":"The caller does not have permission","error":"Your team has either used all available credits or reached its monthly spending limit."}"#,
            ),
            (429, r#"{"error":{"code":"1113","message":"您的账户已欠费，请充值后重试。"}}"#),
            (200, r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#),
            (402, ""),
        ],
    );
    let affordable = r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 4000. To increase, visit the site","code":402}}"#;
    assert_eq!(kind(402, affordable), ProviderErrorKind::Quota { affordable_tokens: Some(4_000) });
}

#[test]
fn keys() {
    check_all(
        &ProviderErrorKind::Auth,
        [
            (
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            ),
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-x. You can find your API key at the site.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            ),
            (
                400,
                r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key from the console."}"#,
            ),
            (401, r#"{"error":{"message":"No auth credentials found","code":401}}"#),
            (401, r#"{"detail":"Unauthorized"}"#),
            (401, ""),
            (401, "<html>401 Authorization Required</html>"),
            (
                403,
                r#"{"__type":"UnrecognizedClientException","message":"The security token included in the request is invalid."}"#,
            ),
        ],
    );
    check_all(
        &ProviderErrorKind::Forbidden,
        [
            (
                403,
                r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}"#,
            ),
            (
                403,
                r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}"#,
            ),
            (403, "<html>Attention Required! | Cloudflare</html>"),
            (403, ""),
        ],
    );
}

#[test]
fn models() {
    check_all(
        &ProviderErrorKind::UnknownModel,
        [
            (
                404,
                r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
            ),
            (404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#),
            (404, r#"{"error":"model 'qwen9' not found, try pulling it first"}"#),
            (
                404,
                r#"{"error":{"message":"model \"qwen9\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
            ),
            (400, r#"{"error":{"message":"anthropic/claude-9 is not a valid model ID","code":400}}"#),
            (404, r#"{"error":{"message":"No endpoints found for x/y.","code":404}}"#),
            (
                404,
                r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
            ),
            (
                404,
                r#"{"error":{"message":"No models loaded. Please load a model in the developer page or use the `lms load` command.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
            ),
            (400, r#"{"message":"The provided model identifier is invalid."}"#),
            (
                404,
                r#"{"error":{"code":404,"message":"models/gemini-9 is not found for API version v1beta, or is not supported for generateContent. Call ListModels","status":"NOT_FOUND"}}"#,
            ),
        ],
    );
}

#[test]
fn overload_timeouts_and_faults() {
    check_all(
        &ProviderErrorKind::Overload,
        [
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            (200, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            (
                503,
                r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
            ),
            (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
            (
                429,
                r#"{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded, please try again later"}}"#,
            ),
            (503, "<html>503 Service Temporarily Unavailable</html>"),
            (503, ""),
        ],
    );
    check_all(
        &ProviderErrorKind::Timeout,
        [
            (408, ""),
            (504, "<html>504 Gateway Time-out</html>"),
            (524, ""),
            (500, r#"{"error":{"message":"Request timed out.","type":"timeout"}}"#),
            (
                504,
                r#"{"error":{"code":504,"message":"Deadline expired before operation could complete.","status":"DEADLINE_EXCEEDED"}}"#,
            ),
        ],
    );
    check_all(
        &ProviderErrorKind::ServerFault,
        [
            (500, r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#),
            (502, "<html>502 Bad Gateway</html>"),
            (500, ""),
            (500, r#"{"error":{"message":"The model produced an empty response; try a larger max_tokens"}}"#),
        ],
    );
}

#[test]
fn overflow_words_count_whatever_the_status() {
    let too_long =
        |status| kind(status, r#"{"error":{"message":"prompt is too long: 9000 tokens > 8192 maximum"}}"#);
    for status in [400, 413, 422, 500, 503] {
        let expected =
            ProviderErrorKind::PromptTooLong { window_tokens: Some(8_192), prompt_tokens: Some(9_000) };
        assert_eq!(too_long(status), expected, "{status}");
    }
    for status in [401, 403, 404, 429] {
        assert!(!matches!(too_long(status), ProviderErrorKind::PromptTooLong { .. }), "{status}");
    }
}

#[test]
fn policies() {
    check_all(
        &ProviderErrorKind::ContentPolicy,
        [
            (
                400,
                r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}"#,
            ),
            (400, r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}"#),
            (
                400,
                r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","code":"invalid_prompt"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。"}}"#,
            ),
        ],
    );
}

#[test]
fn requests_that_are_wrong() {
    let unknown = |name: &str| ProviderErrorKind::MalformedRequest {
        complaint: RequestComplaint::UnknownParameter { name: Some(name.to_owned()) },
    };
    check_all(
        &unknown("max_tokens"),
        [
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
            ),
            (502, r#"{"error":{"message":"Unknown parameter: 'max_tokens'."}}"#),
        ],
    );
    let other = |complaint| ProviderErrorKind::MalformedRequest { complaint };
    check_all(
        &other(RequestComplaint::ForeignReasoning),
        [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"The encrypted content for item rs_1 could not be verified.","code":"invalid_encrypted_content"}}"#,
            ),
        ],
    );
    check_all(
        &other(RequestComplaint::ToolPairing),
        [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."}}"#,
            ),
            (400, r#"{"error":{"message":"No tool output found for function call call_1."}}"#),
        ],
    );
    check_all(
        &other(RequestComplaint::RoleOrder),
        [(
            400,
            r#"{"object":"error","message":"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant","type":"invalid_request_message_order","code":"3230"}"#,
        )],
    );
    check_all(
        &other(RequestComplaint::Other),
        [
            (
                400,
                r#"{"error":{"code":400,"message":"'messages' is required","type":"invalid_request_error"}}"#,
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"`max_tokens` must be greater than `thinking.budget_tokens`."}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 9 instead.","param":"temperature"}}"#,
            ),
        ],
    );
}

#[test]
fn payloads_and_pictures() {
    let payload = |limit: Option<u64>, sent: Option<u64>| ProviderErrorKind::PayloadTooLarge {
        limit_bytes: limit,
        sent_bytes: sent,
    };
    assert_eq!(kind(413, ""), payload(None, None));
    assert_eq!(kind(413, "<html><title>413 Request Entity Too Large</title></html>"), payload(None, None));
    assert_eq!(
        kind(
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#
        ),
        payload(None, None)
    );
    assert_eq!(
        kind(
            400,
            r#"{"error":{"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}"#
        ),
        payload(Some(20_971_520), None)
    );
    assert_eq!(
        kind(
            400,
            r#"{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1540820 instead.","code":"string_above_max_length"}}"#
        ),
        payload(Some(1_048_576), None)
    );
    let image = |complaint| ProviderErrorKind::ImageRefused { complaint };
    assert_eq!(
        kind(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes"}}"#
        ),
        image(ImageComplaint::TooLarge { limit_bytes: Some(5_242_880) })
    );
    assert_eq!(
        kind(400, "At least one of the image dimensions exceed max allowed size: 8000 pixels"),
        image(ImageComplaint::TooLarge { limit_bytes: None })
    );
    assert_eq!(
        kind(
            500,
            r#"{"error":{"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}}"#
        ),
        image(ImageComplaint::NotSupported)
    );
    assert_eq!(
        kind(400, r#"{"error":{"message":"Could not process image"}}"#),
        image(ImageComplaint::Unreadable)
    );
    assert_eq!(
        kind(400, r#"{"error":{"message":"too many images: 25 > 20"}}"#),
        image(ImageComplaint::TooMany)
    );
}

#[test]
fn other_wires() {
    let wrong = |sign| ProviderErrorKind::WrongWire { sign };
    check_all(
        &wrong(WrongWireSign::NoSuchPath),
        [
            (404, r#"{"detail":"Not Found"}"#),
            (404, r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#),
            (404, "404 page not found"),
            (404, "<html><title>404 Not Found</title></html>"),
            (
                404,
                r#"{"error":{"message":"Invalid URL (POST /v1/chat/completion)","type":"invalid_request_error"}}"#,
            ),
            (200, r#"{"error":"Unexpected endpoint or method. (POST /v1/messages)"}"#),
            (405, r#"{"detail":"Method Not Allowed"}"#),
            (404, ""),
        ],
    );
    check_all(
        &wrong(WrongWireSign::Html),
        [(200, "<!DOCTYPE html><html><body>Welcome</body></html>"), (400, "<html>400 Bad Request</html>")],
    );
    assert_eq!(kind(200, r#"{"status":"ok"}"#), wrong(WrongWireSign::OtherShape));
    assert_eq!(kind(200, "OK"), wrong(WrongWireSign::NotJson));
    assert_eq!(kind(301, "<html>moved</html>"), wrong(WrongWireSign::Redirect));
}

#[test]
fn what_is_not_known_is_not_guessed() {
    check_all(&ProviderErrorKind::Unknown, [(400, ""), (400, "{}"), (418, "tea")]);
    assert!(matches!(
        kind(400, r#"{"error":{"message":"Error"}}"#),
        ProviderErrorKind::MalformedRequest { .. }
    ));
}

#[test]
fn faults_of_the_connection() {
    let of = |fault| ProviderError::classify(Failure::Transport(fault), RequestLimits::default()).kind;
    assert_eq!(of(TransportFault::Name), ProviderErrorKind::Unreachable { stage: ConnectStage::Name });
    assert_eq!(of(TransportFault::Connect), ProviderErrorKind::Unreachable { stage: ConnectStage::Connect });
    assert_eq!(of(TransportFault::Tls), ProviderErrorKind::Unreachable { stage: ConnectStage::Tls });
    assert_eq!(of(TransportFault::Closed), ProviderErrorKind::Unreachable { stage: ConnectStage::Closed });
    assert_eq!(of(TransportFault::FirstByteTimeout), ProviderErrorKind::Timeout);
    assert_eq!(of(TransportFault::Silence), ProviderErrorKind::Timeout);
    assert_eq!(of(TransportFault::Cut), ProviderErrorKind::Interrupted);
    assert_eq!(of(TransportFault::Garbled), ProviderErrorKind::WrongWire { sign: WrongWireSign::NotJson });
}

#[test]
fn waits_codes_and_ids_come_along() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow\n  down."},"request_id":"req_7"}"#;
    let limited = answer(429, &[("Retry-After", "7"), ("x-should-retry", "true")], body);
    assert_eq!(limited.retry(), Retry::After(Duration::from_secs(7)));
    assert_eq!(limited.code.as_deref(), Some("rate_limit_error"));
    assert_eq!(limited.words, "Slow down.");
    assert_eq!(limited.request_id.as_deref(), Some("req_7"));
    assert_eq!(limited.status, Some(429));
    assert_eq!(limited.to_string(), "the rate limit is reached (HTTP 429): Slow down.");
    let never = answer(529, &[("x-should-retry", "false")], "");
    assert_eq!(never.retry(), Retry::No);
    assert_eq!(answer(529, &[], "").retry(), Retry::Backoff);
    let used_up = r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":12345}}"#;
    let used_up = answer(429, &[], used_up);
    assert_eq!(used_up.retry_after, Some(Duration::from_secs(12_345)));
    assert_eq!(used_up.retry(), Retry::No);
    let dated = [("retry-after", "Sun, 15 Nov 2026 10:00:30 GMT"), ("Date", "Sun, 15 Nov 2026 10:00:00 GMT")];
    assert_eq!(answer(503, &dated, "").retry_after, Some(Duration::from_secs(30)));
    let budget = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")];
    assert_eq!(answer(429, &budget, "").retry_after, Some(Duration::from_secs(360)));
    let aws = [("x-amzn-ErrorType", "ThrottlingException:http://internal")];
    assert_eq!(answer(400, &aws, r#"{"message":"Rate exceeded"}"#).kind, ProviderErrorKind::RateLimit);
}
