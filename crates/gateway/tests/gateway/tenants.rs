//! Tenants of one operator's key: what they may use of the provider, whose objects are whose, and what never gets out.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_gateway::{
    AccessPolicy, AccessTokens, AnswerEnd, GatewayEvent, PeerUser, TenantPaths, TokenLimits,
};
use throughline_provider::{EndpointKind, HoldLimits};
use throughline_store::{CallFilter, Owner, SessionFilter, UsageBy};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, eventually};

const OPERATOR_KEY: &str = "sk-operator-Zx81Qw72Er63Ty54Ui45Op36";

fn yes() -> Script {
    Script::answering(|_| Reply::text("yes"))
}

fn page(path: &str, body: &Value) -> (String, Reply) {
    (path.to_owned(), Reply::json(200, body.to_string()))
}

/// A gateway with an operator's key, and the tokens of two tenants.
async fn shared(pages: Vec<(String, Reply)>, limits: TokenLimits) -> (Stage, [String; 2]) {
    let mut book = AccessTokens::default();
    let mut add = |name: &str, byte: u8| book.add(name, name, &[byte; 32], 0, limits).unwrap();
    let tokens = [add("one", 1), add("two", 2)];
    let mut stage = Stage::with_pages(pages, yes()).await;
    stage.access = AccessPolicy::Tokens(book);
    stage.upstream_key = Some(OPERATOR_KEY);
    stage.kind = EndpointKind::OpenAi;
    stage.start().await;
    (stage, tokens)
}

async fn send(stage: &Stage, token: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = stage.http.request(method, stage.at(path)).header("x-throughline-token", token);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
}

fn asked(stage: &Stage) -> Vec<String> {
    let requests = stage.upstream.requests();
    requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test]
