//! Several gateways on one PostgreSQL under load, one of them killed again and again, the server restarted, connections cut: every answer
//! that a client has got is in the record, no conversation has two continuations, and none was compacted twice.
//!
//! The short form is part of the tests. `THROUGHLINE_KILLS=200 THROUGHLINE_GATEWAYS=4 cargo test -p throughline-cli --features postgres
//! --test cli fleet_kills -- --nocapture` is the long one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use throughline_store::{Owner, PostgresStore, SessionFilter, Store};
use throughline_testkit::{Missing, PostgresServer, ScriptedUpstream, skip};

use crate::clients::cut_proxy::CutProxy;
use crate::clients::faults::{ask, echo, user, words_of};
use crate::clients::gateway::Gateway;

/// Clients, each with a conversation of its own.
const CLIENTS: usize = 4;
/// So many answers are given between two faults.
const ANSWERS_BETWEEN: u64 = 6;
/// How often a request is sent that is not answered: for about a minute.
const ATTEMPTS: usize = 300;
const WAIT: Duration = Duration::from_millis(200);

#[expect(clippy::disallowed_methods, reason = "how long to kill is said in the environment")]
fn from_environment(name: &str, short: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// Where gateways are at the moment; one that is being started is nowhere.
type Addresses = Arc<Mutex<Vec<Option<String>>>>;

/// The settings of a gateway: a record that is required, windows that are full after a few turns, notes by rules.
fn home(url: &str, upstream: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "store:\n  url: {url}\n  connections: 4\n\
         model:\n  context_length: 64000\n\
         auxiliary:\n  compression:\n    provider: rules\n\
         gateway:\n  require_record: true\n  seal_keys: {}\n  upstreams:\n    main:\n      base_url: {upstream}\n",
        "ab".repeat(32)
    );
    std::fs::write(home.path().join("config.yaml"), config).unwrap();
    home
}

/// What a client has sent and got.
#[derive(Default)]
struct Talk {
    messages: Vec<Value>,
    /// Requests that were sent again, because no answer came.
    repeated: usize,
}

/// Sends requests until it is stopped; each is repeated, at the next gateway, until it is answered.
async fn talk(number: usize, addresses: Addresses, answers: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Talk {
    let mut talk = Talk::default();
    let mut at = number;
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let filling = "a few words about nothing in particular ".repeat(400);
        talk.messages.push(user(&format!("client-{number}-turn-{turn} {filling}")));
        let mut last = String::new();
        let mut answered = None;
        for _ in 0..ATTEMPTS {
            at += 1;
            let address = {
                let addresses = addresses.lock().unwrap();
                addresses[at % addresses.len()].clone()
            };
            let Some(address) = address else {
                tokio::time::sleep(WAIT).await;
                continue;
            };
            match ask(&address, &talk.messages).await {
                Ok((200, answer)) => {
                    answered = Some(answer);
                    break;
                }
                Ok((status, answer)) => last = format!("{status}: {answer}"),
                Err(error) => last = error.to_string(),
            }
            talk.repeated += 1;
            tokio::time::sleep(WAIT).await;
        }
        let answer =
            answered.unwrap_or_else(|| panic!("client {number}, turn {turn} was never answered: {last}"));
        assert!(words_of(&answer).contains(&format!("client-{number}-turn-{turn} ")), "{answer}");
        talk.messages.push(answer["choices"][0]["message"].clone());
        answers.fetch_add(1, Ordering::Relaxed);
    }
    talk
}

