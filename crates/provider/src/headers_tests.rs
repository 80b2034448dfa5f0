//! Tests of the order, replacement and omission of headers.

use throughline_transcript::WireFormat;
use throughline_wire::Streaming;

use super::headers_of;
use crate::call::OutgoingCall;
use crate::endpoint::{Endpoint, EndpointSettings};

fn sent(api_key: &str, own: &[(&str, &str)], of_call: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let owned = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let settings = EndpointSettings {
        prefix: "model",
        provider: "anthropic",
        base_url: "",
        wire: None,
        api_key,
        api_key_env: "",
        headers: &owned(own),
        model: "",
    };
    let endpoint = Endpoint::resolve(&settings, |_| None).unwrap();
    let mut call = OutgoingCall::new(WireFormat::Anthropic, Streaming::Whole, "{}");
    call.headers = owned(of_call);
    let headers = headers_of(&endpoint, &call)?;
    assert!(!format!("{headers:?}").contains("sk-"), "{headers:?}");
    let lines = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
    Ok(lines.collect())
}

#[test]
fn the_order_never_changes() {
    let lines = sent("sk-1", &[("x-title", "own")], &[("x-late", "1"), ("x-title", "call")]).unwrap();
    assert_eq!(
        lines,
        [
            "content-type: application/json",
            "accept: application/json",
            "anthropic-version: 2023-06-01",
            "x-api-key: sk-1",
            "x-title: call",
            "x-late: 1",
        ]
    );
}

#[test]
fn lists_add_up() {
    let beta = |lines: Vec<String>| {
        lines.into_iter().filter(|line| line.starts_with("anthropic-beta")).collect::<Vec<_>>()
    };
    let lines = sent("sk-ant-oat-1", &[], &[("Anthropic-Beta", "a"), ("anthropic-beta", "b")]).unwrap();
    assert_eq!(beta(lines), ["anthropic-beta: oauth-2025-04-20", "anthropic-beta: a", "anthropic-beta: b"]);
    let twice = sent("sk-1", &[("x-a", "0")], &[("x-a", "1"), ("x-a", "2")]).unwrap();
    assert_eq!(twice[4..], ["x-a: 1", "x-a: 2"]);
}

#[test]
fn what_belongs_to_a_connection_stays_there() {
    let foreign = [
        ("Connection", "upgrade"),
        ("Host", "evil.example"),
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Accept-Encoding", "gzip"),
        ("Proxy-Authorization", "x"),
    ];
    assert_eq!(sent("sk-1", &foreign, &foreign).unwrap().len(), 4);
}

#[test]
fn what_cannot_be_sent_is_named() {
    assert_eq!(sent("sk-1", &[], &[("x a", "1")]).unwrap_err(), "x a");
    assert_eq!(sent("sk-1", &[], &[("x-a", "1\n2")]).unwrap_err(), "x-a");
}