async fn a_path_that_is_not_on_the_list_is_refused_by_name_and_never_sent_on() {
    let (mut stage, [one, _]) =
        shared(vec![page("/v1/files", &json!({ "data": [] }))], TokenLimits::default()).await;
    for (method, path) in [
        ("GET", "/v1/files"),
        ("DELETE", "/v1/models/gpt"),
        ("GET", "/v1/organization/users"),
        ("POST", "/v1/organization/invites"),
        ("GET", "/v1/fine_tuning/jobs"),
    ] {
        let (status, body) = send(&stage, &one, method, path, None).await;
        let words = body["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(status, 403, "{method} {path}: {body}");
        assert!(
            words.contains(&format!("{method} {path}")) && words.contains("gateway.tenant_paths"),
            "{words}"
        );
    }
    assert_eq!(asked(&stage), Vec::<String>::new());
    assert_eq!(send(&stage, &one, "GET", "/v1/models", None).await.0, 200);
    // The operator may widen the list.
    stage.tenant_paths = TenantPaths::with("GET /v1/files").unwrap();
    stage.start().await;
    assert_eq!(send(&stage, &one, "GET", "/v1/files", None).await.0, 200);
    assert_eq!(asked(&stage), ["GET /v1/models", "GET /v1/files"]);
}

#[tokio::test]
async fn without_an_operators_key_everything_passes_as_before() {
    let (mut stage, [one, _]) =
        shared(vec![page("/v1/files", &json!({ "data": [] }))], TokenLimits::default()).await;
    stage.upstream_key = None;
    stage.start().await;
    assert_eq!(send(&stage, &one, "GET", "/v1/files", None).await.0, 200);
    assert_eq!(
        send(&stage, &one, "DELETE", "/v1/files/file_1", None).await.0,
        404,
        "the upstream's own answer"
    );
    assert_eq!(asked(&stage).len(), 2);
}

#[tokio::test]
async fn a_stored_object_belongs_to_the_tenant_that_created_it() {
    let pages = vec![
        page("/v1/files", &json!({ "id": "file_1", "object": "file" })),
        page("/v1/files/file_1", &json!({ "id": "file_1" })),
        page("/v1/batches", &json!({ "id": "batch_1", "input_file_id": "file_1" })),
        page("/v1/batches/batch_1", &json!({ "id": "batch_1", "output_file_id": "file_out" })),
        page("/v1/files/file_out/content", &json!({ "id": "file_of_the_operator" })),
    ];
    let (stage, [one, two]) = shared(pages, TokenLimits::default()).await;
    assert_eq!(send(&stage, &one, "GET", "/v1/files/file_1", None).await.0, 404, "nobody's yet");
    assert_eq!(send(&stage, &one, "POST", "/v1/files", Some(json!({}))).await.0, 200);
    assert_eq!(send(&stage, &one, "GET", "/v1/files/file_1", None).await.0, 200);
    let batch = json!({ "input_file_id": "file_1" });
    assert_eq!(send(&stage, &two, "POST", "/v1/batches", Some(batch.clone())).await.0, 404);
    assert_eq!(send(&stage, &one, "POST", "/v1/batches", Some(batch)).await.0, 200);
    // Files that were made for a batch belong to whoever asked for it.
    assert_eq!(send(&stage, &one, "GET", "/v1/files/file_out/content", None).await.0, 404);
    assert_eq!(send(&stage, &one, "GET", "/v1/batches/batch_1", None).await.0, 200);
    assert_eq!(send(&stage, &one, "GET", "/v1/files/file_out/content", None).await.0, 200);
    // What a tenant wrote into a file makes it no owner of anything.
    assert_eq!(send(&stage, &one, "GET", "/v1/files/file_of_the_operator", None).await.0, 404);
    let before = asked(&stage).len();
    for (method, path) in [
        ("GET", "/v1/files/file_1"),
        ("DELETE", "/v1/files/file_1"),
        ("GET", "/v1/files/file_1/content"),
        ("GET", "/v1/batches/batch_1"),
        ("POST", "/v1/batches/batch_1/cancel"),
    ] {
        let (status, body) = send(&stage, &two, method, path, None).await;
        assert_eq!(
            (status, &body["error"]["type"]),
            (404, &json!("not_found_error")),
            "{method} {path}: {body}"
        );
    }
    for body in [
        json!({ "model": MODEL, "input": [{ "role": "user", "content": [{ "type": "input_file", "file_id": "file_1" }] }] }),
        json!({ "model": MODEL, "input": "hi", "conversation": "file_1" }),
    ] {
        assert_eq!(send(&stage, &two, "POST", "/v1/responses", Some(body)).await.0, 404);
    }
    assert_eq!(asked(&stage).len(), before, "nothing of it went on");
}

#[tokio::test]
async fn a_response_belongs_to_the_tenant_that_asked_for_it_streamed_or_not() {
    for stream in [false, true] {
        let (stage, [one, two]) = shared(Vec::new(), TokenLimits::default()).await;
        let request = json!({ "model": MODEL, "input": "hello", "stream": stream });
        let response = stage
            .http
            .post(stage.at("/v1/responses"))
            .header("x-throughline-token", &one)
            .header("content-type", "application/json")
            .body(request.to_string())
            .send()
            .await
            .unwrap();
        let text = response.text().await.unwrap();
        let at = text.find("\"id\":\"").unwrap_or_else(|| panic!("{text}")) + 6;
        let id: String = text[at..].chars().take_while(|character| *character != '"').collect();
        let path = format!("/v1/responses/{id}");
        // The upstream does not store anything: its own 404 shows that the request went on.
        let before = asked(&stage).len();
        let (status, body) = send(&stage, &one, "GET", &path, None).await;
        assert_eq!((status, asked(&stage).len()), (404, before + 1), "{body}");
        let goes_on = json!({ "model": MODEL, "input": "more", "previous_response_id": id });
        assert_eq!(send(&stage, &one, "POST", "/v1/responses", Some(goes_on.clone())).await.0, 200);
        let before = asked(&stage).len();
        for (method, path, body) in [
            ("GET", path.as_str(), None),
            ("DELETE", path.as_str(), None),
            ("POST", "/v1/responses", Some(goes_on)),
        ] {
            let (status, body) = send(&stage, &two, method, path, body).await;
            assert_eq!(status, 404, "{body}");
            assert!(body.to_string().contains("not an object"), "{body}");
        }
        assert_eq!(asked(&stage).len(), before, "nothing of it went on");
    }
}

#[tokio::test]
async fn a_limit_on_money_holds_for_every_path_that_costs() {
    let limits = TokenLimits { micro_usd_per_day: Some(1_000_000), ..TokenLimits::default() };
    let pages = vec![page("/v1/embeddings", &json!({})), page("/v1/files", &json!({ "id": "file_1" }))];
    let (mut stage, [one, _]) = shared(pages, limits).await;
    for path in ["/v1/embeddings", "/v1/batches", "/v1/completions"] {
        assert_eq!(send(&stage, &one, "POST", path, Some(json!({}))).await.0, 402, "{path}");
    }
    assert_eq!(send(&stage, &one, "POST", "/v1/files", Some(json!({}))).await.0, 200, "storing is free");
    assert_eq!(send(&stage, &one, "GET", "/v1/models", None).await.0, 200);
    // What a setting adds is not known to be free, not even where it only looks.
    stage.tenant_paths = TenantPaths::with("GET /v1/containers").unwrap();
    stage.start().await;
    assert_eq!(send(&stage, &one, "GET", "/v1/containers", None).await.0, 402);
    assert_eq!(asked(&stage), ["POST /v1/files", "GET /v1/models"]);
}

/// Upstreams repeat keys in their errors: neither the client's nor the operator's is recorded or logged, and the operator's
/// is not even shown to the client.
#[tokio::test]
async fn a_key_that_an_upstream_repeats_is_not_kept() {
    let client_key = "sk-client-Mn98Bv76Cx54Zl32Kj10Hg98";
    for (operator, key) in [(None, client_key), (Some(OPERATOR_KEY), OPERATOR_KEY)] {
        let shown = format!("{}****{}", &key[..12], &key[key.len() - 4..]);
        let words = format!("Incorrect API key provided: {key}, also known as {shown}.");
        let reply = Reply::error(401, "authentication_error", &words);
        let mut stage = Stage::new(None, Script::answering(move |_| reply.clone())).await;
        stage.upstream_key = operator;
        stage.start().await;
        let request =
            stage.http.post(stage.at("/v1/chat/completions")).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {client_key}"));
        let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": "hi" }] }).to_string();
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status(), 401);
        let answer = response.text().await.unwrap();
        assert_eq!(answer.contains(key), operator.is_none(), "{answer}");
        let owner = Owner::default();
        let failed = || {
            let totals = stage.store.usage(&owner, &CallFilter::default(), UsageBy::Everything).unwrap();
            totals.iter().any(|total| total.failed == 1)
        };
        eventually(failed).await;
        let session = stage.store.conversations(&owner, &SessionFilter::default()).unwrap().remove(0).tip.id;
        let error = stage.store.calls(&owner, &session).unwrap().remove(0).call.error.unwrap();
        let told: Vec<Value> = stage.events.lock().unwrap().iter().map(GatewayEvent::to_json).collect();
        let kept = format!("{error} {}", json!(told));
        assert!(error.contains("Incorrect API key"), "{error}");
        for part in [key, &key[..8], &key[key.len() - 4..], &key[10..20]] {
            assert!(!kept.contains(part), "{part} in {kept}");
        }
    }
}