/// Waits until so many more answers were given.
async fn until_answered(answers: &AtomicU64, more: u64) {
    let wanted = answers.load(Ordering::Relaxed) + more;
    while answers.load(Ordering::Relaxed) < wanted {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills a gateway without warning, and starts it again on its home.
async fn kill(number: usize, gateways: &mut [Option<Gateway>], addresses: &Addresses) {
    addresses.lock().unwrap()[number] = None;
    let gateway = gateways[number].take().unwrap();
    gateway.signal(Signal::KILL);
    let home = gateway.kill();
    let started = tokio::task::spawn_blocking(move || Gateway::configured(home)).await.unwrap();
    addresses.lock().unwrap()[number] = Some(started.url().to_owned());
    gateways[number] = Some(started);
}

fn said(message: &Value) -> (&str, &str) {
    (message["role"].as_str().unwrap_or_default(), message["content"].as_str().unwrap_or_default())
}

/// Checks that every conversation that a client had is one line of the record, from its first message to its last; says what was found.
fn check_talks(store: &PostgresStore, talks: &[Talk]) -> Vec<String> {
    let owner = Owner::default();
    let filter = SessionFilter { include_attached: true, ..SessionFilter::default() };
    let mut lines = Vec::new();
    for conversation in store.conversations(&owner, &filter).unwrap() {
        let transcript = store.transcript(&owner, &conversation.tip.id).unwrap();
        let transcript: Vec<Value> =
            transcript.iter().map(|message| serde_json::from_str(message.json.as_str()).unwrap()).collect();
        lines.push(transcript);
    }
    let mut found = Vec::new();
    for (number, talk) in talks.iter().enumerate() {
        let wanted: Vec<_> = talk.messages.iter().map(said).collect();
        let is_whole = |line: &&Vec<Value>| line.iter().map(said).collect::<Vec<_>>() == wanted;
        let whole = lines.iter().filter(is_whole).count();
        assert!(whole >= 1, "client {number}: no line of the record has all {} messages", wanted.len());
        // A request that was sent again may have been answered before, unseen: that is a branch, as on one gateway.
        let of_client = format!("client-{number}-turn-0 ");
        let count = lines
            .iter()
            .filter(|line| line.first().is_some_and(|first| said(first).1.starts_with(&of_client)));
        let count = count.count();
        assert!(
            count <= 1 + talk.repeated,
            "client {number}: {count} lines after {} repetitions",
            talk.repeated
        );
        found.push(format!(
            "client {number}: {} messages, {} requests repeated, {count} lines",
            wanted.len(),
            talk.repeated
        ));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kills_restarts_and_cuts() {
    let Some(server) = PostgresServer::own() else {
        return skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
    };
    let server = Arc::new(server);
    let direct = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    let database = direct.rsplit('/').next().unwrap().to_owned();
    let proxy = CutProxy::before(&server.socket());
    let url = format!("postgres://postgres@127.0.0.1:{}/{database}", proxy.port());
    let upstream: ScriptedUpstream = echo().await;
    let (kills, count) =
        (from_environment("THROUGHLINE_KILLS", 3), from_environment("THROUGHLINE_GATEWAYS", 2));
    let mut gateways = Vec::new();
    for _ in 0..count {
        let home = home(&url, &upstream.url());
        gateways.push(Some(tokio::task::spawn_blocking(move || Gateway::configured(home)).await.unwrap()));
    }
    let addresses: Addresses = Arc::new(Mutex::new(
        gateways.iter().map(|gateway| gateway.as_ref().map(|gateway| gateway.url().to_owned())).collect(),
    ));
    let (answers, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            tokio::spawn(talk(number, Arc::clone(&addresses), Arc::clone(&answers), Arc::clone(&stop)))
        })
        .collect();
    let (mut cuts, mut restarts) = (0, 0);
    for round in 0..kills {
        until_answered(&answers, ANSWERS_BETWEEN).await;
        kill(round % count, &mut gateways, &addresses).await;
        until_answered(&answers, ANSWERS_BETWEEN).await;
        cuts += proxy.cut();
        if round % 10 == 1 {
            until_answered(&answers, ANSWERS_BETWEEN).await;
            let server = Arc::clone(&server);
            tokio::task::spawn_blocking(move || server.crash()).await.unwrap();
            restarts += 1;
        }
    }
    // Long enough that conversations were compacted, also by gateways that had not written them.
    until_answered(&answers, 30 * CLIENTS as u64).await;
    stop.store(true, Ordering::Relaxed);
    let mut talks = Vec::new();
    for client in clients {
        talks.push(client.await.unwrap());
    }
    let store = PostgresStore::open(&direct, 2).unwrap();
    for line in check_talks(&store, &talks) {
        println!("{line}");
    }
    let ask = |sql: &str| server.run(&database, sql);
    let twice = "SELECT count(*) FROM (SELECT parent FROM sessions WHERE link_kind = 'continuation' GROUP BY parent HAVING count(*) > 1) AS t";
    assert_eq!(ask(twice), "0", "a session has two continuations");
    let same = "SELECT count(*) FROM (SELECT s.chain, m.sources FROM summaries m JOIN sessions s ON s.ordinal = m.session \
                GROUP BY s.chain, m.sources HAVING count(*) > 1) AS t";
    assert_eq!(ask(same), "0", "the same messages were compacted twice");
    let compactions = ask("SELECT count(*) FROM summaries");
    assert!(compactions.parse::<u64>().unwrap() >= CLIENTS as u64, "{compactions} compactions");
    println!(
        "{kills} kills of {count} gateways, {restarts} restarts of the server, {cuts} connections cut, {} answers, {compactions} compactions",
        answers.load(Ordering::Relaxed)
    );
    // They stop as they should, and leave nothing behind.
    for gateway in gateways.iter_mut().flatten() {
        assert!(gateway.signalled_to_stop().success(), "{}", gateway.screen());
    }
    let of_the_dead = ask("SELECT count(*) FROM locks WHERE name LIKE 'conversation %'");
    assert_eq!(of_the_dead, "0");
    check_doctor(gateways[0].as_ref().unwrap().home());
}

/// The doctor finds nothing that is wrong.
fn check_doctor(home: &Path) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["doctor", "--json"])
        .env_clear()
        .env("THROUGHLINE_HOME", home)
        .env("HOME", home)
        .output()
        .unwrap();
    let examined: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    let wrong = examined["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] != json!("notice"));
    assert_eq!(wrong.count(), 0, "{examined:#}");
}
