//! Gateways under load that are killed, with clients that repeat each request until it is answered; and whether everything that a client
//! got is in the record.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use throughline_store::{Owner, PostgresStore, SessionFilter, Store};
use throughline_testkit::PostgresServer;
use tokio::task::JoinHandle;

use crate::clients::faults::{ask, user, words_of};
use crate::clients::gateway::Gateway;

/// Clients, each with one conversation after the other.
pub(crate) const CLIENTS: usize = 4;
/// Turns of a conversation, of about four thousand tokens each: enough for several compactions.
const TURNS: usize = 60;
/// So many answers are given between two faults.
const ANSWERS_BETWEEN: u64 = 6;
/// How often a request is sent that is not answered: for about a minute.
const ATTEMPTS: usize = 300;
const WAIT: Duration = Duration::from_millis(200);

/// Where gateways are at the moment; one that is being started is nowhere.
type Addresses = Arc<Mutex<Vec<Option<String>>>>;

/// Gateways on one record, and clients that talk to any of them.
pub(crate) struct FleetLoad {
    gateways: Vec<Option<Gateway>>,
    addresses: Addresses,
    answers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<Talk>>>,
}

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

impl FleetLoad {
    /// Starts so many gateways on the record at an address, and the clients.
    pub(crate) async fn start(url: &str, upstream: &str, count: usize) -> Self {
        let mut gateways = Vec::new();
        for _ in 0..count {
            let home = home(url, upstream);
            gateways
                .push(Some(tokio::task::spawn_blocking(move || Gateway::configured(home)).await.unwrap()));
        }
        let urls = gateways.iter().map(|gateway| gateway.as_ref().map(|gateway| gateway.url().to_owned()));
        let addresses: Addresses = Arc::new(Mutex::new(urls.collect()));
        let (answers, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let clients = (0..CLIENTS).map(|number| {
            let client = Client {
                number,
                addresses: Arc::clone(&addresses),
                answers: Arc::clone(&answers),
                stop: Arc::clone(&stop),
                at: number,
            };
            tokio::spawn(client.talk())
        });
        let clients = clients.collect();
        Self { gateways, addresses, answers, stop, clients }
    }

    /// Answers that clients got so far.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Waits until so many more answers were given.
    pub(crate) async fn until_answered(&self, more: u64) {
        let wanted = self.answers() + more;
        while self.answers() < wanted {
            assert!(!self.clients.iter().any(JoinHandle::is_finished), "a client gave up");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the fleet works between two faults.
    pub(crate) async fn until_it_works(&self) {
        self.until_answered(ANSWERS_BETWEEN).await;
    }

    /// Kills a gateway without warning, and starts it again on its home.
    pub(crate) async fn kill(&mut self, number: usize) {
        self.addresses.lock().unwrap()[number] = None;
        let gateway = self.gateways[number].take().unwrap();
        gateway.signal(Signal::KILL);
        let home = gateway.kill();
        let started = tokio::task::spawn_blocking(move || Gateway::configured(home)).await.unwrap();
        self.addresses.lock().unwrap()[number] = Some(started.url().to_owned());
        self.gateways[number] = Some(started);
    }

    /// Ends the load; everything that was said.
    async fn talks(&mut self) -> Vec<Talk> {
        self.stop.store(true, Ordering::Relaxed);
        let mut talks = Vec::new();
        for client in self.clients.drain(..) {
            talks.extend(client.await.unwrap());
        }
        talks
    }

    /// Ends the load and the gateways. Every answer is in the record in one line, no session has two continuations, no messages were
    /// compacted twice, nothing is left of the gateways, and the doctor finds nothing wrong. Says what there is.
    pub(crate) async fn check(mut self, server: &PostgresServer, database: &str) -> String {
        let answers = self.answers();
        let talks = self.talks().await;
        let store = PostgresStore::open(&server.address(database), 2).unwrap();
        let branches = check_talks(&store, &talks);
        let ask = |sql: &str| server.run(database, sql);
        let twice = "SELECT count(*) FROM (SELECT parent FROM sessions WHERE link_kind = 'continuation' GROUP BY parent HAVING count(*) > 1) AS t";
        assert_eq!(ask(twice), "0", "a session has two continuations");
        let same = "SELECT count(*) FROM (SELECT s.chain, m.sources FROM summaries m JOIN sessions s ON s.ordinal = m.session \
                    GROUP BY s.chain, m.sources HAVING count(*) > 1) AS t";
        assert_eq!(ask(same), "0", "the same messages were compacted twice");
        let compactions = ask("SELECT count(*) FROM summaries");
        assert!(compactions.parse::<u64>().unwrap() >= CLIENTS as u64, "{compactions} compactions");
        // They stop as they should, and leave no lease behind. One that was killed may have, of a conversation that nobody went on with.
        let processes = self.gateways.iter().flatten().map(|gateway| gateway.process_id().to_string());
        let processes = processes.collect::<Vec<_>>().join(", ");
        for gateway in self.gateways.iter_mut().flatten() {
            assert!(gateway.signalled_to_stop().success(), "{}", gateway.screen());
        }
        let left = format!("SELECT count(*) FROM locks WHERE process_id IN ({processes})");
        assert_eq!(ask(&left), "0", "a gateway left a lease behind when it stopped");
        let repeated: usize = talks.iter().map(|talk| talk.repeated).sum();
        check_doctor(self.gateways[0].as_ref().unwrap().home(), server, database);
        format!(
            "{answers} answers in {} conversations, none missing; {repeated} requests sent again, {branches} of them recorded as \
             branches; {compactions} compactions, none twice; no forks; the doctor finds nothing",
            talks.len()
        )
    }
}

/// What a client has sent and got.
#[derive(Default)]
struct Talk {
    /// What its first message begins with.
    name: String,
    messages: Vec<Value>,
    /// Requests that were sent again, because no answer came.
    repeated: usize,
}

struct Client {
    number: usize,
    addresses: Addresses,
    answers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    /// The gateway that was asked last.
    at: usize,
}

impl Client {
    /// Holds conversations until it is stopped.
    async fn talk(mut self) -> Vec<Talk> {
        let mut talks = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let name = format!("client-{}-talk-{}", self.number, talks.len());
            let mut talk = Talk { name, ..Talk::default() };
            for turn in 0..TURNS {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                self.turn(&mut talk, turn).await;
            }
            talks.push(talk);
        }
        talks
    }

    /// Sends a request until it is answered, each time to the next gateway.
    async fn turn(&mut self, talk: &mut Talk, turn: usize) {
        let filling = "a few words about nothing in particular ".repeat(400);
        let start = format!("{}-turn-{turn} ", talk.name);
        talk.messages.push(user(&format!("{start}{filling}")));
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            self.at += 1;
            let address = {
                let addresses = self.addresses.lock().unwrap();
                addresses[self.at % addresses.len()].clone()
            };
            let Some(address) = address else {
                tokio::time::sleep(WAIT).await;
                continue;
            };
            match ask(&address, &talk.messages).await {
                Ok((200, answer)) => {
                    assert!(words_of(&answer).contains(&start), "{answer}");
                    talk.messages.push(answer["choices"][0]["message"].clone());
                    self.answers.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Ok((status, answer)) => last = format!("{status}: {answer}"),
                Err(error) => last = error.to_string(),
            }
            talk.repeated += 1;
            tokio::time::sleep(WAIT).await;
        }
        panic!("{start}was never answered: {last}");
    }
}

fn said(message: &Value) -> (&str, &str) {
    (message["role"].as_str().unwrap_or_default(), message["content"].as_str().unwrap_or_default())
}

/// Checks that every conversation that a client had is one line of the record, from its first message to its last; how many other lines
/// there are.
fn check_talks(store: &PostgresStore, talks: &[Talk]) -> usize {
    let owner = Owner::default();
    let filter = SessionFilter { include_attached: true, limit: Some(1_000_000), ..SessionFilter::default() };
    let mut lines = Vec::new();
    for conversation in store.conversations(&owner, &filter).unwrap() {
        let transcript = store.transcript(&owner, &conversation.tip.id).unwrap();
        let transcript: Vec<Value> =
            transcript.iter().map(|message| serde_json::from_str(message.json.as_str()).unwrap()).collect();
        lines.push(transcript);
    }
    let mut branches = 0;
    for Talk { name, messages, repeated } in talks {
        let wanted: Vec<_> = messages.iter().map(said).collect();
        let is_whole = |line: &&Vec<Value>| line.iter().map(said).eq(wanted.iter().copied());
        let whole = lines.iter().filter(is_whole).count();
        assert!(whole >= 1, "{name}: no line of the record has all {} messages", wanted.len());
        // A request that was sent again may have been answered before, unseen: that is a branch, as on one gateway.
        let first = format!("{name}-turn-0 ");
        let is_of_talk =
            |line: &&Vec<Value>| line.first().is_some_and(|message| said(message).1.starts_with(&first));
        let count = lines.iter().filter(is_of_talk).count();
        assert!(count <= 1 + repeated, "{name}: {count} lines after {repeated} repetitions");
        branches += count - 1;
    }
    branches
}

/// The doctor finds nothing that is wrong. It reads the record at the address of the server that is there now.
fn check_doctor(home: &Path, server: &PostgresServer, database: &str) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["doctor", "--json"])
        .env_clear()
        .env("THROUGHLINE_HOME", home)
        .env("THROUGHLINE_STORE__URL", server.address(database))
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
