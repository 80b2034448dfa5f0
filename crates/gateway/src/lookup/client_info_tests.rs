use hyper::header::{HeaderName, HeaderValue};

use super::*;

fn client(wire: WireFormat, headers: &[(&str, &str)], body: &str) -> ClientInfo {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    ClientInfo::of(&map, &Request::decode(wire, body.as_bytes()).unwrap())
}

#[test]
fn a_clients_own_name_for_its_session_is_found() {
    let body = r#"{"model":"m","messages":[],"metadata":{"user_id":"u_session_1"}}"#;
    let found = client(WireFormat::Anthropic, &[("x-claude-code-session-id", "abc")], body);
    assert_eq!((found.own_id.as_deref(), found.program), (Some("abc"), "claude-code"));
    assert_eq!(client(WireFormat::Anthropic, &[], body).own_id.as_deref(), Some("u_session_1"));
    let codex = r#"{"model":"m","input":[],"prompt_cache_key":"thread-7"}"#;
    let found = client(WireFormat::Responses, &[("user-agent", "codex_cli_rs/0.5")], codex);
    assert_eq!((found.own_id.as_deref(), found.program), (Some("thread-7"), "codex"));
    assert_eq!(client(WireFormat::Chat, &[], r#"{"model":"m","messages":[]}"#).own_id, None);
}

#[test]
fn names_that_are_too_long_or_empty_are_none() {
    let long = "x".repeat(MAX_KEY_BYTES + 1);
    let body = serde_json::json!({ "model": "m", "messages": [], "prompt_cache_key": long }).to_string();
    assert_eq!(
        client(WireFormat::Chat, &[(SESSION_HEADER, " ")], &body),
        ClientInfo { program: "gateway", ..ClientInfo::default() }
    );
}

#[test]
fn programs_are_named_by_their_headers_or_by_their_run() {
    let body = r#"{"model":"m","messages":[]}"#;
    let cases = [
        ("QwenCode/0.15.10 (linux; x64)", None, "qwen"),
        ("pi-coding-agent", None, "pi"),
        ("OpenAI/JS 5.1", Some("cline-0123456789abcdef"), "cline"),
        ("OpenAI/JS 5.1", Some("claude-code-0123456789abcdef"), "claude-code"),
        ("opencode/1.18", Some("cline-0123456789abcdef"), "opencode"),
        ("OpenAI/Python 3", Some("0123456789abcdef"), "gateway"),
        ("OpenAI/Python 3", Some("other-0123456789abcdef"), "gateway"),
        ("OpenAI/Python 3", None, "gateway"),
    ];
    for (agent, run, program) in cases {
        let found = client(WireFormat::Chat, &[("user-agent", agent)], body).in_run(run);
        assert_eq!(found.program, program, "{agent} {run:?}");
    }
}
