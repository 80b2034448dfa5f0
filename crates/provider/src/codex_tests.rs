//! Tests of calls to a Codex subscription.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;

fn token(claims: &str) -> String {
    format!("eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

#[test]
fn account_is_read_from_the_claims_of_a_token() {
    let claims = r#"{"sub":"u","https://api.openai.com/auth":{"chatgpt_account_id":"acc-1"}}"#;
    assert_eq!(account_of(&token(claims)), Some("acc-1".to_owned()));
    for other in [
        "sk-proj-1".to_owned(),
        String::new(),
        "a.b.c".to_owned(),
        token("{}"),
        token("not json"),
        token(r#"{"https://api.openai.com/auth":{"chatgpt_account_id":7}}"#),
        token("{\"https://api.openai.com/auth\":{\"chatgpt_account_id\":\"a\\nb\"}}"),
        format!("{}.d", token(claims)),
    ] {
        assert_eq!(account_of(&other), None, "{other}");
    }
}

#[test]
fn body_states_that_nothing_is_stored_and_no_cap() {
    let cases = [
        (r#"{"model":"m","input":[]}"#, r#"{"store":false,"model":"m","input":[]}"#),
        (r#"{"model":"m","store":true,"input":[]}"#, r#"{"store":false,"model":"m","input":[]}"#),
        (r#"{"model":"m","store":false}"#, r#"{"model":"m","store":false}"#),
        (r#"{"max_output_tokens":9,"store":false}"#, r#"{"store":false}"#),
        (r#"{"model":"m","max_output_tokens":null}"#, r#"{"store":false,"model":"m"}"#),
        ("{}", r#"{"store":false}"#),
        ("[1]", "[1]"),
    ];
    for (body, expected) in cases {
        assert_eq!(body_for(body), expected, "{body}");
    }
    // Members inside quoted text are not settings.
    let quoted = r#"{"input":[{"content":"\"store\":true, \"max_output_tokens\":9"}],"store":false}"#;
    assert_eq!(body_for(quoted), quoted);
}
