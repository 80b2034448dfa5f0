//! Lists of what clients and operators rely on, each compared with a file in `tests/golden/lists`: paths, members of the
//! API, figures. `INSTA_UPDATE=always` writes them anew.
//!
//! That the description of the API fits its table of paths and its answers is tested in `src/api/openapi_tests.rs` and
//! `described.rs`; here is what may not change at all.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use throughline_gateway::{AccessPolicy, AccessTokens, TokenLimits};
use throughline_provider::EndpointKind;
use throughline_testkit::{Reply, Script, check_golden};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage};

fn check_list(name: &str, lines: &BTreeSet<String>) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lists");
    check_golden(&folder.join(format!("{name}.txt")), &text);
}

fn yes() -> Script {
    Script::answering(|_| Reply::text("The answer is in the harbour."))
}

/// A gateway through which a conversation was held and compacted.
async fn after_talk() -> Stage {
    let stage = Stage::new(Some(64_000), yes()).await;
    let mut said = Vec::new();
    for turn in 0..8 {
        let words = format!("Question {turn} about the lighthouse: {}", "why ".repeat(300));
        said.push(json!({ "role": "user", "content": words }));
        let body = json!({ "model": MODEL, "messages": said }).to_string();
        stage.ask(WireFormat::Chat, &body).await.text().await.unwrap();
        said.push(json!({ "role": "assistant", "content": "The answer is in the harbour." }));
    }
    stage
}

/// Every operation of the description with its parameters and the members of what is sent and answered.
#[tokio::test]
async fn api_is_described_as_recorded() {
    let stage = Stage::new(None, yes()).await;
    let description = stage.get("/api/openapi.json").await.1;
    let mut lines = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            let name = format!("{} {path}", method.to_uppercase());
            lines.insert(name.clone());
            let parameters = [item.get("parameters"), operation.get("parameters")];
            for parameter in parameters.into_iter().flatten().filter_map(Value::as_array).flatten() {
                let parameter = resolved(&description, parameter);
                let required = if parameter["required"] == true { " required" } else { "" };
                let place = format!("{name} parameter {}", parameter["name"].as_str().unwrap());
                lines.insert(format!("{place} in {}{required}", parameter["in"].as_str().unwrap()));
                list_schema(&description, &parameter["schema"], &place, 0, &mut lines);
            }
            for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
                let place = format!("{name} request {kind}");
                list_schema(&description, &content["schema"], &place, 0, &mut lines);
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                let response = resolved(&description, response);
                lines.insert(format!("{name} answers {status}"));
                for (kind, content) in response["content"].as_object().into_iter().flatten() {
                    let place = format!("{name} answers {status} {kind}");
                    list_schema(&description, &content["schema"], &place, 0, &mut lines);
                }
            }
        }
    }
    check_list("api", &lines);
}

/// What a reference stands for, so that names of schemas do not count.
fn resolved<'a>(description: &'a Value, value: &'a Value) -> &'a Value {
    let referred = value.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
    referred.map_or(value, |pointer| resolved(description, description.pointer(pointer).unwrap()))
}

fn list_schema(description: &Value, schema: &Value, place: &str, depth: usize, lines: &mut BTreeSet<String>) {
    // Descriptions may refer to themselves.
    if depth > 12 {
        return;
    }
    let schema = resolved(description, schema);
    for member in [
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "default",
        "format",
    ] {
        if let Some(value) = schema.get(member) {
            lines.insert(format!("{place}: {member} {value}"));
        }
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place} .{name}");
        if required.contains(&name.as_str()) {
            lines.insert(format!("{place}: required"));
        }
        list_schema(description, inner, &place, depth + 1, lines);
    }
    if let Some(items) = schema.get("items") {
        list_schema(description, items, &format!("{place}[]"), depth + 1, lines);
    }
    for form in ["oneOf", "anyOf", "allOf"] {
        for inner in schema[form].as_array().into_iter().flatten() {
            list_schema(description, inner, place, depth + 1, lines);
        }
    }
    if let Some(inner) = schema.get("additionalProperties") {
        if inner.is_object() {
            list_schema(description, inner, &format!("{place} .*"), depth + 1, lines);
        } else {
            lines.insert(format!("{place}: additionalProperties {inner}"));
        }
    }
}

