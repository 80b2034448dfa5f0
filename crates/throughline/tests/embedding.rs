//! The library as a program uses it: the examples run and stay short, sessions compact, resume and recover.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use throughline::{Compactor, CompactorError, MemoryStore, Outcome, Session, SessionError, upstream_fn};

#[path = "../../../examples/compact.rs"]
mod compact_example;
#[path = "../../../examples/resume.rs"]
mod resume_example;
#[path = "../../../examples/session.rs"]
mod session_example;

const EXAMPLES: [&str; 3] = [
    include_str!("../../../examples/compact.rs"),
    include_str!("../../../examples/resume.rs"),
    include_str!("../../../examples/session.rs"),
];
const WAITING_LIST: &[u8] = include_bytes!("../../../examples/waiting-list.json");

#[test]
fn examples_run() {
    compact_example::main().unwrap();
    resume_example::main().unwrap();
    session_example::main().unwrap();
}

#[test]
fn examples_have_at_most_25_lines() {
    for text in EXAMPLES {
        assert!(text.lines().count() <= 25, "{text}");
    }
}

#[test]
fn guide_shows_the_examples() {
    let page = include_str!("../../../docs/guide/library.md");
    for text in EXAMPLES {
        let code = text.replace("pub(crate) ", "");
        let code = code[code.find("\nuse ").unwrap()..].trim();
        assert!(page.contains(code), "docs/guide/library.md does not show\n{code}");
    }
}

#[test]
fn compactor_returns_fewer_messages_and_the_newest_unchanged() {
    let compacted =
        Compactor::builder().window_tokens(32_768).build().unwrap().compact(WAITING_LIST).unwrap();
    assert!(matches!(compacted.outcome, Outcome::Completed(_)));
    let report = &compacted.report;
    assert_eq!(report.messages.after, compacted.messages.len() as u64);
    assert!(report.tokens.after * 4 < report.tokens.before, "{report:?}");
    let original = std::str::from_utf8(WAITING_LIST).unwrap();
    let newest = compacted.messages.last().unwrap();
    let plain = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(plain(original)["messages"].as_array().unwrap().last().unwrap(), &plain(newest));
    assert!(compacted.summary.unwrap().contains("## "));
}

#[test]
fn compactor_says_why_it_cannot() {
    let small = Compactor::builder().window_tokens(100).build();
    assert!(matches!(small, Err(CompactorError::Window(_))), "{small:?}");
    let compactor = Compactor::builder().build().unwrap();
    assert!(matches!(compactor.compact("no JSON"), Err(CompactorError::Unreadable(_))));
}

fn reply(text: &str) -> (u16, String) {
    (
        200,
        serde_json::json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] })
            .to_string(),
    )
}

#[tokio::test]
async fn session_recovers_from_an_overflow() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let upstream = upstream_fn(move |body: String| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            // The provider's window is smaller than the program believes.
            if body.len() > 24_000 {
                let error = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
                let body =
                    serde_json::json!({ "error": { "message": error, "code": "context_length_exceeded" } });
                return Ok((400, body.to_string()));
            }
            Ok(reply(&format!("Answer {number}: {}", "the parser is in src/parse.rs. ".repeat(50))))
        }
    });
    let mut session = Session::builder(upstream).model("m").window_tokens(200_000).build().await.unwrap();
    for step in 0..30 {
        session.send(&format!("Question {step}")).await.unwrap();
    }
    assert!(session.compactions() > 0);
    assert!(calls.load(Ordering::SeqCst) > 30, "an overflow is tried again");
}

#[tokio::test]
async fn session_resumes_from_its_store() {
    let store = Arc::new(MemoryStore::new());
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let open = |resume: Option<throughline::SessionId>| {
        let seen = Arc::clone(&bodies);
        let upstream = upstream_fn(move |body: String| {
            seen.lock().unwrap().push(body);
            async { Ok(reply("Noted.")) }
        });
        let builder = Session::builder(upstream).model("m").system("Be brief.").store(store.clone());
        match resume {
            Some(id) => builder.resume(id).build(),
            None => builder.build(),
        }
    };
    let mut first = open(None).await.unwrap();
    first.send("The port is 8080.").await.unwrap();
    let id = first.id().clone();
    drop(first);
    let mut second = open(Some(id)).await.unwrap();
    second.send("Which port?").await.unwrap();
    let last = bodies.lock().unwrap().last().cloned().unwrap();
    assert!(last.contains("The port is 8080.") && last.contains("Be brief."), "{last}");
}

#[tokio::test]
async fn session_stays_usable_after_a_failure() {
    let calls = Arc::new(AtomicUsize::new(0));
    let upstream = upstream_fn(move |_body: String| {
        let number = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            if number == 0 {
                Ok((401, r#"{"error":{"message":"bad key"}}"#.to_owned()))
            } else {
                Ok(reply("Hi."))
            }
        }
    });
    let mut session = Session::builder(upstream).model("m").build().await.unwrap();
    assert!(matches!(session.send("Hello").await, Err(SessionError::Exhausted(_))));
    assert_eq!(session.send("Hello again").await.unwrap().text(), "Hi.");
    assert!(session.send_json(["no message".to_owned()]).await.is_err());
}
