use super::*;

fn upstream(name: &str, wires: &[WireFormat], models: &[&str]) -> UpstreamSpec {
    UpstreamSpec {
        name: name.to_owned(),
        base: BaseUrl::parse("http://127.0.0.1:1").unwrap(),
        kind: EndpointKind::Custom,
        wires: wires.to_vec(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
        key: None,
    }
}

#[test]
fn the_first_that_speaks_the_wire_and_serves_the_model_is_asked() {
    let all = vec![
        upstream("claude", &[WireFormat::Anthropic], &["claude-*"]),
        upstream("open", &[WireFormat::Chat, WireFormat::Responses], &["gpt-*"]),
        upstream("rest", &[WireFormat::Chat], &[]),
    ];
    let upstreams = Upstreams { all };
    let chosen =
        |named, wire, model| upstreams.choose(named, wire, model).map(|(upstream, _)| upstream.name.as_str());
    assert_eq!(chosen(None, WireFormat::Chat, "gpt-5"), Ok("open"));
    assert_eq!(chosen(None, WireFormat::Chat, "llama"), Ok("rest"));
    assert_eq!(chosen(None, WireFormat::Anthropic, "claude-opus-4-5"), Ok("claude"));
    assert_eq!(chosen(Some("rest"), WireFormat::Chat, "gpt-5"), Ok("rest"));
    let words = |result: Result<&str, GatewayError>| result.unwrap_err().message;
    assert_eq!(chosen(None, WireFormat::Responses, "llama"), Ok("rest"), "put on the chat wire");
    assert!(
        words(chosen(Some("claude"), WireFormat::Responses, "x"))
            .contains("does not speak the responses wire")
    );
    assert!(words(chosen(Some("nobody"), WireFormat::Chat, "x")).contains("no upstream `nobody`"));
    let none = Upstreams::default();
    assert!(none.choose(None, WireFormat::Chat, "x").unwrap_err().message.contains("no upstream speaks"));
}

#[test]
fn requests_are_put_on_another_wire_where_nobody_speaks_theirs() {
    use WireFormat::{Anthropic, Chat, Responses};
    let all = vec![
        upstream("local", &[Chat], &["llama*"]),
        upstream("claude", &[Anthropic], &["claude-*"]),
        upstream("both", &[Chat, Anthropic], &["claude-9"]),
    ];
    let upstreams = Upstreams { all };
    let chosen = |wire, model| {
        upstreams.choose(None, wire, model).map(|(upstream, spoken)| (upstream.name.as_str(), spoken))
    };
    assert_eq!(chosen(Anthropic, "llama-4"), Ok(("local", Chat)));
    assert_eq!(chosen(Responses, "llama-4"), Ok(("local", Chat)));
    assert_eq!(chosen(Chat, "claude-1"), Ok(("claude", Anthropic)));
    assert_eq!(chosen(Chat, "claude-9"), Ok(("both", Chat)), "whoever speaks the wire comes first");
    assert!(chosen(Responses, "claude-1").is_err(), "nobody puts Responses on Anthropic");
}
