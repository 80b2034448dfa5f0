//! Engines in processes of their own that do everything wrong: nothing of the conversation is lost, everything is reported.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{ContextEngine, EngineEvent};
use throughline_plugin::{EngineBounds, Launch, PlainServices, ProcessEngine};
use throughline_redact::Redactor;
use throughline_store::Owner;
use throughline_transcript::{Groups, Violation, WireFormat};

use crate::managed::support::{Stage, talk};

/// Answers what a host asks; what it does when it has to compact is put in. `$n` is how many messages there are, `$human`
/// the place of the last that a person said.
const FRAME: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
made() {
  reply "$id" "{\"kind\":\"completed\",\"view\":$1,\"summary\":$2,\"quality\":\"rules\",\"report\":{\"tokens\":{\"before\":9,\"after\":1},\"messages\":{\"before\":9,\"after\":1},\"summary_tokens\":0,\"facts_important\":0,\"facts_kept\":0,\"facts_attached\":0}}"
}
note() { printf '{"kind":"summary","json":"{\\"role\\":\\"user\\",\\"content\\":\\"%s\\"}"}' "$1"; }
ack='{"kind":"synthetic","role":"acknowledgement","json":"{\"role\":\"assistant\",\"content\":\"Understood.\"}"}'
of_it='{"author":"rules","document":"D","covers":[0]}'
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) reply "$id" '{"protocol":1,"name":"bad"}' ;;
    *'"method":"should_compress"'*) tokens=${line##*:}; tokens=${tokens%%\}*}
      [ "$tokens" -gt 4000 ] && reply "$id" true || reply "$id" false ;;
    *'"method":"compress"'*)
      n=$(printf '%s' "$line" | grep -o '"tokens":' | wc -l)
      human=$(( (n - 1) / 4 * 4 ))
      @COMPRESS@ ;;
    *) reply "$id" null ;;
  esac
done
"#;

const SECRET: &str =
    "sk-ant-api03-Qx7fK2mZp9LwT4vB8nRj3HcY6dGs1AeU5oIiXyVbNqMzPtLkJhGfDsAaWwEeRrTt-uYyIiOoPpAA";
const TURNS: usize = 14;

/// What an engine does, and what is said of it.
struct Bad {
    name: &'static str,
    /// In place of its compaction; a whole script where it starts with `#`.
    does: String,
    told: &'static str,
}

fn bad(name: &'static str, does: &str, told: &'static str) -> Bad {
    Bad { name, does: does.to_owned(), told }
}

fn table() -> Vec<Bad> {
    vec![
        bad("crashes at its start", "#\nexit 7", "exit status: 7"),
        bad("is not there", "#missing", "cannot be started"),
        bad("hangs at its start", "#\nsleep 60", "did not answer `initialize`"),
        bad("crashes in the middle", "exit 3", "exit status: 3"),
        bad("is killed", "kill -9 $$", "signal: 9"),
        bad("hangs", "sleep 60", "did not answer `compress`"),
        bad("prints garbage", "while :; do echo this is no answer; done", "lines that are no answers"),
        bad("floods", "tr '\\0' x < /dev/zero", "wrote a line of more than"),
        bad("answers somebody else", "reply 4711 null; sleep 60", "did not answer `compress`"),
        bad("answers with something else", "reply \"$id\" 17", "cannot be used"),
        bad("answers with nothing", "reply \"$id\" null", "cannot be used"),
        bad("shows nothing", "made '[]' null", "the last human message"),
        bad(
            "leaves orphans",
            r#"made "[{\"kind\":\"kept\",\"item\":2},{\"kind\":\"kept\",\"item\":$human}]" null"#,
            "breaks a rule of the wire",
        ),
        bad(
            "puts things out of order",
            r#"made "[{\"kind\":\"kept\",\"item\":$human},{\"kind\":\"kept\",\"item\":3}]" null"#,
            "stands twice or out of order",
        ),
        bad(
            "makes it ten times the size",
            r#"made "[$(note "$(head -c 300000 /dev/zero | tr '\0' 'w ')"),$ack,{\"kind\":\"kept\",\"item\":$human}]" "$of_it""#,
            "tokens where there were",
        ),
    ]
}

/// How long an engine is waited for: short where it never answers, long where it does, because a busy machine is slow.
fn patience(told: &str) -> Duration {
    Duration::from_secs(if told.contains("did not answer") { 4 } else { 60 })
}

