//! Tests of bodies of every shape.

use std::time::Duration;

use super::{BodyForm, ErrorContents};

fn said(body: &str) -> ErrorContents {
    ErrorContents::read(body.as_bytes())
}

#[test]
fn words_are_found_in_every_envelope() {
    for body in [
        r#"{"error":{"message":"no"}}"#,
        r#"{"error":"no"}"#,
        r#"{"detail":"no"}"#,
        r#"{"detail":[{"msg":"no"}]}"#,
        r#"{"object":"error","message":{"detail":[{"msg":"no"}]}}"#,
        r#"[{"error":{"message":"no"}}]"#,
        r#"{"errors":[{"message":"no"}]}"#,
        r#"{"base_resp":{"status_code":1,"status_msg":"no"}}"#,
        r#"{"type":"response.failed","response":{"error":{"message":"no"}}}"#,
        "\u{feff}  {\"error\":\"no\"}  ",
    ] {
        let said = said(body);
        assert_eq!(said.words(), "no", "{body}");
        assert_eq!(said.form, BodyForm::Error, "{body}");
    }
}

#[test]
fn answers_within_answers_are_unwrapped() {
    let inner = r#"{\"error\":{\"message\":\"the real one\",\"code\":\"x_y\"}}"#;
    let said = said(&format!(r#"{{"error":{{"message":"Error from provider: {inner}","code":"outer"}}}}"#));
    assert_eq!(said.texts, ["Error from provider:", "the real one"]);
    assert_eq!(said.codes, ["x_y", "outer"]);
    let raw = ErrorContents::read(
        br#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":\"why\"}"}}}"#,
    );
    assert_eq!(raw.best_text(), "why");
}

#[test]
fn forms_are_distinguished() {
    assert_eq!(said("").form, BodyForm::Empty);
    assert_eq!(said(" \n ").form, BodyForm::Empty);
    assert_eq!(said("no").form, BodyForm::Text);
    assert_eq!(said("{\"half").form, BodyForm::Text);
    assert_eq!(said("{}").form, BodyForm::OtherJson);
    assert_eq!(said("[]").form, BodyForm::OtherJson);
    assert_eq!(said("7").form, BodyForm::OtherJson);
    assert_eq!(said(r#"{"choices":[],"error":null}"#).form, BodyForm::OtherJson);
    assert_eq!(said("<!doctype html><p>hi").form, BodyForm::Html);
    let page = "<html><style>p{}</style><script>var x = 'too long';</script><h1>502</h1>\n<p>Bad   Gateway</p></html>";
    assert_eq!(said(page).words(), "502 Bad Gateway");
    assert_eq!(said("<html><script>never closed").words(), "");
}

#[test]
fn figures_and_waits_are_read() {
    let full = said(
        r#"{"error":{"n_ctx":2048,"n_prompt_tokens":9,"param":"messages","retry_after":1.5},"request_id":"r"}"#,
    );
    assert_eq!((full.window_tokens, full.prompt_tokens), (Some(2_048), Some(9)));
    assert_eq!(full.parameter.as_deref(), Some("messages"));
    assert_eq!(full.retry_after, Some(Duration::from_millis(1_500)));
    assert_eq!(full.request_id.as_deref(), Some("r"));
    let google = said(r#"{"error":{"details":[{"retryDelay":"41s"}]}}"#);
    assert_eq!(google.retry_after, Some(Duration::from_secs(41)));
    assert_eq!(said(r#"{"error":{"retry_after":-1}}"#).retry_after, None);
    assert_eq!(said(r#"{"usage":{"prompt_tokens":7}}"#).prompt_tokens, None);
}

#[test]
fn floods_are_bounded() {
    let many = format!(r#"{{"errors":[{}]}}"#, vec![r#"{"message":"a","code":"b"}"#; 10_000].join(","));
    let found = said(&many);
    assert!(found.texts.len() <= 24 && found.codes.len() <= 24);
    let deep = format!("{}{}", "{\"error\":".repeat(100), "1".to_owned() + &"}".repeat(100));
    assert_eq!(said(&deep).texts.len(), 0);
    let long = said(&"x".repeat(3_000_000));
    assert!(long.texts[0].len() <= 8_000);
}