/// Members of real answers of the API, with their types.
#[tokio::test]
async fn api_answers_have_the_recorded_members() {
    let stage = after_talk().await;
    let mut lines = BTreeSet::new();
    let mut list = |name: &str, (status, answer): (u16, Value)| {
        members(&answer, &format!("{name} {status}"), &mut lines)
    };
    list("GET sessions", stage.get("/api/sessions").await);
    list("GET session", stage.get("/api/sessions/last").await);
    list("GET transcript", stage.get("/api/sessions/last/transcript").await);
    list("GET view", stage.get("/api/sessions/last/view").await);
    list("GET search", stage.get("/api/search?q=lighthouse&context=1").await);
    list("GET usage", stage.get("/api/usage?session=last").await);
    list(
        "POST compact, preview",
        stage.send("/api/sessions/last/compact", &json!({ "preview": true, "keep_exchanges": 2 })).await,
    );
    list("POST compact", stage.send("/api/sessions/last/compact", &json!({ "keep_exchanges": 2 })).await);
    list("GET compacted session", stage.get("/api/sessions/last").await);
    list("GET compacted transcript", stage.get("/api/sessions/last/transcript").await);
    list("GET compacted view", stage.get("/api/sessions/last/view").await);
    list("POST undo", stage.send("/api/sessions/last/undo", &json!({})).await);
    list("POST redo", stage.send("/api/sessions/last/redo", &json!({})).await);
    list("POST redo, nothing there", stage.send("/api/sessions/last/redo", &json!({})).await);
    list(
        "POST message",
        stage.send("/api/conversations/one/messages", &json!({ "text": "hi", "model": MODEL })).await,
    );
    list("GET session, nobody", stage.get("/api/sessions/nobody").await);
    check_list("api-answers", &lines);
}

fn members(value: &Value, path: &str, lines: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "fraction",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    lines.insert(format!("{path}: {kind}"));
    match value {
        Value::Array(all) => all.iter().for_each(|inner| members(inner, &format!("{path}[]"), lines)),
        Value::Object(map) => {
            map.iter().for_each(|(name, inner)| members(inner, &format!("{path} .{name}"), lines))
        }
        _ => {}
    }
}

/// What each path does: who answers it, and with which status.
#[tokio::test]
async fn routes_are_the_recorded_ones() {
    let mut lines = BTreeSet::new();
    for with_tokens in [false, true] {
        let pages = ["/v1/embeddings", "/v1/files/file_1", "/v1/organization/users", "/v1/images"];
        let pages = pages.map(|path| (path.to_owned(), Reply::json(200, "{}")));
        let mut stage = Stage::with_pages(pages.to_vec(), yes()).await;
        stage.kind = EndpointKind::OpenAi;
        stage.upstream_key = Some("sk-of-the-operator");
        let mut book = AccessTokens::default();
        let token = book.add("mine", "local", &[1; 32], 0, TokenLimits::default()).unwrap();
        if with_tokens {
            stage.access = AccessPolicy::Tokens(book);
        }
        stage.start().await;
        for path in [
            "/",
            "/healthz",
            "/readyz",
            "/metrics",
            "/api",
            "/api/nothing",
            "/api/openapi.json",
            "/api/sessions",
            "/api/sessions/last",
            "/api/sessions/last/transcript",
            "/api/sessions/last/view",
            "/api/sessions/last/compact",
            "/api/sessions/last/undo",
            "/api/sessions/last/redo",
            "/api/search",
            "/api/usage",
            "/api/conversations/one/messages",
            "/v1",
            "/v1/messages",
            "/v1/messages/count_tokens",
            "/v1/messages/batches",
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/responses/compact",
            "/v1/responses/resp_1",
            "/v1/models",
            "/v1/models/a/b",
            "/v1/embeddings",
            "/v1/files",
            "/v1/files/file_1",
            "/v1/organization/users",
            "/v1/images",
            "/nothing",
            "/v2/messages",
        ] {
            for method in ["GET", "HEAD", "POST", "DELETE"] {
                let before = stage.upstream.requests().len();
                let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
                let mut url = reqwest::Url::parse(&stage.at("/")).unwrap();
                url.set_path(path);
                let request =
                    stage.http.request(method.clone(), url).header("content-type", "application/json");
                let request =
                    if with_tokens { request.header("x-throughline-token", &token) } else { request };
                let response = request.body(if method == "POST" { "{}" } else { "" }).send().await.unwrap();
                let status = response.status().as_u16();
                response.bytes().await.unwrap();
                let who = if stage.upstream.requests().len() > before { "upstream" } else { "gateway" };
                let tokens = if with_tokens { ", with a token" } else { "" };
                lines.insert(format!("{path} {method}{tokens}: {status} by the {who}"));
            }
        }
    }
    check_list("routes", &lines);
}

/// Names, kinds, labels and bounds of all figures.
#[tokio::test]
async fn metrics_are_the_recorded_ones() {
    let stage = after_talk().await;
    stage.send("/api/sessions/last/compact", &json!({ "keep_exchanges": 2 })).await;
    assert_eq!(stage.ask(WireFormat::Chat, "{").await.status(), 400);
    let figures = stage.http.get(stage.at("/metrics")).send().await.unwrap().text().await.unwrap();
    let mut lines = BTreeSet::new();
    for line in figures.lines().filter(|line| !line.starts_with("# HELP ")) {
        let line = match line.strip_prefix("# TYPE ") {
            Some(kind) => format!("{kind}, of this kind"),
            None => line.rsplit_once(' ').unwrap().0.to_owned(),
        };
        lines.insert(line);
    }
    check_list("metrics", &lines);
}
