//! Tokens: who is let in, in whose name, and how much they may use.

use serde_json::{Value, json};
use throughline_gateway::{AccessPolicy, AccessTokens, TokenLimits};
use throughline_provider::EndpointKind;
use throughline_testkit::{Gate, Reply, ReplyFault, Script};

use crate::stage::{MODEL, Stage};

/// The tokens of a test, by name; each is its own owner.
struct Tokens {
    book: AccessTokens,
    secrets: Vec<String>,
}

impl Tokens {
    fn new(limits: &[TokenLimits]) -> Self {
        let mut book = AccessTokens::default();
        let add = |(number, limits): (u8, &TokenLimits)| {
            let name = format!("tenant-{number}");
            book.add(&name, &name, &[number + 1; 32], 0, *limits).unwrap()
        };
        let secrets = (0..).zip(limits).map(add).collect();
        Self { book, secrets }
    }

    async fn stage(&self, script: impl Into<Script>) -> Stage {
        let mut stage = Stage::new(None, script).await;
        stage.access = AccessPolicy::Tokens(self.book.clone());
        stage.start().await;
        stage
    }
}

fn no_limits() -> TokenLimits {
    TokenLimits::default()
}

fn chat(model: &str, words: &str) -> String {
    json!({ "model": model, "messages": [{"role": "user", "content": words}] }).to_string()
}

async fn ask(stage: &Stage, path: &str, headers: &[(&str, &str)], body: Option<String>) -> (u16, Value) {
    let url = stage.at(path);
    let request = match body {
        Some(body) => stage.http.post(url).header("content-type", "application/json").body(body),
        None => stage.http.get(url),
    };
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
}

