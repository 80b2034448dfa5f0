//! Tests of endpoints from settings, and of the error messages.

use throughline_transcript::WireFormat;

use super::{Endpoint, EndpointError, EndpointKind, EndpointSettings, KeySource};
use crate::cache_policy::CacheSeller;

const NONE: EndpointSettings<'static> = EndpointSettings {
    prefix: "model",
    provider: "",
    base_url: "",
    wire: None,
    api_key: "",
    api_key_env: "",
    headers: &[],
    model: "",
};

fn with(variables: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    move |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

const ALL_KEYS: &[(&str, &str)] =
    &[("ANTHROPIC_API_KEY", "a-key"), ("OPENAI_API_KEY", "o-key"), ("OPENROUTER_API_KEY", "r-key")];

#[test]
fn every_kind_by_its_name() {
    for (name, url, wire, seller) in [
        ("anthropic", "https://api.anthropic.com/v1/messages", WireFormat::Anthropic, CacheSeller::Anthropic),
        ("openai", "https://api.openai.com/v1/responses", WireFormat::Responses, CacheSeller::OpenAi),
        (
            "openrouter",
            "https://openrouter.ai/api/v1/chat/completions",
            WireFormat::Chat,
            CacheSeller::OpenRouter,
        ),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions", WireFormat::Chat, CacheSeller::Other),
        ("llama.cpp", "http://127.0.0.1:8080/v1/chat/completions", WireFormat::Chat, CacheSeller::Other),
        ("lm-studio", "http://127.0.0.1:1234/v1/chat/completions", WireFormat::Chat, CacheSeller::Other),
    ] {
        let endpoint =
            Endpoint::resolve(&EndpointSettings { provider: name, ..NONE }, with(ALL_KEYS)).unwrap();
        assert_eq!(endpoint.wire, wire, "{name}");
        assert_eq!(endpoint.base.of_wire(wire), url, "{name}");
        assert_eq!(endpoint.cache_seller(), seller, "{name}");
        assert_eq!(endpoint.key.is_some(), endpoint.kind.usual_key_variable().is_some(), "{name}");
    }
    let codex = EndpointSettings { provider: "openai-codex", api_key: "token", ..NONE };
    let codex = Endpoint::resolve(&codex, with(&[])).unwrap();
    assert_eq!(codex.base.of_wire(codex.wire), "https://chatgpt.com/backend-api/codex/responses");
    for kind in EndpointKind::ALL {
        assert_eq!(EndpointKind::parse(kind.name()), Some(kind));
        assert!(!kind.wires().is_empty());
    }
}

#[test]
fn servers_on_this_machine_are_where_they_were_told_to_listen() {
    for (kind, variables, url) in [
        ("ollama", &[("OLLAMA_HOST", "127.0.0.1:7001")][..], "http://127.0.0.1:7001/v1"),
        ("ollama", &[("OLLAMA_HOST", "0.0.0.0")][..], "http://127.0.0.1:11434/v1"),
        ("ollama", &[("OLLAMA_HOST", ":7002")][..], "http://127.0.0.1:7002/v1"),
        ("ollama", &[("OLLAMA_HOST", "https://models.lan/")][..], "https://models.lan/v1"),
        ("ollama", &[("OLLAMA_HOST", "not an address")][..], "http://127.0.0.1:11434/v1"),
        ("llama.cpp", &[("LLAMA_ARG_PORT", "7003")][..], "http://127.0.0.1:7003/v1"),
        (
            "llama.cpp",
            &[("LLAMA_ARG_HOST", "10.0.0.5"), ("LLAMA_ARG_PORT", "7004")][..],
            "http://10.0.0.5:7004/v1",
        ),
        ("lmstudio", &[("LM_STUDIO_API_BASE", "http://127.0.0.1:7005/v1")][..], "http://127.0.0.1:7005/v1"),
    ] {
        let endpoint = Endpoint::resolve(&EndpointSettings { provider: kind, ..NONE }, with(variables));
        assert_eq!(endpoint.unwrap().base.as_str(), url, "{variables:?}");
    }
    let configured = EndpointSettings { provider: "ollama", base_url: "http://10.0.0.9:11434/v1", ..NONE };
    let endpoint = Endpoint::resolve(&configured, with(&[("OLLAMA_HOST", "127.0.0.1:7001")])).unwrap();
    assert_eq!(endpoint.base.as_str(), "http://10.0.0.9:11434/v1", "what is configured counts first");
}

#[test]
fn auto_takes_what_is_there() {
    let auto = |model: &'static str, base_url: &'static str, keys| {
        let settings = EndpointSettings { provider: "auto", model, base_url, ..NONE };
        Endpoint::resolve(&settings, with(keys)).map(|endpoint| endpoint.kind)
    };
    assert_eq!(auto("claude-opus-5", "", ALL_KEYS), Ok(EndpointKind::Anthropic));
    assert_eq!(auto("gpt-6", "", ALL_KEYS), Ok(EndpointKind::OpenAi));
    assert_eq!(auto("anthropic/claude-opus-5", "", ALL_KEYS), Ok(EndpointKind::OpenRouter));
    assert_eq!(auto("qwen3", "", ALL_KEYS), Ok(EndpointKind::OpenRouter));
    assert_eq!(auto("claude-opus-5", "", &[("OPENROUTER_API_KEY", "r")]), Ok(EndpointKind::OpenRouter));
    assert_eq!(auto("", "", &[("OPENAI_API_KEY", "o")]), Ok(EndpointKind::OpenAi));
    assert_eq!(auto("x", "http://localhost:11434", &[]), Ok(EndpointKind::Ollama));
    assert_eq!(auto("x", "http://127.0.0.1:1234/v1", &[]), Ok(EndpointKind::LmStudio));
    assert_eq!(
        auto("x", "https://eu.api.openai.com/v1", &[("OPENAI_API_KEY", "o")]),
        Ok(EndpointKind::OpenAi)
    );
    assert_eq!(auto("x", "https://evil-openai.com/v1", &[]), Ok(EndpointKind::Custom));
    let blank = auto("gpt-6", "", &[("OPENAI_API_KEY", "  ")]).unwrap_err();
    assert_eq!(
        blank.to_string(),
        "no model endpoint is configured: set `model.provider` or `model.base_url`, or one of the variables ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY"
    );
}

#[test]
fn keys_come_from_settings_or_variables_and_go_nowhere_else() {
    let setting = EndpointSettings { provider: "openai", api_key: "own", ..NONE };
    let endpoint = Endpoint::resolve(&setting, with(ALL_KEYS)).unwrap();
    assert_eq!(endpoint.key_source, KeySource::Setting("model.api_key".to_owned()));
    assert!(!format!("{endpoint:?}").contains("own"), "{endpoint:?}");
    let named = EndpointSettings { provider: "openai", api_key_env: "MINE", ..NONE };
    let endpoint = Endpoint::resolve(&named, with(&[("MINE", "k"), ("OPENAI_API_KEY", "o")])).unwrap();
    assert_eq!(endpoint.key_source, KeySource::Variable("MINE".to_owned()));
    // The default key is not sent to another host.
    let elsewhere = EndpointSettings { provider: "openai", base_url: "https://proxy.example/v1", ..NONE };
    let endpoint = Endpoint::resolve(&elsewhere, with(ALL_KEYS)).unwrap();
    assert_eq!((endpoint.key, endpoint.key_source), (None, KeySource::NotNeeded));
}

#[test]
fn headers_of_each_wire() {
    let of = |provider, key, wire_format| {
        let settings = EndpointSettings { provider, api_key: key, base_url: "https://x.example", ..NONE };
        Endpoint::resolve(&settings, with(&[])).unwrap().wire_headers(wire_format)
    };
    let version = ("anthropic-version", "2023-06-01".to_owned());
    assert_eq!(of("anthropic", "k", WireFormat::Anthropic), [version.clone(), ("x-api-key", "k".to_owned())]);
    let token = of("anthropic", "sk-ant-oat01-x", WireFormat::Anthropic);
    assert_eq!(token[1].0, "anthropic-beta");
    assert_eq!(token[2], ("authorization", "Bearer sk-ant-oat01-x".to_owned()));
    assert_eq!(of("openai", "k", WireFormat::Chat), [("authorization", "Bearer k".to_owned())]);
    assert_eq!(
        of("openrouter", "k", WireFormat::Anthropic),
        [version.clone(), ("authorization", "Bearer k".to_owned())]
    );
    assert_eq!(of("custom", "k", WireFormat::Anthropic), [version, ("x-api-key", "k".to_owned())]);
    assert_eq!(of("ollama", "", WireFormat::Chat), []);
}

#[test]
fn what_is_wrong_is_said_with_what_mends_it() {
    let error =
        |settings: EndpointSettings<'_>| Endpoint::resolve(&settings, with(&[])).unwrap_err().to_string();
    assert_eq!(
        error(EndpointSettings { provider: "anthropik", ..NONE }),
        "`model.provider` is `anthropik`, which is not known (did you mean `anthropic`?); known are anthropic, openai, openrouter, openai-codex, ollama, llama.cpp, lmstudio, custom"
    );
    assert!(!error(EndpointSettings { provider: "zzz", ..NONE }).contains("did you mean"));
    assert_eq!(
        error(EndpointSettings { provider: "anthropic", ..NONE }),
        "there is no key for anthropic: set the variable ANTHROPIC_API_KEY, or name another in `model.api_key_env`"
    );
    assert_eq!(
        error(EndpointSettings {
            prefix: "auxiliary.compression",
            provider: "openai",
            api_key_env: "MINE",
            ..NONE
        }),
        "there is no key for openai: set the variable MINE, or name another in `auxiliary.compression.api_key_env`"
    );
    assert_eq!(
        error(EndpointSettings { provider: "custom", ..NONE }),
        "`model.provider` is `custom`, so `model.base_url` must say where it is"
    );
    assert_eq!(
        error(EndpointSettings { base_url: "localhost", ..NONE }),
        "`model.base_url` cannot be used: it is not an address"
    );
    assert_eq!(
        error(EndpointSettings { provider: "anthropic", api_key: "k", wire: Some(WireFormat::Chat), ..NONE }),
        "anthropic does not speak the chat wire: set `model.wire` to `auto`, or another `model.provider`"
    );
    assert_eq!(
        error(EndpointSettings { provider: "ollama", api_key: "k\u{e9}y", ..NONE }),
        "the key contains characters that cannot be sent in a header"
    );
    let headers = [("x-ok".to_owned(), "a\nb".to_owned())];
    assert_eq!(
        error(EndpointSettings { provider: "ollama", headers: &headers, ..NONE }),
        "the header `x-ok` contains characters that cannot be sent in a header"
    );
    let error = Endpoint::resolve(&EndpointSettings { provider: "nope", ..NONE }, with(&[]));
    assert!(matches!(error, Err(EndpointError::UnknownProvider { nearest: None, .. })));
}
