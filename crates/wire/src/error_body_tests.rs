//! Tests of errors in the shapes in which they are known to occur.

use super::*;

fn recognised(json: &str) -> ErrorBody {
    let error = ErrorBody::recognise(json).expect(json);
    assert_eq!(error.raw, json);
    error
}

fn fields(error: &ErrorBody) -> (&str, Option<&str>, Option<&str>) {
    (&error.message, error.kind.as_deref(), error.code.as_deref())
}

#[test]
fn the_error_object_of_each_wire() {
    let openai = recognised(
        r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    );
    assert_eq!(fields(&openai), ("too long", Some("invalid_request_error"), Some("context_length_exceeded")));
    assert_eq!(openai.param.as_deref(), Some("messages"));
    let anthropic = recognised(
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
    );
    assert_eq!(fields(&anthropic), ("Overloaded", Some("overloaded_error"), None));
    let responses = recognised(
        r#"{"type":"error","code":"server_error","message":"again","param":null,"sequence_number":3}"#,
    );
    assert_eq!(fields(&responses), ("again", None, Some("server_error")));
    let llama = recognised(
        r#"{"error":{"code":400,"message":"request (10031 tokens) exceeds","type":"exceed_context_size_error","n_prompt_tokens":10031,"n_ctx":2048}}"#,
    );
    assert_eq!(
        fields(&llama),
        ("request (10031 tokens) exceeds", Some("exceed_context_size_error"), Some("400"))
    );
}

#[test]
fn shapes_of_others() {
    assert_eq!(fields(&recognised(r#"{"error":"model not found"}"#)), ("model not found", None, None));
    let vllm =
        recognised(r#"{"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}"#);
    assert_eq!(fields(&vllm), ("no", Some("BadRequestError"), Some("400")));
    let router = recognised(
        r#"{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"slow down"}},"user_id":"u"}"#,
    );
    assert_eq!(fields(&router), ("Provider returned error", None, Some("429")));
    let beside = recognised(r#"{"error":{"type":"bad"},"message":"said beside it"}"#);
    assert_eq!(fields(&beside), ("said beside it", Some("bad"), None));
    let bare = recognised(r#"{"type":"error"}"#);
    assert_eq!(fields(&bare), ("", None, None));
    assert_eq!(bare.to_string(), "the provider reported an error without saying which");
}

#[test]
fn what_is_no_error_is_not_taken_for_one() {
    for json in [
        r#"{"error":null,"output":[]}"#,
        r#"{"error":false}"#,
        r#"{"message":"hello","detail":"fine"}"#,
        r#"{"type":"message","content":[]}"#,
        r#"{"choices":[{"message":{"content":"an error occurred"}}]}"#,
        "[]",
        "\"error\"",
        "{\"error\":",
        "error",
    ] {
        assert_eq!(ErrorBody::recognise(json), None, "{json}");
    }
}

#[test]
fn a_failed_response_always_says_something() {
    let read = |body: &str| ErrorBody::of_failed_response(body.as_bytes());
    assert_eq!(read(r#"{"detail":"Not authenticated"}"#).message, "Not authenticated");
    assert_eq!(
        read(r#"{"detail":[{"loc":["body","model"],"msg":"field required","type":"missing"}]}"#).message,
        "field required"
    );
    assert_eq!(read(r#"{"detail":{"message":"inner"}}"#).message, "inner");
    assert_eq!(read(r#"{"detail":{"odd":1}}"#).message, r#"{"odd":1}"#);
    let aws = read(r#"{"__type":"ThrottlingException","message":"Too many tokens"}"#);
    assert_eq!(fields(&aws), ("Too many tokens", Some("ThrottlingException"), None));
    let listed = read(r#"[{"error":{"code":400,"message":"bad key","status":"INVALID_ARGUMENT"}}]"#);
    assert_eq!(fields(&listed), ("bad key", Some("INVALID_ARGUMENT"), Some("400")));
    let flat = read(r#"{"code":"InvalidParameter","message":"Range of input length","request_id":"1"}"#);
    assert_eq!(fields(&flat), ("Range of input length", None, Some("InvalidParameter")));
    assert_eq!(read("\"just words\"").message, "just words");
    assert_eq!(read("upstream connect error\n").message, "upstream connect error");
    assert_eq!(read("{\"unknown\":1}").message, "");
    assert_eq!(read("").message, "");
    assert_eq!(ErrorBody::of_failed_response(b"\xff\xfe oops").message, "\u{fffd}\u{fffd} oops");
}

#[test]
fn a_page_is_read_without_its_markup() {
    let page = "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title><style>b { color: red }</style>\
                <script>if (1 < 2) alert('x')</script></head><body><h1>502</h1>\n<p>nginx</p></body></html>";
    let error = ErrorBody::of_failed_response(page.as_bytes());
    assert_eq!(error.message, "502 Bad Gateway 502 nginx");
    assert_eq!(error.raw, page);
    assert_eq!(ErrorBody::of_failed_response(b"<unclosed").message, "");
    let long = format!("<p>{}</p>", "word ".repeat(10_000));
    assert_eq!(ErrorBody::of_failed_response(long.as_bytes()).message.chars().count(), 2_000);
}

#[test]
fn an_error_is_shown_with_its_kind() {
    let error = ErrorBody { message: "m".into(), code: Some("c".into()), ..ErrorBody::default() };
    assert_eq!(error.to_string(), "c: m");
    assert_eq!(ErrorBody { kind: Some("k".into()), ..error.clone() }.to_string(), "k: m");
    assert_eq!(ErrorBody { message: String::new(), ..error }.to_string(), "c");
}