#[tokio::test]
async fn a_token_is_never_sent_on_wherever_it_stands() {
    let (mut stage, [one, _]) = shared(Vec::new(), TokenLimits::default()).await;
    stage.upstream_key = None;
    stage.start().await;
    let basic = base64_of(&format!("user:{one}"));
    let url = stage.at(&format!("/v1/models?key={one}&x=1"));
    let response = stage
        .http
        .get(url)
        .header("x-throughline-token", &one)
        .header("authorization", "Bearer sk-own")
        .header("authorization", format!("Bearer {one}"))
        .header("authorization", format!("Basic {basic}"))
        .header("x-api-key", &one)
        .header("cookie", format!("session={one}"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let request = stage.upstream.requests().remove(0);
    let sent = format!("{request:?}");
    assert!(!sent.contains(&one[3..]) && !sent.contains(&basic), "{sent}");
    assert_eq!(
        (request.query.as_deref(), request.header("authorization")),
        (Some("x=1"), Some("Bearer sk-own"))
    );
}

fn base64_of(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            out.push(if digit > chunk.len() { '=' } else { char::from(DIGITS[index as usize]) });
        }
    }
    out
}

#[tokio::test]
async fn a_websocket_is_refused_at_once_and_never_sent_on() {
    let stage = Stage::new(None, yes()).await;
    let request = stage.http.get(stage.at("/v1/responses")).header("connection", "Upgrade");
    let request = request.header("upgrade", "websocket").header("sec-websocket-version", "13");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 426);
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert!(body["error"]["message"].as_str().unwrap().contains("WebSocket"), "{body}");
    assert!(stage.upstream.requests().is_empty());
}

