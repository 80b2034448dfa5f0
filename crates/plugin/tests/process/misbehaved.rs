//! What goes wrong: every time an error that says what, never a wait without end, and nothing of the host is hurt.

use std::time::Duration;

use throughline_engine::{ContextEngine, EngineError};
use throughline_plugin::EngineBounds;

use crate::script::{bounds, cases, cases_that_hang, model, request, script};

#[tokio::test]
async fn whatever_an_engine_does_wrong_is_reported() {
    // What it does, where that shows, and the words for it.
    let table = [
        ("crashes at the start", "exit 7", "exit status: 7"),
        ("ends without a word", "exit 0", "it ended"),
        ("crashes when it is asked", "@compress) exit 3 ;;", "exit status: 3"),
        ("is killed", "@compress) kill -9 $$ ;;", "signal: 9"),
        ("hangs", "@compress) sleep 60 ;;", "did not answer `compress`"),
        ("closes its output", "@compress) exec >&-; sleep 60 ;;", "closed its standard output"),
        ("prints garbage", "while :; do echo this is no answer; done", "lines that are no answers"),
        ("floods", "head -c 1000000 /dev/zero | tr '\\0' 'x'; sleep 60", "more than 200000 bytes"),
        ("answers something else", "@compress) reply \"$id\" 17 ;;", "cannot be used"),
        (
            "answers nothing of use",
            "@compress) reply \"$id\" '{\"kind\":\"completed\"}' ;;",
            "cannot be used",
        ),
        ("answers with an error", "@compress) fail \"$id\" 'out of order' ;;", "out of order"),
        (
            "speaks a protocol of the future",
            "@initialize) reply \"$id\" '{\"protocol\":9,\"name\":\"f\"}' ;;",
            "version 9",
        ),
        ("does not say who it is", "@initialize) reply \"$id\" '{}' ;;", "missing field `protocol`"),
        ("is not there", "!", "cannot be started"),
    ];
    for (what, does, words) in table {
        let scripted = match does.strip_prefix('@') {
            Some(own) if words.contains("did not answer") => cases_that_hang(own),
            Some(own) => cases(own),
            None => script(does, bounds()),
        };
        let scripted = if does == "!" { nowhere() } else { scripted };
        let engine = &scripted.engine;
        // Some fail here already, which is as well.
        let _ = engine.update_model(&model()).await;
        let error = engine.compress(&request()).await.unwrap_err();
        assert!(error.to_string().contains(words), "one that {what}: {error}");
    }
}

/// Many processes end at the same time, faster than their connections are set up: each end is reported with its status, and
/// after what the process wrote last.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn last_words_and_status_of_a_process_come_before_the_report_of_its_end() {
    let mut engines = tokio::task::JoinSet::new();
    for number in 0..48 {
        engines.spawn(async move {
            let scripted = script("echo 'last words' >&2; exit 7", bounds());
            let error = scripted.engine.should_compress(1).await.unwrap_err().to_string();
            assert!(error.contains("exit status: 7"), "engine {number}: {error}");
            let lines = scripted.services.log_lines();
            assert!(lines.iter().any(|line| line.contains("last words")), "engine {number}: {lines:?}");
        });
    }
    while let Some(done) = engines.join_next().await {
        done.unwrap();
    }
}

fn nowhere() -> crate::script::Scripted {
    let mut scripted = script("", bounds());
    let launch = throughline_plugin::Launch {
        program: scripted.folder.path().join("no-such-engine"),
        arguments: Vec::new(),
        folder: scripted.folder.path().to_path_buf(),
    };
    let services = std::sync::Arc::clone(&scripted.services);
    scripted.engine = throughline_plugin::ProcessEngine::new("script", launch, bounds(), services);
    scripted
}

#[tokio::test]
async fn answers_out_of_order_reach_their_callers() {
    // The first question is answered after the second.
    let text = r#"
        reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
        while IFS= read -r line; do
          id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
          case "$line" in
            *'"method":"initialize"'*) reply "$id" '{"protocol":1,"name":"s"}' ;;
            *'"prompt_tokens":1}'*) first=$id ;;
            *) reply "$id" false; reply "$first" true; reply 4711 '"nobody asked"' ;;
          esac
        done"#;
    let scripted = script(text, bounds());
    scripted.engine.introduction().await.unwrap();
    let (first, second) =
        tokio::join!(scripted.engine.should_compress(1), scripted.engine.should_compress(2));
    assert!(first.unwrap());
    assert!(!second.unwrap());
}

#[tokio::test]
async fn one_that_ends_again_and_again_is_left_alone_for_a_while() {
    let scripted =
        script("echo start >> starts; exit 1", EngineBounds { pause: Duration::from_secs(60), ..bounds() });
    for _ in 0..5 {
        let error = scripted.engine.should_compress(1).await.unwrap_err();
        assert!(matches!(&error, EngineError::Unavailable { .. }), "{error}");
    }
    let starts = std::fs::read_to_string(scripted.folder.path().join("starts")).unwrap();
    assert_eq!(starts, "start\n", "it was started once");
    let error = scripted.engine.should_compress(1).await.unwrap_err().to_string();
    assert!(error.contains("it is started again in"), "{error}");
}

#[tokio::test]
async fn a_question_nobody_waits_for_any_more_is_forgotten() {
    let scripted = cases(r#"compress) : ;; should_compress) reply "$id" true ;;"#);
    scripted.engine.introduction().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(50), scripted.engine.compress(&request())).await;
    assert!(waited.is_err(), "it does not answer");
    assert!(scripted.engine.should_compress(1).await.unwrap(), "and goes on answering others");
}
