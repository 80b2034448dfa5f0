use super::*;

fn upstream(name: &str, wires: &[Dialect], models: &[&str]) -> UpstreamSpec {
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
        upstream("claude", &[Dialect::Anthropic], &["claude-*"]),
        upstream("open", &[Dialect::Chat, Dialect::Responses], &["gpt-*"]),
        upstream("rest", &[Dialect::Chat], &[]),
    ];
    let upstreams = Upstreams { all };
    let chosen =
        |named, wire, model| upstreams.choose(named, wire, model).map(|upstream| upstream.name.as_str());
    assert_eq!(chosen(None, Dialect::Chat, "gpt-5"), Ok("open"));
    assert_eq!(chosen(None, Dialect::Chat, "llama"), Ok("rest"));
    assert_eq!(chosen(None, Dialect::Anthropic, "claude-opus-4-5"), Ok("claude"));
    assert_eq!(chosen(Some("rest"), Dialect::Chat, "gpt-5"), Ok("rest"));
    let words = |result: Result<&str, Refused>| result.unwrap_err().message;
    assert!(
        words(chosen(None, Dialect::Anthropic, "gpt-5")).contains("no upstream serves the model `gpt-5`")
    );
    assert!(
        words(chosen(Some("rest"), Dialect::Anthropic, "x")).contains("does not speak the anthropic wire")
    );
    assert!(words(chosen(Some("nobody"), Dialect::Chat, "x")).contains("no upstream `nobody`"));
    let none = Upstreams::default();
    assert!(none.choose(None, Dialect::Chat, "x").unwrap_err().message.contains("gateway.upstreams"));
}
