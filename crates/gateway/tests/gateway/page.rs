//! The page and what it stands on: how it is served, how a browser is let in, and the parts of the API that were made for it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use throughline_gateway::{AccessPolicy, AccessTokens, NewToken, OperatorTools, SettingChange, TokenLimits};
use throughline_store::{IdLength, ImportReport, Importer, Owner, SessionId};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage};

const PAGE: (&str, &str) = ("x-throughline-page", "1");

fn yes() -> Script {
    Script::answering(|_| Reply::text("yes"))
}

struct Answer {
    status: u16,
    headers: reqwest::header::HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn ask(
    stage: &Stage,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> Answer {
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = client.request(method, stage.at(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

/// Tokens of an operator and of two tenants.
async fn with_tokens() -> (Stage, [String; 3]) {
    let mut book = AccessTokens::default();
    let mut add = |name: &str, owner: &str, byte: u8| {
        book.add(name, owner, &[byte; 32], 0, TokenLimits::default()).unwrap()
    };
    let tokens = [add("desk", "local", 1), add("one", "one", 2), add("two", "two", 3)];
    assert!(book.make_operator("desk"));
    let mut stage = Stage::new(Some(64_000), yes()).await;
    stage.access = AccessPolicy::Tokens(book);
    stage.start().await;
    (stage, tokens)
}

#[tokio::test]
async fn a_browser_gets_the_page_and_programs_what_they_always_got() {
    let stage = Stage::new(None, yes()).await;
    let page = ask(&stage, "GET", "/ui/", &[], None).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("/ui/app.js"));
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    // Every state of the page has an address; files that are not there have none.
    assert_eq!(ask(&stage, "GET", "/ui/conversations/abc?at=5", &[], None).await.text, page.text);
    assert_eq!(ask(&stage, "GET", "/ui/other.js", &[], None).await.status, 404);
    assert_eq!(ask(&stage, "POST", "/ui/", &[], None).await.status, 405);
    assert_eq!(ask(&stage, "GET", "/ui", &[], None).await.header("location"), "/ui/");
    let known = ("if-none-match", page.header("etag"));
    assert_eq!(ask(&stage, "GET", "/ui/", &[known], None).await.status, 304);
    let packed = ask(&stage, "HEAD", "/ui/app.js", &[("accept-encoding", "gzip")], None).await;
    assert_eq!((packed.status, packed.header("content-encoding")), (200, "gzip"));
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let sent = ask(&stage, "GET", "/", &[browser], None).await;
    assert_eq!((sent.status, sent.header("location")), (302, "/ui/"));
    assert_eq!(ask(&stage, "GET", "/", &[("accept", "*/*")], None).await.text, "throughline\n");
    assert_eq!(ask(&stage, "HEAD", "/", &[browser], None).await.status, 200);
    // A name that somebody had resolved to this machine.
    assert_eq!(ask(&stage, "GET", "/ui/", &[("host", "evil.example")], None).await.status, 403);
    assert!(stage.upstream.calls().is_empty());
}

#[tokio::test]
async fn a_token_is_exchanged_for_a_cookie_that_only_the_page_can_use() {
    let (stage, [_, one, _]) = with_tokens().await;
    assert_eq!(ask(&stage, "GET", "/ui/", &[], None).await.status, 200, "the page itself holds nothing");
    let token = ("x-throughline-token", one.as_str());
    assert_eq!(ask(&stage, "POST", "/api/login", &[PAGE], None).await.status, 401);
    let answer = ask(&stage, "POST", "/api/login", &[PAGE, token], None).await;
    assert_eq!(answer.status, 200);
    let set = answer.header("set-cookie").to_owned();
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Strict") && !set.contains(&one[3..20]),
        "{set}"
    );
    let cookie = ("cookie", set.split(';').next().unwrap());
    let me = ask(&stage, "GET", "/api/me", &[cookie], None).await.json();
    assert_eq!(
        (&me["owner"], &me["access"], &me["changes_gateway"]),
        (&json!("one"), &json!("token"), &json!(false))
    );
    // It is good for the API only, and what it lets in comes from the page.
    assert_eq!(ask(&stage, "GET", "/v1/models", &[cookie], None).await.status, 401);
    assert_eq!(ask(&stage, "GET", "/metrics", &[cookie], None).await.status, 401);
    let elsewhere = ("origin", "http://127.0.0.1:1");
    assert_eq!(ask(&stage, "GET", "/api/me", &[cookie, elsewhere], None).await.status, 403);
    assert_eq!(
        ask(&stage, "POST", "/api/logout", &[cookie], None).await.status,
        403,
        "the header is missing"
    );
    let gone = ask(&stage, "POST", "/api/logout", &[cookie, PAGE], None).await;
    assert!(gone.header("set-cookie").contains("Max-Age=0"));
    // A token that is revoked takes its cookies with it.
    stage.gateway.as_ref().unwrap().set_access(AccessPolicy::Tokens(AccessTokens::default()));
    assert_eq!(ask(&stage, "GET", "/api/me", &[cookie], None).await.status, 401);
}

#[tokio::test]
async fn a_one_time_code_counts_once_and_at_the_log_in_only() {
    let (stage, [desk, ..]) = with_tokens().await;
    let code = stage.gateway.as_ref().unwrap().one_time_code(&desk).unwrap();
    let header = ("x-throughline-token", code.as_str());
    assert_eq!(ask(&stage, "GET", "/api/me", &[header], None).await.status, 401);
    assert_eq!(ask(&stage, "POST", "/api/login", &[header, PAGE], None).await.status, 200);
    assert_eq!(ask(&stage, "POST", "/api/login", &[header, PAGE], None).await.status, 401);
}

#[tokio::test]
async fn a_page_of_another_port_changes_nothing_on_an_open_gateway() {
    let stage = Stage::new(None, yes()).await;
    let other = ("origin", "http://localhost:3000");
    for path in ["/api/sessions/last/undo", "/api/sessions/last/compact"] {
        assert_eq!(ask(&stage, "POST", path, &[other], None).await.status, 403, "{path}");
    }
    assert_eq!(ask(&stage, "DELETE", "/api/sessions/last", &[other], None).await.status, 403);
    assert_eq!(ask(&stage, "DELETE", "/api/sessions/last", &[], None).await.status, 404, "programs may");
}

/// Sends a conversation of so many turns with a token, if one is needed.
async fn talk(stage: &Stage, token: Option<&str>, word: &str, turns: usize) {
    let mut said = Vec::new();
    for turn in 0..turns {
        said.push(json!({"role": "user", "content": format!("{word} {turn} {}", "filler ".repeat(300))}));
        let body = json!({ "model": MODEL, "messages": said }).to_string();
        let mut request =
            stage.http.post(stage.at("/v1/chat/completions")).header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("x-throughline-token", token);
        }
        let reply = request.body(body).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        // The end of an answer waits for its commit; a client that leaves before it does not.
        reply.bytes().await.unwrap();
        said.push(json!({"role": "assistant", "content": "yes"}));
    }
}

#[tokio::test]
async fn calls_say_what_was_sent_and_a_compaction_what_it_did() {
    let stage = Stage::new(Some(64_000), yes()).await;
    talk(&stage, None, "hello", 8).await;
    let calls = ask(&stage, "GET", "/api/sessions/last/calls", &[], None).await.json();
    let list = calls["calls"].as_array().unwrap();
    assert_eq!(list.len(), 8);
    let sum = |call: &Value| {
        call["sent"].as_object().unwrap().values().map(|part| part.as_u64().unwrap()).sum::<u64>()
    };
    for call in list {
        let usage = &call["usage"];
        let prompt: u64 =
            ["input", "cache_read", "cache_write"].iter().map(|name| usage[name].as_u64().unwrap()).sum();
        assert_eq!(sum(call), prompt);
    }
    assert!(list[7]["sent"]["user"].as_u64() > list[0]["sent"]["user"].as_u64());
    assert_eq!(calls["limits"]["window_tokens"], 64_000);
    assert!(calls["limits"]["threshold_tokens"].as_u64().unwrap() < 64_000);
    let compacted =
        ask(&stage, "POST", "/api/sessions/last/compact", &[], Some(json!({"keep_exchanges": 1})))
            .await
            .json();
    assert_eq!(compacted["outcome"], "completed", "{compacted}");
    let after = compacted["session"].as_str().unwrap();
    let page = ask(&stage, "GET", &format!("/api/sessions/{after}/compaction"), &[], None).await.json();
    assert_eq!(page["turning"]["kind"], "compression");
    let (before_items, after_items) = (page["before"].as_array().unwrap(), page["after"].as_array().unwrap());
    assert!(
        before_items.len() > after_items.len() && before_items.iter().all(|item| item["message"].is_object())
    );
    assert_eq!(after_items.iter().filter(|item| item["kind"] == "summary").count(), 1);
    assert!(after_items.iter().any(|item| item["kind"] == "verbatim" && item.get("message").is_none()));
    let id = page["summary"]["id"].as_u64().unwrap();
    let summary = ask(&stage, "GET", &format!("/api/summaries/{id}"), &[], None).await.json();
    assert_eq!(summary["summary"]["document"], page["summary"]["document"]);
    assert_eq!(ask(&stage, "GET", "/api/summaries/999999", &[], None).await.status, 404);
    let now = ask(&stage, "GET", "/api/now", &[], None).await.json();
    assert_eq!(now["conversations"][0]["pressure"]["window_tokens"], 64_000);
    assert!(now["conversations"][0]["view"]["summary"].as_u64().unwrap() > 0);
    // Pages of the transcript are whole and follow one another.
    let first = ask(&stage, "GET", "/api/sessions/last/transcript?limit=5&messages_only=true", &[], None)
        .await
        .json();
    assert_eq!((first["messages"].as_array().unwrap().len(), &first["next_seq"]), (5, &json!(5)));
    let rest =
        ask(&stage, "GET", "/api/sessions/last/transcript?from_seq=5&limit=100", &[], None).await.json();
    assert_eq!((rest["messages"].as_array().unwrap().len(), &rest["next_seq"]), (11, &Value::Null));
    assert_eq!(rest["turnings"][0]["kind"], "compression");
    let exported = ask(&stage, "GET", "/api/sessions/last/export?form=lines", &[], None).await;
    assert_eq!(exported.text.lines().count(), 16);
    assert!(exported.header("content-disposition").contains(".jsonl"));
    assert_eq!(ask(&stage, "DELETE", "/api/sessions/last", &[], None).await.status, 200);
    assert_eq!(ask(&stage, "GET", "/api/sessions/last", &[], None).await.status, 404);
    // The same client goes on: its next request begins anew.
    talk(&stage, None, "hello", 1).await;
}

#[tokio::test]
async fn calls_for_a_chart_are_counted_as_all_are() {
    let stage = Stage::new(None, yes()).await;
    talk(&stage, None, "hello", 9).await;
    let calls = async |query: &str| {
        ask(&stage, "GET", &format!("/api/sessions/last/calls{query}"), &[], None).await.json()
    };
    let all = calls("").await;
    assert_eq!(all["calls"].as_array().unwrap().len(), 9);
    // The scripted upstream has no cache, so every call missed it and is shown.
    assert_eq!((&all["total_calls"], &all["missed_calls"]), (&json!(9), &json!(9)));
    for points in ["?points=9", "?points=3"] {
        let shown = calls(points).await;
        assert_eq!((&shown["calls"], &shown["total_calls"]), (&all["calls"], &json!(9)), "{points}");
    }
    for wrong in ["?points=0", "?points=10001", "?points=x"] {
        let path = format!("/api/sessions/last/calls{wrong}");
        assert_eq!(ask(&stage, "GET", &path, &[], None).await.status, 400);
    }
}

#[tokio::test]
async fn a_compaction_by_the_client_shows_the_client_s_own_summary() {
    let stage = Stage::new(None, yes()).await;
    let log = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    let lines =
        [("user", "fix it"), ("assistant", "done"), ("user", "So far: it is fixed."), ("user", "go on")];
    let mut text = String::new();
    for (at, (role, words)) in lines.iter().enumerate() {
        let parent = at.checked_sub(1).map(|before| format!("m{before}"));
        let line = json!({
            "type": role, "uuid": format!("m{at}"), "parentUuid": parent, "sessionId": "s1", "isCompactSummary": at == 2,
            "timestamp": format!("2026-11-10T10:00:0{at}.000Z"), "message": { "role": role, "content": words },
        });
        text.push_str(&format!("{line}\n"));
    }
    std::fs::write(log.path(), text).unwrap();
    let (mut report, mut drawn) = (ImportReport::default(), 0);
    let mut new_id = |at_ms| {
        drawn += 1;
        SessionId::new(at_ms, drawn, IdLength::Local)
    };
    let mut importer = Importer::new(stage.store.as_ref(), Owner::default(), &mut new_id, |_| None);
    importer.import_path(log.path(), &mut report, &mut |_| {}).unwrap();
    let list = ask(&stage, "GET", "/api/sessions", &[], None).await.json();
    let opened = list["sessions"][0]["tip"]["id"].as_str().unwrap().to_owned();
    let page = ask(&stage, "GET", &format!("/api/sessions/{opened}/compaction"), &[], None).await.json();
    assert_eq!((&page["turning"]["kind"], &page["summary"]), (&json!("compression"), &Value::Null));
    assert_eq!(page["before"].as_array().unwrap().len(), 2);
    let after = page["after"].as_array().unwrap();
    assert_eq!(after.len(), 1, "{page:#}");
    assert_eq!(
        (&after[0]["seq"], &after[0]["message"]["content"]),
        (&json!(2), &json!("So far: it is fixed."))
    );
}

#[tokio::test]
async fn two_tenants_see_nothing_of_each_other() {
    let (stage, [_, one, two]) = with_tokens().await;
    talk(&stage, Some(&one), "alpha", 2).await;
    let (of_one, of_two) = (("x-throughline-token", one.as_str()), ("x-throughline-token", two.as_str()));
    let listed = ask(&stage, "GET", "/api/sessions", &[of_one], None).await.json();
    let id = listed["sessions"][0]["tip"]["id"].as_str().unwrap();
    for path in ["/api/sessions", "/api/now", "/api/usage", "/api/search?q=alpha"] {
        let seen = ask(&stage, "GET", path, &[of_two], None).await;
        assert_eq!(seen.status, 200, "{path}");
        assert!(!seen.text.contains(id) && !seen.text.contains("alpha"), "{path}: {}", seen.text);
    }
    for path in ["", "/transcript", "/calls", "/compaction", "/export", "/view"] {
        assert_eq!(
            ask(&stage, "GET", &format!("/api/sessions/{id}{path}"), &[of_two], None).await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(ask(&stage, "DELETE", &format!("/api/sessions/{id}"), &[of_two], None).await.status, 404);
    for path in ["/api/health", "/api/settings", "/api/tokens"] {
        assert_eq!(ask(&stage, "GET", path, &[of_two], None).await.status, 403, "{path}");
    }
    assert_eq!(ask(&stage, "GET", &format!("/api/sessions/{id}"), &[of_one], None).await.status, 200);
}

#[tokio::test]
async fn an_operator_sees_the_data_of_every_owner_and_nobody_else_does() {
    let (stage, [desk, one, two]) = with_tokens().await;
    talk(&stage, Some(&one), "alpha", 2).await;
    let [desk, of_one, of_two] = [&desk, &one, &two].map(|token| ("x-throughline-token", token.as_str()));
    let me = ask(&stage, "GET", "/api/me", &[desk], None).await.json();
    assert_eq!(me["owners"], json!(["local", "one", "two"]));
    assert_eq!(ask(&stage, "GET", "/api/me", &[of_two], None).await.json()["owners"], json!([]));
    let listed = ask(&stage, "GET", "/api/sessions?owner=one", &[desk], None).await.json();
    let id = listed["sessions"][0]["tip"]["id"].as_str().unwrap().to_owned();
    let own = ask(&stage, "GET", "/api/sessions", &[desk], None).await.json();
    assert_eq!(own["sessions"].as_array().unwrap().len(), 0);
    // The owner may name themselves; nobody else may name them, on any path.
    assert_eq!(ask(&stage, "GET", "/api/sessions?owner=one", &[of_one], None).await.status, 200);
    for path in ["/api/sessions", "/api/now", "/api/usage", "/api/savings", "/api/search", "/api/events"] {
        let query = if path == "/api/search" { "?q=alpha&owner=one" } else { "?owner=one" };
        let seen = ask(&stage, "GET", &format!("{path}{query}"), &[of_two], None).await;
        assert_eq!((seen.status, seen.text.contains("alpha")), (403, false), "{path}");
    }
    for path in ["", "/transcript", "/view", "/state", "/calls", "/compaction", "/export"] {
        let path = format!("/api/sessions/{id}{path}?owner=one");
        assert_eq!(ask(&stage, "GET", &path, &[of_two], None).await.status, 403, "{path}");
        let status = ask(&stage, "GET", &path, &[desk], None).await.status;
        assert!(status == 200 || path.contains("/compaction"), "{path}: {status}");
    }
    let gone = format!("/api/sessions/{id}?owner=one");
    assert_eq!(ask(&stage, "DELETE", &gone, &[of_two], None).await.status, 403);
    assert_eq!(ask(&stage, "GET", "/api/sessions?owner=no%20name", &[desk], None).await.status, 400);
    // Calls are booked under the token they came with.
    let usage = ask(&stage, "GET", "/api/usage?owner=one", &[desk], None).await.json();
    let by_token = usage["by_access_token"].as_array().unwrap();
    assert_eq!((by_token.len(), &by_token[0]["group"], &by_token[0]["calls"]), (1, &json!("one"), &json!(2)));
    assert_eq!(ask(&stage, "DELETE", &gone, &[desk], None).await.status, 200);
    // On a gateway without tokens there is nobody to name.
    let open = Stage::new(None, yes()).await;
    assert_eq!(ask(&open, "GET", "/api/sessions?owner=one", &[], None).await.status, 403);
}

#[tokio::test]
async fn a_preview_takes_another_threshold_and_changes_nothing() {
    let stage = Stage::new(Some(64_000), yes()).await;
    talk(&stage, None, "hello", 12).await;
    let preview =
        async |wish: Value| ask(&stage, "POST", "/api/sessions/last/compact", &[], Some(wish)).await;
    let (low, high) = (
        preview(json!({"preview": true, "threshold_tokens": 4_000})).await.json(),
        preview(json!({"preview": true, "threshold_tokens": 30_000})).await.json(),
    );
    assert_eq!(low["outcome"], "completed", "{low}");
    let after = |answer: &Value| answer["report"]["tokens"]["after"].as_u64();
    assert!(after(&high).is_none_or(|tokens| tokens > after(&low).unwrap()), "{low} {high}");
    let tree = preview(json!({"preview": true, "engine": "lcm", "threshold_tokens": 4_000})).await.json();
    assert_eq!(tree["outcome"], "completed", "{tree}");
    assert_ne!(tree["summary"], low["summary"]);
    // No node of it is in the record.
    assert_eq!(ask(&stage, "GET", "/api/summaries/1", &[], None).await.status, 404);
    assert_eq!(preview(json!({"preview": true, "threshold_tokens": 0})).await.status, 400);
    assert_eq!(preview(json!({"threshold_tokens": 4_000})).await.status, 409, "only for a preview");
    assert_eq!(preview(json!({"preview": true, "engine": "abacus"})).await.status, 400);
    let chain = ask(&stage, "GET", "/api/sessions/last", &[], None).await.json();
    assert_eq!(chain["chain"].as_array().unwrap().len(), 1);
}

/// Tools that keep what they are asked, and tokens in memory.
struct KeptWishes {
    settings: Mutex<Vec<String>>,
    tokens: Mutex<AccessTokens>,
}

impl OperatorTools for KeptWishes {
    fn engines(&self) -> Result<Value, String> {
        Ok(json!([{ "name": "compressor", "problem": null }]))
    }
    fn record_health(&self) -> Result<Value, String> {
        Ok(json!({ "well": true }))
    }
    fn settings(&self) -> Result<Value, String> {
        Ok(json!({ "file": "config.yaml", "settings": [], "warnings": [] }))
    }
    fn change_setting(&self, change: &SettingChange) -> Result<Value, String> {
        let text = format!("{} {:?} {}", change.key, change.value, change.preview);
        self.settings.lock().unwrap().push(text);
        Ok(json!({ "changed": true }))
    }
    fn tokens(&self) -> Result<AccessTokens, String> {
        Ok(self.tokens.lock().unwrap().clone())
    }
    fn create_token(&self, token: &NewToken) -> Result<String, String> {
        let mut tokens = self.tokens.lock().unwrap();
        tokens.add(&token.name, &token.owner, &[9; 32], 0, token.limits).map_err(|error| error.to_string())
    }
    fn revoke_token(&self, name: &str) -> Result<bool, String> {
        Ok(self.tokens.lock().unwrap().revoke(name))
    }
}

#[tokio::test]
async fn a_token_of_the_page_counts_from_its_creation_to_its_revocation() {
    let (stage, [desk, ..]) = with_tokens().await;
    let AccessPolicy::Tokens(tokens) = stage.access.clone() else { panic!("the gateway asks for tokens") };
    let tools = Arc::new(KeptWishes { settings: Mutex::default(), tokens: Mutex::new(tokens) });
    stage.gateway.as_ref().unwrap().set_operator_tools(tools);
    let of_desk = ("x-throughline-token", desk.as_str());
    let made = ask(&stage, "POST", "/api/tokens", &[of_desk], Some(json!({ "name": "short" }))).await;
    let secret = made.json()["token"].as_str().unwrap().to_owned();
    let of_short = ("x-throughline-token", secret.as_str());
    assert_eq!(ask(&stage, "GET", "/api/sessions", &[of_short], None).await.status, 200);
    assert_eq!(ask(&stage, "DELETE", "/api/tokens/short", &[of_desk], None).await.status, 200);
    assert_eq!(ask(&stage, "GET", "/api/sessions", &[of_short], None).await.status, 401);
}

#[tokio::test]
async fn only_an_operator_changes_the_gateway_and_nobody_does_on_an_open_one() {
    let (stage, [desk, one, _]) = with_tokens().await;
    let AccessPolicy::Tokens(tokens) = stage.access.clone() else { panic!("the gateway asks for tokens") };
    let tools = Arc::new(KeptWishes { settings: Mutex::default(), tokens: Mutex::new(tokens) });
    stage.gateway.as_ref().unwrap().set_operator_tools(Arc::clone(&tools) as Arc<dyn OperatorTools>);
    let (of_desk, of_one) = (("x-throughline-token", desk.as_str()), ("x-throughline-token", one.as_str()));
    let change = json!({ "key": "compression.threshold", "value": "0.5", "preview": true });
    for (method, path, body) in [
        ("POST", "/api/settings", Some(change.clone())),
        ("POST", "/api/tokens", Some(json!({ "name": "x" }))),
        ("DELETE", "/api/tokens/x", None),
        ("GET", "/api/settings", None),
        ("GET", "/api/health", None),
    ] {
        assert_eq!(ask(&stage, method, path, &[of_one], body.clone()).await.status, 403, "{method} {path}");
        let done = ask(&stage, method, path, &[of_desk], body).await;
        assert_eq!(done.status, 200, "{method} {path}: {}", done.text);
    }
    assert_eq!(*tools.settings.lock().unwrap(), ["compression.threshold Some(\"0.5\") true"]);
    let taken = ask(&stage, "POST", "/api/tokens", &[of_desk], Some(json!({ "name": "one" }))).await;
    assert_eq!((taken.status, taken.text.contains("already")), (400, true));
    assert_eq!(ask(&stage, "DELETE", "/api/tokens/nobody", &[of_desk], None).await.status, 404);
    let open = Stage::new(None, yes()).await;
    open.gateway.as_ref().unwrap().set_operator_tools(tools);
    assert_eq!(ask(&open, "GET", "/api/settings", &[], None).await.status, 200);
    assert_eq!(ask(&open, "POST", "/api/settings", &[], Some(change)).await.status, 403);
    assert_eq!(ask(&open, "POST", "/api/tokens", &[], Some(json!({ "name": "x" }))).await.status, 403);
    assert_eq!(ask(&open, "GET", "/api/tokens", &[], None).await.status, 403);
    assert_eq!(open.ask(WireFormat::Chat, "{}").await.status(), 400);
}
