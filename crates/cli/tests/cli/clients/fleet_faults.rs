//! What befalls gateways on one PostgreSQL record beside kills at any time: one is killed while a model writes a summary for it, and the
//! database refuses the credentials they have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_store::{Owner, PostgresStore, SessionFilter, Store};
use throughline_testkit::{Missing, PostgresServer, Reply, Script, ScriptedUpstream, UpstreamOptions, skip};

use crate::clients::faults::{ask, echo, user, words_of};
use crate::clients::gateway::Gateway;
use crate::clients::job::summary;

/// How requests for notes are recognised.
const ASKS_FOR_NOTES: &str = "Rules for the notes:";
const PASSWORD: &str = "s3cret";

/// The server, and the address of an empty record on it.
#[track_caller]
fn database() -> Option<(&'static PostgresServer, String)> {
    let Some(server) = PostgresServer::shared() else {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        return None;
    };
    Some((server, server.empty_database()))
}

async fn start(url: &str, upstream: &str, notes: &str, require: bool) -> Gateway {
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "store:\n  url: {url}\n  connections: 2\nauxiliary:\n  compression:\n    provider: {notes}\n\
         model:\n  default: worker\n  context_length: 20000\n\
         gateway:\n  require_record: {require}\n  seal_keys: {}\n  upstreams:\n    main:\n      base_url: {upstream}\n      wires: chat\n",
        "ab".repeat(32)
    );
    std::fs::write(home.path().join("config.yaml"), config).unwrap();
    tokio::task::spawn_blocking(move || Gateway::configured(home)).await.unwrap()
}

/// Says something; whether it was answered is the status.
async fn turn(gateway: &Gateway, talk: &mut Vec<Value>, words: &str) -> (u16, Value) {
    talk.push(user(words));
    let (status, answer) = ask(gateway.url(), talk).await.unwrap();
    match status {
        200 => talk.push(answer["choices"][0]["message"].clone()),
        _ => drop(talk.pop()),
    }
    (status, answer)
}

fn said(message: &Value) -> (String, String) {
    let part = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    (part("role"), part("content"))
}