fn engine(does: &str, folder: &tempfile::TempDir, patience: Duration) -> ProcessEngine {
    let (program, text) = match does.strip_prefix('#') {
        Some("missing") => (folder.path().join("no-such-engine"), String::new()),
        Some(whole) => (PathBuf::from("/bin/sh"), whole.to_owned()),
        None => (PathBuf::from("/bin/sh"), FRAME.replace("@COMPRESS@", does)),
    };
    let launch =
        Launch { program, arguments: vec!["-c".to_owned(), text], folder: folder.path().to_path_buf() };
    let bounds = EngineBounds {
        start: patience,
        answer: Duration::from_secs(60),
        compress: patience,
        line_bytes: 2_000_000,
        stray_lines: 20,
        // Whatever ended is not started again while the test runs.
        pause: Duration::from_secs(60),
    };
    ProcessEngine::new("bad", launch, bounds, Arc::<PlainServices>::default()).masking(Some(Redactor::new()))
}

/// Everything that is said is in the record, the view is one the wire takes, the last question is in the last request.
fn check_intact(stage: &Stage, view: &[throughline_transcript::Message], name: &str) {
    assert_eq!(stage.transcript().len(), 4 * TURNS, "one that {name}: everything is recorded");
    let broken = Violation::find(WireFormat::Chat, view, &Groups::of(view));
    assert!(broken.is_empty(), "one that {name}: {broken:?}");
    let question = format!("Question {}:", TURNS - 1);
    assert!(stage.script.last_body().contains(&question), "one that {name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_an_engine_does_nothing_is_lost_and_everything_is_reported() {
    for Bad { name, does, told } in table() {
        let folder = tempfile::tempdir().unwrap();
        let stage =
            Stage::with_engine(WireFormat::Chat, 12_000, Arc::new(engine(&does, &folder, patience(told))));
        let mut session = stage.open().await;
        for turn in 0..TURNS {
            talk(&stage, &mut session, turn).await;
        }
        check_intact(&stage, session.messages(), name);
        assert_eq!(session.compactions(), 0, "one that {name}");
        let view: Vec<String> = session.messages().iter().map(|message| message.json().to_owned()).collect();
        assert_eq!(view, stage.transcript(), "one that {name}: the conversation is as it was");
        let words: Vec<String> = stage.told().into_iter().filter_map(said).collect();
        assert!(words.iter().any(|words| words.contains(told)), "one that {name}: {words:?}");
        assert!(words.len() < 8, "one that {name} is not told of again and again: {words:#?}");
    }
}

/// The events for people.
fn said(event: EngineEvent) -> Option<String> {
    match event {
        EngineEvent::Notice { text } => Some(text),
        EngineEvent::CompactionAborted { detail, .. } => Some(detail),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_what_an_engine_writes_reach_neither_the_model_nor_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let does = format!(
        r#"made "[$(note "The key is {SECRET}."),$ack,{{\"kind\":\"kept\",\"item\":$human}}]" '{{"author":"rules","document":"key {SECRET}","covers":[0],"facts":["{SECRET}"]}}'"#
    );
    let engine: Arc<dyn ContextEngine> = Arc::new(engine(&does, &folder, patience("")));
    let stage = Stage::with_engine(WireFormat::Chat, 12_000, engine);
    let mut session = stage.open().await;
    let mut turn = 0;
    while session.compactions() == 0 {
        assert!(turn < 40, "{:?}", stage.told().into_iter().filter_map(said).collect::<Vec<_>>());
        talk(&stage, &mut session, turn).await;
        turn += 1;
    }
    talk(&stage, &mut session, turn).await;
    let bodies = stage.script.bodies();
    assert!(bodies.last().unwrap().contains("The key is "), "the summary is shown");
    assert!(!bodies.iter().any(|body| body.contains(SECRET)));
    let summaries = stage.store.summaries(&Owner::default(), session.id()).unwrap();
    let kept = format!("{} {}", summaries[0].document, summaries[0].facts);
    assert!(kept.contains("key ") && !kept.contains(SECRET), "{kept}");
    let warned = stage.told().iter().any(|event| {
        matches!(event, EngineEvent::CompactionCompleted { report, .. } if report.warnings.iter().any(|words| words.contains("secrets were masked")))
    });
    assert!(warned);
}
