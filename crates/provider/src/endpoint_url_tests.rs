//! Tests of addresses as people write them.

use throughline_transcript::WireFormat;

use super::{AddressError, BaseUrl};

#[test]
fn every_spelling_leads_to_the_same_place() {
    for (written, chat, responses, anthropic) in [
        ("https://api.openai.com/v1", "/v1/chat/completions", "/v1/responses", "/v1/messages"),
        ("https://api.openai.com/v1/", "/v1/chat/completions", "/v1/responses", "/v1/messages"),
        ("https://api.openai.com", "/v1/chat/completions", "/v1/responses", "/v1/messages"),
        ("https://api.openai.com/", "/v1/chat/completions", "/v1/responses", "/v1/messages"),
        (
            "https://api.openai.com/v1/chat/completions",
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/messages",
        ),
        (
            "https://api.openai.com/v1/messages?beta=true",
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/messages",
        ),
        ("https://api.openai.com/v1/responses#x", "/v1/chat/completions", "/v1/responses", "/v1/messages"),
    ] {
        let base = BaseUrl::parse(written).unwrap();
        let at = |wire_format| base.of_wire(wire_format).replace("https://api.openai.com", "");
        assert_eq!(at(WireFormat::Chat), chat, "{written}");
        assert_eq!(at(WireFormat::Responses), responses, "{written}");
        assert_eq!(at(WireFormat::Anthropic), anthropic, "{written}");
    }
    let nested = BaseUrl::parse("https://x.example/compatible-mode/v1").unwrap();
    assert_eq!(nested.of_wire(WireFormat::Chat), "https://x.example/compatible-mode/v1/chat/completions");
    assert_eq!(nested.root(), "https://x.example/compatible-mode");
    assert_eq!(nested.of_models(), "https://x.example/compatible-mode/v1/models");
    let odd = BaseUrl::parse("https://api.example/anthropic").unwrap();
    assert_eq!(odd.of_wire(WireFormat::Anthropic), "https://api.example/anthropic/v1/messages");
    let codex = BaseUrl::parse("https://chatgpt.com/backend-api/codex").unwrap();
    assert_eq!(codex.of_wire(WireFormat::Responses), "https://chatgpt.com/backend-api/codex/responses");
}

#[test]
fn what_is_no_address() {
    for (text, error) in [
        ("", AddressError::Malformed),
        ("localhost:8080x/v1", AddressError::Scheme),
        ("api.openai.com/v1", AddressError::Malformed),
        ("ftp://x.example", AddressError::Scheme),
        ("file:///etc/passwd", AddressError::Scheme),
        ("https://user:secret@x.example", AddressError::Credentials),
        ("https://sk-key@x.example", AddressError::Credentials),
    ] {
        assert_eq!(BaseUrl::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn near_and_far() {
    for (host, local) in [
        ("localhost:11434", true),
        ("127.0.0.1:8080", true),
        ("[::1]:8080", true),
        ("[::ffff:127.0.0.1]:8080", true),
        ("192.168.1.5", true),
        ("10.0.0.1", true),
        ("172.16.0.1", true),
        ("169.254.1.1", true),
        ("100.77.243.5", true),
        ("host.docker.internal", true),
        ("gpu-box", true),
        ("nas.local", true),
        ("8.8.8.8", false),
        ("172.32.0.1", false),
        ("100.128.0.1", false),
        ("api.openai.com", false),
        ("[2606:4700::1]", false),
    ] {
        assert_eq!(BaseUrl::parse(&format!("http://{host}/v1")).unwrap().is_local(), local, "{host}");
    }
}