#[tokio::test]
async fn a_program_of_another_user_is_refused_as_long_as_no_tokens_are_demanded() {
    let mut stage = Stage::new(None, yes()).await;
    let gateway = stage.gateway.clone().unwrap();
    gateway.set_peer_check(Some(Arc::new(|_, _| PeerUser::Other)));
    let (status, body) = send(&stage, "", "GET", "/api/sessions", None).await;
    assert_eq!(status, 403);
    assert!(body.to_string().contains("gateway.any_user"), "{body}");
    assert_eq!(send(&stage, "", "GET", "/v1/models", None).await.0, 403);
    assert_eq!(send(&stage, "", "GET", "/healthz", None).await.0, 200);
    let mut book = AccessTokens::default();
    let token = book.add("one", "one", &[1; 32], 0, TokenLimits::default()).unwrap();
    gateway.set_access(AccessPolicy::Tokens(book));
    assert_eq!(send(&stage, &token, "GET", "/api/sessions", None).await.0, 200, "a token is enough");
    stage.start().await;
    let gateway = stage.gateway.clone().unwrap();
    gateway.set_peer_check(Some(Arc::new(|_, _| PeerUser::Allowed)));
    assert_eq!(send(&stage, "", "GET", "/api/sessions", None).await.0, 200);
}

#[tokio::test]
async fn an_answer_too_large_to_hold_reaches_its_client_whole() {
    let words = "long ".repeat(40_000);
    for (wire, stream) in [
        (WireFormat::Chat, false),
        (WireFormat::Chat, true),
        (WireFormat::Responses, true),
        (WireFormat::Anthropic, true),
        (WireFormat::Anthropic, false),
    ] {
        let reply = Reply::text(words.clone());
        let mut stage = Stage::new(None, Script::always(reply)).await;
        stage.hold_limits = HoldLimits { answer_bytes: 50_000, all_bytes: 1_000_000 };
        stage.start().await;
        let message = json!([{ "role": "user", "content": "go" }]);
        let body = match wire {
            WireFormat::Responses => json!({ "model": MODEL, "input": message, "stream": stream }),
            _ => json!({ "model": MODEL, "messages": message, "stream": stream, "max_tokens": 100_000 }),
        };
        let direct = stage.post(&stage.directly_at(crate::stage::path_of(wire)), &body.to_string()).await;
        let direct = direct.text().await.unwrap();
        let through = stage.ask(wire, &body.to_string()).await;
        assert_eq!(through.status(), 200);
        let through = through.text().await.unwrap();
        assert_eq!(through.matches("long ").count(), direct.matches("long ").count(), "{wire} {stream}");
        assert!(!through.contains("\"error\":{"), "{wire} {stream}");
        let ends = || {
            let events = stage.events.lock().unwrap();
            let ended = events
                .iter()
                .any(|event| matches!(event, GatewayEvent::Served(served) if served.end == AnswerEnd::Whole));
            let told = events.iter().any(
                |event| matches!(event, GatewayEvent::Warning(words) if words.contains("is not recorded")),
            );
            ended && told
        };
        eventually(ends).await;
    }
}