/// Asks until the answer has this status: what an answer leads to may be done a moment after its last byte.
async fn until<F: Future<Output = (u16, Value)>>(status: u16, ask: impl Fn() -> F) -> Value {
    for _ in 0..1_000 {
        let (got, body) = ask().await;
        if got == status {
            return body;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{status} never came");
}

fn yes() -> Script {
    Script::answering(|_| Reply::text("yes"))
}

#[tokio::test]
async fn nobody_comes_in_without_a_token_and_every_wire_is_shown_in_its_form() {
    let tokens = Tokens::new(&[no_limits()]);
    let stage = tokens.stage(yes()).await;
    for token in ["", "tl_0000", "sk-of-somebody"] {
        let headers = [("x-throughline-token", token)];
        let (status, body) = ask(&stage, "/api/sessions", &headers, None).await;
        assert_eq!((status, &body["error"]["code"]), (401, &json!("unauthorised")));
        let (status, body) = ask(&stage, "/v1/messages", &headers, Some("{}".to_owned())).await;
        assert_eq!(
            (status, &body["type"], &body["error"]["type"]),
            (401, &json!("error"), &json!("authentication_error"))
        );
        let (status, body) = ask(&stage, "/v1/chat/completions", &headers, Some(chat(MODEL, "hi"))).await;
        assert_eq!((status, &body["error"]["type"]), (401, &json!("authentication_error")));
    }
    assert_eq!(ask(&stage, "/healthz", &[], None).await.0, 200);
    assert!(stage.upstream.calls().is_empty());
    // A token is enough, wherever the page and whatever the host.
    let token = tokens.secrets[0].as_str();
    let headers =
        [("x-throughline-token", token), ("origin", "https://elsewhere.example"), ("host", "gate.example")];
    assert_eq!(ask(&stage, "/api/sessions", &headers, None).await.0, 200);
    // Revoked is revoked at once.
    stage.gateway.as_ref().unwrap().set_access(AccessPolicy::Tokens(AccessTokens::default()));
    assert_eq!(ask(&stage, "/api/sessions", &headers, None).await.0, 401);
}

#[tokio::test]
async fn a_token_travels_beside_the_key_or_in_its_place_and_never_further() {
    let tokens = Tokens::new(&[no_limits()]);
    let stage = tokens.stage(yes()).await;
    let token = tokens.secrets[0].as_str();
    let bearer = format!("Bearer {token}");
    let ways = [
        vec![("x-throughline-token", token), ("authorization", "Bearer sk-own")],
        vec![("authorization", bearer.as_str())],
        vec![("x-api-key", token)],
        vec![("x-throughline-token", token), ("x-api-key", token)],
    ];
    for headers in &ways {
        let (status, _) = ask(&stage, "/v1/chat/completions", headers, Some(chat(MODEL, "hi"))).await;
        assert_eq!(status, 200, "{headers:?}");
    }
    let calls = stage.upstream.calls();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[0].header("authorization"), Some("Bearer sk-own"));
    for call in &calls {
        assert!(!format!("{call:?}").contains(token), "{call:?}");
    }
}

#[tokio::test]
async fn one_tenant_sees_nothing_of_another() {
    let tokens = Tokens::new(&[no_limits(), no_limits()]);
    let stage = tokens.stage(yes()).await;
    let of = |tenant: usize| [("x-throughline-token", tokens.secrets[tenant].as_str())];
    let (one, two) = (of(0), of(1));
    let mut events = stage.http.get(stage.at("/api/events")).header(two[0].0, two[0].1).send().await.unwrap();
    let secret = "the harbour master's sister";
    ask(&stage, "/v1/chat/completions", &one, Some(chat(MODEL, secret))).await;
    let (_, list) = ask(&stage, "/api/sessions", &one, None).await;
    let id = list["sessions"][0]["tip"]["id"].as_str().unwrap().to_owned();
    assert_eq!(list["sessions"][0]["tip"]["owner"], "tenant-0");
    // What was said may come into the record a moment after the last byte of its answer.
    let mut found = 0;
    for _ in 0..1_000 {
        let (_, hits) = ask(&stage, "/api/search?q=harbour", &one, None).await;
        found = hits["hits"].as_array().unwrap().len();
        if found > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(found, 1);
    // The other sees no session, finds no word, counts no call, and cannot name it.
    assert_eq!(ask(&stage, "/api/sessions", &two, None).await.1["sessions"], json!([]));
    assert_eq!(ask(&stage, "/api/search?q=harbour", &two, None).await.1["hits"], json!([]));
    assert_eq!(ask(&stage, "/api/usage", &two, None).await.1["total"]["calls"], 0);
    for path in ["", "/transcript", "/view"] {
        assert_eq!(ask(&stage, &format!("/api/sessions/{id}{path}"), &two, None).await.0, 404);
    }
    for path in ["compact", "undo"] {
        let path = format!("/api/sessions/{id}/{path}");
        assert_eq!(ask(&stage, &path, &two, Some("{}".to_owned())).await.0, 404);
    }
    let named = [two[0], ("x-throughline-session", id.as_str())];
    assert_eq!(ask(&stage, "/v1/chat/completions", &named, Some(chat(MODEL, "mine"))).await.0, 404);
    // The same words are another conversation when somebody else says them; so is the same key.
    ask(&stage, "/v1/chat/completions", &two, Some(chat(MODEL, secret))).await;
    let say = json!({ "text": "hi", "model": MODEL }).to_string();
    ask(&stage, "/api/conversations/k/messages", &one, Some(say.clone())).await;
    ask(&stage, "/api/conversations/k/messages", &two, Some(say)).await;
    for tenant in [&one, &two] {
        assert_eq!(
            ask(&stage, "/api/sessions", tenant, None).await.1["sessions"].as_array().unwrap().len(),
            2
        );
    }
    // Whoever listens hears of their own only.
    let mut heard = String::new();
    while !heard.contains("event: served") {
        heard.push_str(std::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(!heard.contains(&id));
}

#[tokio::test]
async fn requests_in_a_minute_and_bodies_are_limited() {
    let limits = TokenLimits { requests_per_minute: Some(2), body_bytes: Some(2_000), ..no_limits() };
    let tokens = Tokens::new(&[limits, no_limits()]);
    let stage = tokens.stage(yes()).await;
    let headers = [("x-throughline-token", tokens.secrets[0].as_str())];
    let (status, body) = ask(&stage, "/v1/messages", &headers, Some("x".repeat(3_000))).await;
    assert_eq!((status, &body["error"]["type"]), (413, &json!("request_too_large")));
    assert_eq!(ask(&stage, "/v1/chat/completions", &headers, Some(chat(MODEL, "hi"))).await.0, 200);
    let (status, body) = ask(&stage, "/v1/messages", &headers, Some("{}".to_owned())).await;
    assert_eq!((status, &body["error"]["type"]), (429, &json!("rate_limit_error")));
    let url = stage.at("/api/sessions");
    let refused = stage.http.get(url).header(headers[0].0, headers[0].1).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "30");
    // Another's limit is another's.
    let other = [("x-throughline-token", tokens.secrets[1].as_str())];
    assert_eq!(ask(&stage, "/api/sessions", &other, None).await.0, 200);
}

#[tokio::test]
async fn a_packed_body_counts_as_what_it_unpacks_to() {
    use std::io::Write as _;
    let tokens = Tokens::new(&[TokenLimits { body_bytes: Some(2_000), ..no_limits() }]);
    let stage = tokens.stage(yes()).await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(chat(MODEL, &"a".repeat(100_000)).as_bytes()).unwrap();
    let request = stage.http.post(stage.at("/v1/chat/completions")).header("content-encoding", "gzip");
    let request = request.header("x-throughline-token", &tokens.secrets[0]).body(packer.finish().unwrap());
    assert_eq!(request.send().await.unwrap().status(), 413);
}

#[tokio::test]
async fn requests_at_the_same_time_are_limited_for_as_long_as_answers_take() {
    let gate = Gate::new();
    let waits = ReplyFault::Wait(gate.clone());
    let script = Script::answering(move |_| Reply::text("word ".repeat(50)).failing_after(6, waits.clone()));
    let tokens = Tokens::new(&[TokenLimits { concurrent: Some(1), ..no_limits() }]);
    let stage = tokens.stage(script).await;
    let headers = [("x-throughline-token", tokens.secrets[0].as_str())];
    let body = json!({ "model": MODEL, "stream": true, "messages": [{"role": "user", "content": "hi"}] });
    let request = stage.http.post(stage.at("/v1/chat/completions")).header(headers[0].0, headers[0].1);
    let begun = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(begun.status(), 200);
    assert_eq!(ask(&stage, "/api/sessions", &headers, None).await.0, 429);
    gate.open();
    assert!(begun.text().await.unwrap().contains("[DONE]"));
    until(200, || ask(&stage, "/api/sessions", &headers, None)).await;
}

#[tokio::test]
async fn money_is_limited_and_nothing_passes_uncounted() {
    let limits = TokenLimits { micro_usd_per_day: Some(1), ..no_limits() };
    let tokens = Tokens::new(&[limits, no_limits()]);
    let mut stage = tokens.stage(yes()).await;
    // What an unknown server asks for a model nobody knows.
    stage.kind = EndpointKind::OpenAi;
    stage.start().await;
    let headers = [("x-throughline-token", tokens.secrets[0].as_str())];
    // What could not be counted is refused beforehand; looking is free.
    assert_eq!(ask(&stage, "/v1/embeddings", &headers, Some("{}".to_owned())).await.0, 402);
    let leaning = json!({ "model": "gpt-5.2", "input": "hi", "previous_response_id": "resp_1" }).to_string();
    assert_eq!(ask(&stage, "/v1/responses", &headers, Some(leaning)).await.0, 402);
    let (status, refused) =
        ask(&stage, "/v1/chat/completions", &headers, Some(chat("nobodys-model", "hi"))).await;
    assert_eq!(status, 402);
    assert!(refused.to_string().contains("the price of nobodys-model"), "{refused}");
    assert!(stage.upstream.calls().is_empty());
    let words = "a lot of words ".repeat(200);
    assert_eq!(ask(&stage, "/v1/chat/completions", &headers, Some(chat("gpt-5.2", &words))).await.0, 200);
    let body = until(402, || ask(&stage, "/v1/messages", &headers, Some("{}".to_owned()))).await;
    assert_eq!(body["error"]["type"], "billing_error");
    let other = [("x-throughline-token", tokens.secrets[1].as_str())];
    assert_eq!(ask(&stage, "/v1/chat/completions", &other, Some(chat("gpt-5.2", &words))).await.0, 200);
}

/// Whoever only listens would do so for good.
#[tokio::test]
async fn a_revoked_token_hears_nothing_more() {
    let tokens = Tokens::new(&[no_limits(), no_limits()]);
    let stage = tokens.stage(yes()).await;
    let request = stage.http.get(stage.at("/api/events")).header("x-throughline-token", &tokens.secrets[0]);
    let mut events = request.send().await.unwrap();
    assert_eq!(events.chunk().await.unwrap().as_deref(), Some(&b": listening\n\n"[..]));
    let mut left = tokens.book.clone();
    assert!(left.revoke(&tokens.book.entries()[0].name));
    stage.gateway.as_ref().unwrap().set_access(AccessPolicy::Tokens(left));
    while let Ok(Some(_)) = events.chunk().await {}
    let headers = [("x-throughline-token", tokens.secrets[0].as_str())];
    assert_eq!(ask(&stage, "/api/sessions", &headers, None).await.0, 401);
}

#[tokio::test]
async fn two_tokens_are_none() {
    let tokens = Tokens::new(&[no_limits(), no_limits()]);
    let stage = tokens.stage(yes()).await;
    let headers = [
        ("x-throughline-token", tokens.secrets[0].as_str()),
        ("x-throughline-token", tokens.secrets[1].as_str()),
    ];
    assert_eq!(ask(&stage, "/api/sessions", &headers, None).await.0, 401);
}
