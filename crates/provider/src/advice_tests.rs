//! Tests that advice names the remedy.

use crate::endpoint::{Endpoint, EndpointSettings};
use crate::failure::Failure;
use crate::provider_error::{ConnectStage, ImageComplaint, ProviderError, ProviderErrorKind, WrongWireSign};
use crate::sizes::RequestLimits;
use throughline_transcript::WireFormat;

fn endpoint(provider: &str, base_url: &str, api_key: &str, api_key_env: &str) -> Endpoint {
    let settings = EndpointSettings {
        prefix: "model",
        provider,
        base_url,
        wire: None,
        api_key,
        api_key_env,
        headers: &[],
        model: "",
    };
    let key = |name: &str| name.ends_with("KEY").then(|| "secret-key".to_owned());
    Endpoint::resolve(&settings, key).unwrap()
}

#[test]
fn each_kind_that_a_person_can_mend() {
    let remote = endpoint("anthropic", "", "", "");
    let keyed = endpoint("anthropic", "", "own-key", "");
    let local = endpoint("ollama", "", "", "");
    let say = |kind: &ProviderErrorKind, endpoint: &Endpoint| {
        ProviderError::of(kind.clone()).advice(endpoint, "m-1").unwrap()
    };
    assert_eq!(
        say(&ProviderErrorKind::Auth, &remote),
        "check the key in ANTHROPIC_API_KEY, or name another variable in `model.api_key_env`"
    );
    assert_eq!(say(&ProviderErrorKind::Auth, &keyed), "check the key in `model.api_key`");
    assert!(say(&ProviderErrorKind::Auth, &local).contains("`model.api_key_env`"));
    let unknown = say(&ProviderErrorKind::UnknownModel, &remote);
    assert!(unknown.contains("`m-1`") && unknown.contains("`model.default`"), "{unknown}");
    assert!(say(&ProviderErrorKind::Forbidden, &remote).contains("`m-1`"));
    assert!(say(&ProviderErrorKind::Quota { affordable_tokens: Some(9) }, &remote).contains("at most 9"));
    assert!(say(&ProviderErrorKind::Quota { affordable_tokens: None }, &remote).contains("credit"));
    let allowance = ProviderErrorKind::OverAllowance { allowed_tokens: None, asked_tokens: None };
    assert!(say(&allowance, &remote).contains("`compression.threshold_tokens`"));
    let down = ProviderErrorKind::Unreachable { stage: ConnectStage::Connect };
    assert_eq!(say(&down, &local), "start the server at http://127.0.0.1:11434/v1, or set `model.base_url`");
    assert!(say(&down, &remote).contains("`model.base_url` (https://api.anthropic.com)"));
    for stage in [ConnectStage::Name, ConnectStage::Tls, ConnectStage::Closed] {
        assert!(say(&ProviderErrorKind::Unreachable { stage }, &remote).contains("api.anthropic.com"));
    }
    for sign in [
        WrongWireSign::NoSuchPath,
        WrongWireSign::Html,
        WrongWireSign::NotJson,
        WrongWireSign::OtherShape,
        WrongWireSign::Redirect,
    ] {
        let said = say(&ProviderErrorKind::WrongWire { sign }, &remote);
        assert!(
            said.contains("https://api.anthropic.com/v1/messages") && said.contains("`model.base_url`"),
            "{said}"
        );
    }
    let cap = |largest| ProviderErrorKind::OutputCapTooLarge {
        largest_cap_tokens: largest,
        window_tokens: None,
        prompt_tokens: None,
    };
    assert_eq!(say(&cap(Some(64)), &remote), "set `model.max_tokens` to at most 64");
    assert_eq!(say(&cap(None), &remote), "lower `model.max_tokens`");
    let blind = ProviderErrorKind::ImageRefused { complaint: ImageComplaint::NotSupported };
    assert!(say(&blind, &remote).contains("pictures"));
    assert_eq!(ProviderError::of(ProviderErrorKind::Overload).advice(&remote, "m-1"), None);
    assert_eq!(ProviderError::of(ProviderErrorKind::Unknown).advice(&remote, "m-1"), None);
}

#[test]
fn a_key_wanted_in_another_form_tells_of_another_wire() {
    let settings = |wire| EndpointSettings {
        prefix: "model",
        provider: "custom",
        base_url: "https://models.example/v1",
        wire: Some(wire),
        api_key: "own-key",
        api_key_env: "",
        headers: &[],
        model: "",
    };
    let say = |wire, words: &str| {
        let endpoint = Endpoint::resolve(&settings(wire), |_| None).unwrap();
        let body = serde_json::json!({ "error": { "message": words } }).to_string();
        let refusal = Failure::Answer { status: 401, headers: &[], body: body.as_bytes() };
        let mut trouble = ProviderError::classify(refusal, RequestLimits::default());
        assert_eq!(trouble.kind, ProviderErrorKind::Auth);
        // As after masking: the classification stays.
        trouble.words.clear();
        trouble.advice(&endpoint, "m-1").unwrap()
    };
    assert!(say(WireFormat::Chat, "invalid x-api-key").contains("set `model.wire` to `anthropic`"));
    let bearer = "You didn't provide an API key in an Authorization header using Bearer auth";
    assert!(say(WireFormat::Anthropic, bearer).contains("set `model.wire` to `chat`"));
    for (wire, words) in
        [(WireFormat::Chat, bearer), (WireFormat::Anthropic, "invalid x-api-key"), (WireFormat::Chat, "no")]
    {
        assert_eq!(say(wire, words), "check the key in `model.api_key`", "{wire} {words}");
    }
}

#[test]
fn about_a_list_the_address_of_the_list_is_named() {
    let gone = ProviderError::of(ProviderErrorKind::WrongWire { sign: WrongWireSign::NoSuchPath });
    let local = endpoint("ollama", "", "", "");
    let said = gone.advice_on_list(&local, "m-1").unwrap();
    assert!(said.contains("http://127.0.0.1:11434/v1/models does not exist"), "{said}");
}
