//! Tests of the configured model, against a server on this machine and a static model that is written here.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use serde_json::{Value, json};
use throughline_config::Loader;
use throughline_store::{
    IdLength, NewMessage, NewSession, Origin, Owner, SearchQuery, SessionId, SqliteStore, Store,
};
use throughline_transcript::{SharedText, WireFormat, decode_message};

use super::testing::{TinyModel, write_tiny_model};
use super::*;

fn settings(yaml: &str) -> Settings {
    Loader::new().file("config.yaml", yaml).load().unwrap().settings
}

fn configured(yaml: &str, home: &Path) -> Result<Option<Arc<ConfiguredEmbedder>>, String> {
    ConfiguredEmbedder::of(&settings(yaml), home, &|name| (name == "KEY").then(|| "sekrit".to_owned()))
}

/// The answer of a scripted endpoint to a request; `None` for no response.
type Script = Box<dyn Fn(&Value) -> Option<(u16, String)> + Send>;

/// An endpoint that follows a script and stores its requests.
struct ScriptedEndpoint {
    address: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

fn scripted(script: Script) -> ScriptedEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (head, body) = read_request(&mut stream);
            let body: Value = serde_json::from_str(&body).unwrap();
            seen.lock().unwrap().push((head, body.clone()));
            let Some((status, answer)) = script(&body) else {
                silent.push(stream);
                continue;
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                answer.len()
            );
        }
    });
    ScriptedEndpoint { address, asked }
}

fn read_request(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return (head.to_owned(), body.to_owned());
            }
        }
        let read = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
    }
}

/// Returns a vector by the subject of a text: vehicles, food, or neither.
fn about(text: &str, dimensions: usize) -> Vec<f32> {
    let holds = |words: &[&str]| words.iter().any(|word| text.to_lowercase().contains(word));
    let mut vector = vec![0.01; dimensions];
    vector[0] = f32::from(u8::from(holds(&["car", "automobile", "engine"])));
    vector[1] = f32::from(u8::from(holds(&["soup", "dinner", "meal"])));
    vector
}

fn vectors(body: &Value, dimensions: usize) -> Option<(u16, String)> {
    let texts = body["input"].as_array().unwrap();
    // In reverse order: the index counts.
    let data: Vec<Value> = (0..texts.len())
        .rev()
        .map(|at| json!({ "index": at, "embedding": about(texts[at].as_str().unwrap(), dimensions) }))
        .collect();
    Some((200, json!({ "data": data, "usage": { "prompt_tokens": 7 } }).to_string()))
}

fn id(number: u32) -> SessionId {
    SessionId::new(1_790_000_000_000, number, IdLength::Local)
}

fn record(folder: &Path, owner: &Owner, number: u32, texts: &[&str]) -> SqliteStore {
    let store = SqliteStore::open(&folder.join("record.db"), 1).unwrap();
    let session = NewSession {
        id: id(number),
        owner: owner.clone(),
        link: None,
        started_ms: 1,
        model: None,
        title: None,
        origin: Origin { program: "test".to_owned(), key: None, project: None },
        wire_format: WireFormat::Chat,
    };
    store.open_session(session, None).unwrap();
    let message = |(at, text): (usize, &&str)| NewMessage {
        message: decode_message(SharedText::new(
            json!({ "role": (if at % 2 == 0 { "user" } else { "assistant" }), "content": text }).to_string(),
        ))
        .unwrap(),
        tokens: 1,
        at_ms: at as i64,
        tools: Vec::new(),
        rendition: None,
    };
    store.append(owner, &id(number), texts.iter().enumerate().map(message).collect()).unwrap();
    store
}

fn embed_all(store: &SqliteStore, embedder: &ConfiguredEmbedder) -> u64 {
    let mut passages = 0;
    loop {
        let step = store.embed_next(embedder).unwrap();
        if step.messages == 0 {
            return passages;
        }
        passages += step.passages;
    }
}

fn question(text: &str) -> SearchQuery {
    SearchQuery { text: text.to_owned(), ..SearchQuery::default() }
}

const TALK: &[&str] =
    &["We bought the red automobile in Oslo.", "The soup was cold.", "Numbers are due on Friday."];

#[test]
fn nothing_is_asked_unless_configured() {
    let home = tempfile::tempdir().unwrap();
    assert!(configured("{}", home.path()).unwrap().is_none());
}