/// Whether a line of the record is this conversation.
fn is_recorded(store: &PostgresStore, talk: &[Value]) -> bool {
    let owner = Owner::default();
    let filter = SessionFilter { include_attached: true, ..SessionFilter::default() };
    let talk: Vec<_> = talk.iter().map(said).collect();
    store.conversations(&owner, &filter).unwrap().iter().any(|conversation| {
        let line = store.transcript(&owner, &conversation.tip.id).unwrap();
        line.iter()
            .map(|message| said(&serde_json::from_str(message.json.as_str()).unwrap()))
            .eq(talk.iter().cloned())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_killed_while_a_model_writes_its_summary_leaves_it_to_another() {
    let Some((server, url)) = database() else { return };
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    let script = Script::answering(move |request| {
        if !request.text().contains(ASKS_FOR_NOTES) {
            return Reply::text("noted");
        }
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::stall(),
            _ => Reply::text(summary(1)),
        }
    });
    // One that says how many tokens it read.
    let cache = Some(PrefixCache::new(CacheStyle::None));
    let options = UpstreamOptions { cache, ..UpstreamOptions::default() };
    let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
    let [one, two] =
        [start(&url, &upstream.url(), "main", true).await, start(&url, &upstream.url(), "main", true).await];
    let mut talk = Vec::new();
    let part = |at: usize| format!("In part {at} of the plan the harbour is described. ").repeat(40);
    // Until a summary is asked for: beside the conversation, or before an answer that waits for it.
    let mut pending = None;
    for at in 0.. {
        assert!(at < 60, "no summary was begun: {}", one.screen());
        talk.push(user(&part(at)));
        let (url, messages) = (one.url().to_owned(), talk.clone());
        let asking = tokio::spawn(async move { ask(&url, &messages).await });
        while !asking.is_finished() && asked.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if asked.load(Ordering::Relaxed) > 0 {
            pending = Some((at, asking));
            break;
        }
        let (status, answer) = asking.await.unwrap().unwrap();
        assert_eq!(status, 200, "{answer}");
        talk.push(answer["choices"][0]["message"].clone());
    }
    let database = url.rsplit('/').next().unwrap();
    assert_eq!(server.run(database, "SELECT count(*) FROM summaries"), "0");
    one.signal(Signal::KILL);
    drop(one.kill());
    if let Some((at, asking)) = pending {
        match asking.await.unwrap() {
            Ok((200, answer)) => talk.push(answer["choices"][0]["message"].clone()),
            // As a client does, it asks again, and the other gateway is there.
            _ => {
                talk.pop();
                assert_eq!(turn(&two, &mut talk, &part(at)).await.0, 200, "{}", two.screen());
            }
        }
    }
    for at in 100.. {
        if server.run(database, "SELECT count(*) FROM summaries") != "0" {
            break;
        }
        assert!(at < 160, "never compacted: {}", two.screen());
        assert_eq!(turn(&two, &mut talk, &part(at)).await.0, 200, "{}", two.screen());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "one died with its gateway, one was used");
    let compactions = "SELECT count(*) FROM sessions WHERE link_kind = 'continuation'";
    assert_eq!(server.run(database, compactions), "1");
    assert!(is_recorded(&PostgresStore::open(&url, 1).unwrap(), &talk));
    two.ask(&["doctor"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_end_while_gateways_run_stop_what_must_be_recorded_and_nothing_else() {
    let Some((server, address)) = database() else { return };
    let database = address.rsplit('/').next().unwrap();
    let role = format!("gateway_{database}");
    let run = |sql: &str| server.run("postgres", sql);
    run(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'"));
    run(&format!("ALTER DATABASE {database} OWNER TO {role}"));
    let url = server.address_as(&format!("{role}:{PASSWORD}"), database);
    let upstream = echo().await;
    let [free, bound] = [
        start(&url, &upstream.url(), "rules", false).await,
        start(&url, &upstream.url(), "rules", true).await,
    ];
    let (mut of_free, mut of_bound) = (Vec::new(), Vec::new());
    assert_eq!(turn(&free, &mut of_free, "free, first").await.0, 200);
    assert_eq!(turn(&bound, &mut of_bound, "bound, first").await.0, 200);

    run(&format!("ALTER ROLE {role} NOLOGIN"));
    run(&format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{role}'"));
    let (status, answer) = turn(&free, &mut of_free, "free, unrecorded").await;
    assert_eq!(status, 200, "{answer} {}", free.screen());
    assert!(words_of(&answer).contains("free, unrecorded"), "{answer}");
    let (status, refusal) = turn(&bound, &mut of_bound, "bound, refused").await;
    assert_eq!(status, 503, "{refusal} {}", bound.screen());
    let problem = refusal["error"]["message"].as_str().unwrap();
    assert!(problem.contains("cannot be recorded"), "{problem}");
    assert!(bound.screen().contains("not permitted to log in"), "{}", bound.screen());
    for text in [refusal.to_string(), free.screen(), bound.screen()] {
        assert!(!text.contains(PASSWORD), "{text}");
    }

    run(&format!("ALTER ROLE {role} LOGIN"));
    assert_eq!(turn(&free, &mut of_free, "free, last").await.0, 200);
    assert_eq!(turn(&bound, &mut of_bound, "bound, last").await.0, 200);
    let store = PostgresStore::open(&address, 1).unwrap();
    assert!(is_recorded(&store, &of_free), "what could not be recorded is recorded later: {}", free.screen());
    assert!(is_recorded(&store, &of_bound), "{}", bound.screen());
    for gateway in [&free, &bound] {
        gateway.ask(&["doctor"]);
    }
}