/// Codex hangs up as soon as it has read the last event, while the gateway still writes its record.
#[tokio::test]
async fn a_client_that_leaves_after_the_last_event_has_not_hung_up() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let stage = Stage::new(None, yes()).await;
    for wire in WireFormat::ALL {
        let message = json!([{ "role": "user", "content": "go" }]);
        let (body, last) = match wire {
            WireFormat::Responses => {
                (json!({ "model": MODEL, "input": message, "stream": true }), "event: response.completed")
            }
            WireFormat::Chat => {
                (json!({ "model": MODEL, "messages": message, "stream": true }), "data: [DONE]")
            }
            WireFormat::Anthropic => (
                json!({ "model": MODEL, "messages": message, "stream": true, "max_tokens": 9 }),
                "event: message_stop",
            ),
        };
        stage.events.lock().unwrap().clear();
        let address = stage.at("").replace("http://", "");
        let mut raw = tokio::net::TcpStream::connect(&address).await.unwrap();
        let body = body.to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            crate::stage::path_of(wire),
            body.len()
        );
        raw.write_all(head.as_bytes()).await.unwrap();
        let mut seen = String::new();
        while !seen.contains(last) {
            let mut piece = [0; 4_096];
            let read = raw.read(&mut piece).await.unwrap();
            assert!(read > 0, "{wire}: {seen}");
            seen.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        drop(raw);
        let ends = || {
            let events = stage.events.lock().unwrap();
            let end = |event: &GatewayEvent| match event {
                GatewayEvent::Served(served) => Some(served.end),
                _ => None,
            };
            events.iter().filter_map(end).collect::<Vec<_>>()
        };
        eventually(|| !ends().is_empty()).await;
        assert_eq!(ends(), [AnswerEnd::Whole], "{wire}");
    }
}

/// One request is not worth a cache entry; a conversation that goes on is.
#[tokio::test]
async fn cache_markers_are_added_from_the_second_request_of_a_conversation_on() {
    let mut stage = Stage::new(None, yes()).await;
    stage.kind = EndpointKind::Anthropic;
    stage.start().await;
    let mut talk = vec![json!({ "role": "user", "content": "one" })];
    let ask = |talk: &[Value]| {
        json!({ "model": "claude-x", "max_tokens": 9, "system": "Be brief.", "messages": talk }).to_string()
    };
    stage.ask(WireFormat::Anthropic, &ask(&talk)).await.text().await.unwrap();
    let first = stage.upstream.calls().remove(0).json();
    assert_eq!(first["messages"], json!(talk), "a text stays a text");
    assert_eq!(first["system"], "Be brief.");
    talk.extend([
        json!({ "role": "assistant", "content": "yes" }),
        json!({ "role": "user", "content": "two" }),
    ]);
    stage.ask(WireFormat::Anthropic, &ask(&talk)).await.text().await.unwrap();
    let second = stage.upstream.calls().remove(1).json();
    assert!(second["messages"][2]["content"][0]["cache_control"].is_object(), "{second}");
    assert!(second["system"][0]["cache_control"].is_object(), "{second}");
    // A client with markers of its own is left alone from the first request on.
    let marked = json!([
        { "role": "user", "content": "plain" },
        { "role": "assistant", "content": "so it is" },
        { "role": "user", "content": [{ "type": "text", "text": "end", "cache_control": { "type": "ephemeral" } }] },
    ]);
    stage.ask(WireFormat::Anthropic, &ask(marked.as_array().unwrap())).await.text().await.unwrap();
    let third = stage.upstream.calls().remove(2).json();
    assert_eq!((&third["messages"], &third["system"]), (&marked, &json!("Be brief.")));
}