#[test]
fn settings_that_cannot_work_say_why() {
    let home = tempfile::tempdir().unwrap();
    for (yaml, reason) in [
        ("recall: { embeddings: { base_url: 'http://127.0.0.1:1/v1' } }", "model"),
        (
            "recall: { embeddings: { base_url: 'http://127.0.0.1:1/v1', model: m, api_key_env: NONE } }",
            "NONE",
        ),
        ("recall: { embeddings: { base_url: 'http://127.0.0.1:1/v1', static_model: x } }", "both"),
        ("recall: { embeddings: { static_model: nowhere.safetensors } }", "nowhere"),
    ] {
        let problem = configured(yaml, home.path()).unwrap_err();
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn endpoint_completes_words_by_meaning() {
    let home = tempfile::tempdir().unwrap();
    let endpoint = scripted(Box::new(|body| vectors(body, 8)));
    let yaml = format!(
        "recall: {{ embeddings: {{ base_url: '{}', model: small, api_key_env: KEY, price_per_million: 2 }} }}",
        endpoint.address
    );
    let embedder = configured(&yaml, home.path()).unwrap().unwrap();
    let owner = Owner::default();
    let store = record(home.path(), &owner, 1, TALK);
    assert!(store.search(&owner, &question("which car did we get")).unwrap().hits.is_empty());
    assert_eq!(embed_all(&store, &embedder), 3);
    store.use_embedder(Arc::<ConfiguredEmbedder>::clone(&embedder));
    let answer = store.search(&owner, &question("which car did we get")).unwrap();
    assert_eq!(answer.hits[0].seq, 0, "{answer:?}");
    assert!(answer.hits[0].similarity.unwrap() > 0.9);
    let report = answer.meaning.unwrap();
    assert_eq!((report.compared, report.waiting, report.problem), (3, 0, None));
    let state = store.vector_state(embedder.model()).unwrap();
    assert_eq!((state.passages, state.dimensions, state.tokens, state.waiting), (3, 8, 7, 0));
    assert_eq!(embedder.cost(state.tokens), Some(0.000_014));
    let asked = endpoint.asked.lock().unwrap();
    assert!(
        asked[0].0.starts_with("POST /v1/embeddings ") && asked[0].0.to_lowercase().contains("bearer sekrit")
    );
    assert_eq!(asked[0].1["model"], "small");
    assert!(
        asked[0].1["input"][1].as_str().unwrap().starts_with("We bought"),
        "short turns come with the one before"
    );
    drop(asked);
    store.delete(&owner, &id(1), throughline_store::Dependants::Refuse).unwrap();
    assert_eq!(store.vector_state(embedder.model()).unwrap().passages, 0, "deleted with the session");
}

#[test]
fn owners_see_their_own_passages_only() {
    let home = tempfile::tempdir().unwrap();
    let endpoint = scripted(Box::new(|body| vectors(body, 4)));
    let yaml = format!("recall: {{ embeddings: {{ base_url: '{}', model: small }} }}", endpoint.address);
    let embedder = configured(&yaml, home.path()).unwrap().unwrap();
    let (one, other) = (Owner::default(), Owner::new("other"));
    drop(record(home.path(), &one, 1, TALK));
    let store = record(home.path(), &other, 2, &["The engine of the automobile is broken."]);
    embed_all(&store, &embedder);
    store.use_embedder(embedder);
    for (owner, session) in [(one, id(1)), (other, id(2))] {
        let answer = store.search(&owner, &question("where is my car?")).unwrap();
        assert!(!answer.hits.is_empty());
        assert!(answer.hits.iter().all(|hit| hit.session == session), "{answer:?}");
    }
}

#[test]
fn failing_and_slow_endpoints_leave_the_words() {
    let home = tempfile::tempdir().unwrap();
    let owner = Owner::default();
    type Answer = fn(&Value) -> Option<(u16, String)>;
    let scripts: [(Answer, &str); 5] = [
        (|_| Some((500, "the model is loading".into())), "500"),
        (|_| None, "answer"),
        (|_| Some((200, "not json".into())), "JSON"),
        (|_| Some((200, json!({ "data": [{ "embedding": ["x"] }] }).to_string())), "number"),
        (|_| Some((200, json!({ "data": [] }).to_string())), "without"),
    ];
    for (number, (script, reason)) in scripts.into_iter().enumerate() {
        let folder = home.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let endpoint = scripted(Box::new(script));
        let yaml = format!(
            "recall: {{ embeddings: {{ base_url: '{}', model: small, timeout: 0.2 }} }}",
            endpoint.address
        );
        let embedder = configured(&yaml, home.path()).unwrap().unwrap();
        let store = record(&folder, &owner, 1, TALK);
        store.use_embedder(embedder);
        let answer = store.search(&owner, &question("where was the soup served?")).unwrap();
        assert_eq!(answer.hits[0].seq, 1, "words go on");
        let problem = answer.meaning.unwrap().problem.unwrap();
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn vectors_of_another_length_are_made_again() {
    let home = tempfile::tempdir().unwrap();
    let dimensions = Arc::new(std::sync::atomic::AtomicUsize::new(4));
    let now = Arc::clone(&dimensions);
    let endpoint =
        scripted(Box::new(move |body| vectors(body, now.load(std::sync::atomic::Ordering::SeqCst))));
    let yaml = format!("recall: {{ embeddings: {{ base_url: '{}', model: small }} }}", endpoint.address);
    let embedder = configured(&yaml, home.path()).unwrap().unwrap();
    let owner = Owner::default();
    let store = record(home.path(), &owner, 1, TALK);
    store.use_embedder(Arc::<ConfiguredEmbedder>::clone(&embedder));
    embed_all(&store, &embedder);
    dimensions.store(6, std::sync::atomic::Ordering::SeqCst);
    // Until they are made again there are no vectors to compare with, and search uses words.
    let answer = store.search(&owner, &question("where was the soup served?")).unwrap();
    assert_eq!((answer.hits[0].seq, answer.meaning.unwrap().compared), (1, 0));
    let more = |text: &str| {
        let message =
            decode_message(SharedText::new(json!({ "role": "user", "content": text }).to_string())).unwrap();
        vec![NewMessage { message, tokens: 1, at_ms: 9, tools: Vec::new(), rendition: None }]
    };
    store.append(&owner, &id(1), more("Dinner is at eight.")).unwrap();
    assert_eq!(embed_all(&store, &embedder), 4, "all of them");
    assert_eq!(store.vector_state(embedder.model()).unwrap().dimensions, 6);
}

#[test]
fn secrets_are_masked_before_they_are_sent() {
    let home = tempfile::tempdir().unwrap();
    let endpoint = scripted(Box::new(|body| vectors(body, 4)));
    let yaml = format!("recall: {{ embeddings: {{ base_url: '{}', model: small }} }}", endpoint.address);
    let embedder = configured(&yaml, home.path()).unwrap().unwrap();
    embedder.embed(&["DB_PASSWORD=hunter2secret".into(), String::new()], EmbedPurpose::Record).unwrap();
    let asked = endpoint.asked.lock().unwrap();
    let sent = asked[0].1["input"].to_string();
    assert!(!sent.contains("hunter2secret") && sent.contains("redacted"), "{sent}");
}

#[test]
fn static_model_and_worker_fill_a_record() {
    let home = tempfile::tempdir().unwrap();
    let words: &[(&str, &[f32])] =
        &[("car", &[1.0, 0.0]), ("automobile", &[0.9, 0.1]), ("soup", &[0.0, 1.0]), ("dinner", &[0.1, 0.9])];
    write_tiny_model(home.path(), &TinyModel { words });
    let embedder = configured("recall: { embeddings: { static_model: tiny.safetensors } }", home.path());
    let embedder = embedder.unwrap().unwrap();
    assert_eq!(embedder.cost(1_000_000), Some(0.0));
    let owner = Owner::default();
    let store = record(home.path(), &owner, 1, TALK);
    store.use_embedder(Arc::<ConfiguredEmbedder>::clone(&embedder));
    let problems: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&problems);
    EmbeddingWorker::start(store.path().to_owned(), &embedder, move |problem| {
        told.lock().unwrap().push(problem.to_owned());
    })
    .unwrap();
    while store.vector_state(embedder.model()).unwrap().waiting > 0 {
        assert!(problems.lock().unwrap().is_empty(), "{problems:?}");
        std::thread::yield_now();
    }
    let answer = store.search(&owner, &question("dinner?")).unwrap();
    assert!(answer.hits[0].snippet.text.contains("soup"), "{answer:?}");
}
