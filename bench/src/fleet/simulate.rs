//! Finds the load at which the latency of the record degrades, with conversations of generated owners, written as by gateways.
//!
//! Calls begin when they are due, even if earlier ones have not ended, and are timed from their due time: a record that cannot keep up
//! shows as latency. A call checks the version of its conversation, appends the messages and records the call. Conversations begin, are
//! compacted once, end after some calls, and are searched now and then. The load doubles until latency degrades; then one load in between
//! is measured.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_store::{
    NewCall, NewMessage, NewSession, Origin, Owner, PostgresStore, SearchQuery, SessionId, Store, Version,
};
use throughline_testkit::{PostgresServer, Rng};
use throughline_transcript::{SharedText, WireFormat, decode_message};

use super::machine;
use crate::store::{START_MS, continuation, percentiles, session_id, told};
use crate::store_texts::Author;

/// The number of calls of a conversation, with two or three messages of about two kilobytes each.
const CALLS: usize = 12;
const MESSAGE_BYTES: usize = 2_000;
/// The call before which a conversation is compacted.
const COMPACTED_BEFORE: usize = 8;
/// One of this many calls is followed by a search.
const SEARCH_EVERY: usize = 48;
/// The number of different texts.
const TEXTS: usize = 2_000;
/// Latency has degraded if its 95th percentile is this many times that of the first load, and at least `DEGRADED_MS`.
const DEGRADED_TIMES: f64 = 5.0;
const DEGRADED_MS: f64 = 50.0;
/// It has also degraded if less than this share of the calls ended in time.
const DONE_SHARE: f64 = 0.95;
/// The highest load that is tried, in calls per second.
const MOST: u32 = 25_600;
const SECONDS_OF_DAY: f64 = 86_400.0;

pub(super) struct SimulateOptions {
    pub(super) owners: usize,
    pub(super) seconds: u32,
    /// The first load, in calls per second.
    pub(super) first: u32,
    /// The address of an empty database; `None` starts a server.
    pub(super) url: Option<String>,
}

/// The result of one load.
struct Step {
    offered: u32,
    done_per_second: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    /// The processor time per call of the server, in milliseconds.
    server_ms: Option<f64>,
    /// The processor time per call of this program, in milliseconds.
    own_ms: Option<f64>,
    wal_bytes: Option<f64>,
    load: Option<f64>,
    is_degraded: bool,
}

pub(super) struct Simulation {
    owners: usize,
    seconds: u32,
    steps: Vec<Step>,
    messages: u64,
    database_bytes: u64,
    text_bytes: u64,
}

/// The state of an owner's current conversation.
struct OwnerState {
    owner: Owner,
    /// The first session, the current session, and its version.
    conversation: Option<(SessionId, Version)>,
    calls: usize,
}

struct Load<'a> {
    store: &'a PostgresStore,
    owners: Vec<Mutex<OwnerState>>,
    texts: Vec<NewMessage>,
    words: Vec<String>,
    /// The number of sessions created.
    sessions: AtomicUsize,
    text_bytes: AtomicUsize,
}

pub(super) fn run(options: &SimulateOptions) -> Result<Simulation, String> {
    let server = match &options.url {
        Some(_) => None,
        None => Some(
            PostgresServer::measured().ok_or("PostgreSQL is not installed (apt-get install postgresql)")?,
        ),
    };
    let url = match (&options.url, &server) {
        (Some(url), _) => url.clone(),
        (None, Some(server)) => server.empty_database(),
        (None, None) => return Err("there is no server".to_owned()),
    };
    let store = PostgresStore::open(&url, PostgresStore::CONNECTIONS).map_err(told)?;
    let empty = store.status().map_err(told)?;
    if empty.sessions > 0 {
        return Err("the record at --url is not empty: name a database of its own".to_owned());
    }
    let load = Load::new(&store, options.owners)?;
    let mut steps: Vec<Step> = Vec::new();
    let mut offered = options.first;
    while offered <= MOST {
        let step = measured(&load, offered, options.seconds, steps.first(), server.as_ref())?;
        let is_degraded = step.is_degraded;
        steps.push(step);
        if is_degraded {
            break;
        }
        offered *= 2;
    }
    if steps.len() > 1 && steps.last().is_some_and(|step| step.is_degraded) {
        steps.push(measured(&load, offered / 4 * 3, options.seconds, steps.first(), server.as_ref())?);
        steps.sort_by_key(|step| step.offered);
    }
    let full = store.status().map_err(told)?;
    Ok(Simulation {
        owners: options.owners,
        seconds: options.seconds,
        steps,
        messages: full.messages,
        database_bytes: full.database_bytes.saturating_sub(empty.database_bytes),
        text_bytes: load.text_bytes.load(Ordering::Relaxed) as u64,
    })
}

/// Makes calls at a load and times them.
fn measured(
    load: &Load<'_>,
    offered: u32,
    seconds: u32,
    first: Option<&Step>,
    server: Option<&PostgresServer>,
) -> Result<Step, String> {
    note(&format!("{offered} calls a second"));
    let all = offered as usize * seconds as usize;
    let (next, times) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(all)));
    let failure: Mutex<Option<String>> = Mutex::new(None);
    let wal = || server?.run("postgres", "SELECT wal_bytes::int8 FROM pg_stat_wal").parse::<f64>().ok();
    let server_seconds = || server?.process_id().and_then(machine::seconds_of);
    let (wal_before, server_before, own_before) = (wal(), server_seconds(), machine::own_seconds());
    let began = Instant::now();
    // Calls that have not begun by then count as not done.
    let end = began + Duration::from_secs(u64::from(seconds));
    std::thread::scope(|scope| {
        for worker in 0..PostgresStore::CONNECTIONS {
            let (next, times, failure) = (&next, &times, &failure);
            scope.spawn(move || {
                let mut rng = Rng::new(u64::from(offered) * 1_000 + worker as u64);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let due = began + Duration::from_secs_f64(number as f64 / f64::from(offered));
                    if number >= all || Instant::now() >= end {
                        return;
                    }
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let done = load.call(&mut rng, number);
                    let took = due.elapsed().as_secs_f64() * 1_000.0;
                    match done {
                        Ok(()) => times.lock().unwrap_or_else(|held| held.into_inner()).push(took),
                        Err(error) => {
                            failure.lock().unwrap_or_else(|held| held.into_inner()).get_or_insert(error);
                            next.store(all, Ordering::Relaxed);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(|held| held.into_inner()) {
        return Err(error);
    }
    let took = began.elapsed().as_secs_f64();
    let mut times = times.into_inner().unwrap_or_else(|held| held.into_inner());
    let done = times.len();
    let of_call = |before: Option<f64>, after: Option<f64>| {
        before.zip(after).map(|(before, after)| (after - before) / done.max(1) as f64)
    };
    let (p50, p95) = percentiles(&mut times);
    let p99 = times.get(done * 99 / 100).copied().unwrap_or_default();
    let limit = first.map_or(f64::INFINITY, |first| (first.p95 * DEGRADED_TIMES).max(DEGRADED_MS));
    Ok(Step {
        offered,
        done_per_second: done as f64 / took,
        p50,
        p95,
        p99,
        server_ms: of_call(server_before, server_seconds()).map(|seconds| seconds * 1_000.0),
        own_ms: of_call(own_before, machine::own_seconds()).map(|seconds| seconds * 1_000.0),
        wal_bytes: of_call(wal_before, wal()),
        load: machine::load(),
        is_degraded: p95 > limit || (done as f64) < all as f64 * DONE_SHARE,
    })
}

impl<'a> Load<'a> {
    fn new(store: &'a PostgresStore, owners: usize) -> Result<Self, String> {
        let mut author = Author::new(23);
        let texts = (0..TEXTS).map(|at| message(&mut author, at)).collect::<Result<Vec<_>, String>>()?;
        let owner = |number| OwnerState {
            owner: Owner::new(format!("owner-{number}")),
            conversation: None,
            calls: 0,
        };
        Ok(Self {
            store,
            owners: (0..owners).map(|number| Mutex::new(owner(number))).collect(),
            texts,
            words: (100..2_000).map(|rank| author.word(rank).to_owned()).collect(),
            sessions: AtomicUsize::new(0),
            text_bytes: AtomicUsize::new(0),
        })
    }

    /// Makes one call of an owner without a call in progress.
    fn call(&self, rng: &mut Rng, number: usize) -> Result<(), String> {
        let mut state = loop {
            let owner = self.owners.get(rng.below(self.owners.len())).ok_or("there are no owners")?;
            if let Ok(state) = owner.try_lock() {
                break state;
            }
            std::thread::yield_now();
        };
        self.call_of(&mut state, rng, number).map_err(told)
    }

    fn call_of(
        &self,
        state: &mut OwnerState,
        rng: &mut Rng,
        number: usize,
    ) -> Result<(), throughline_store::StoreError> {
        let OwnerState { owner, conversation, calls } = state;
        let (first, version) = match conversation.take().filter(|_| *calls < CALLS) {
            Some((first, known)) => {
                // A gateway checks before each call whether another one has written.
                self.store.version(owner, &known.tip)?;
                (first, known)
            }
            None => {
                *calls = 0;
                let session = self.store.open_session(self.new_session(owner), None)?;
                (session.id.clone(), self.store.version(owner, &session.id)?)
            }
        };
        let version = match *calls == COMPACTED_BEFORE {
            true => {
                let from = self.store.session(owner, &version.tip)?;
                let next =
                    self.store.continue_session(owner, continuation(&from, first.clone(), self.id()))?;
                self.store.version(owner, &next.id)?
            }
            false => version,
        };
        let messages: Vec<NewMessage> = (0..2 + *calls % 2)
            .filter_map(|_| self.texts.get(rng.below(self.texts.len())).cloned())
            .collect();
        let bytes: usize = messages.iter().map(|message| message.message.json().len()).sum();
        self.text_bytes.fetch_add(bytes, Ordering::Relaxed);
        let version = self.store.append_at(owner, &version, messages)?;
        let call = NewCall {
            key: Some(format!("call-{}-{calls}", version.tip)),
            model: "worker".to_owned(),
            provider: "bench".to_owned(),
            task: "chat".to_owned(),
            at_ms: START_MS,
            ..NewCall::default()
        };
        self.store.record_calls(owner, &version.tip, vec![call])?;
        if number.is_multiple_of(SEARCH_EVERY) {
            let word = self.words.get(rng.below(self.words.len())).cloned().unwrap_or_default();
            self.store.search(owner, &SearchQuery { text: word, ..SearchQuery::default() })?;
        }
        *calls += 1;
        *conversation = Some((first, version));
        Ok(())
    }

    fn id(&self) -> SessionId {
        session_id(self.sessions.fetch_add(1, Ordering::Relaxed))
    }

    fn new_session(&self, owner: &Owner) -> NewSession {
        NewSession {
            id: self.id(),
            owner: owner.clone(),
            link: None,
            started_ms: START_MS,
            model: Some("worker".to_owned()),
            title: None,
            origin: Origin { program: "bench".to_owned(), key: None, project: None },
            wire_format: WireFormat::Chat,
        }
    }
}

/// Generates a message of about two kilobytes.
fn message(author: &mut Author, at: usize) -> Result<NewMessage, String> {
    let mut text = String::new();
    while text.len() < MESSAGE_BYTES {
        text.push_str(&crate::store::text_of(author.message().json)?);
        text.push('\n');
    }
    let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
    let json = json!({ "role": role, "content": text }).to_string();
    let tokens = json.len() as u64 / 4;
    let message = decode_message(SharedText::new(json)).ok_or("no message was made")?;
    Ok(NewMessage { message, tokens, at_ms: START_MS, tools: Vec::new(), rendition: None })
}

impl Simulation {
    pub(super) fn print(&self) -> String {
        let Self { owners, seconds, steps, .. } = self;
        let mut out = format!(
            "{owners} owners, {seconds} s at each load, {} connections, processor time by call\n\n",
            PostgresStore::CONNECTIONS
        );
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11} {:>11} {:>7}",
            "calls/s", "done/s", "p50 ms", "p95 ms", "p99 ms", "server ms", "client ms", "log bytes", "load"
        );
        let figure =
            |value: Option<f64>, digits| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        for step in steps {
            let _ = writeln!(
                out,
                "{:>9} {:>9.0} {:>9.1} {:>9.1} {:>9.1} {:>11} {:>11} {:>11} {:>7}{}",
                step.offered,
                step.done_per_second,
                step.p50,
                step.p95,
                step.p99,
                figure(step.server_ms, 2),
                figure(step.own_ms, 2),
                figure(step.wal_bytes, 0),
                figure(step.load, 1),
                if step.is_degraded { "  degraded" } else { "" },
            );
        }
        let _ = writeln!(out, "\n{}", self.verdict());
        let times = self.database_bytes as f64 / self.text_bytes.max(1) as f64;
        let _ = writeln!(
            out,
            "{} messages, {:.0} MB of text, {:.0} MB in the database: {times:.2} times",
            self.messages,
            self.text_bytes as f64 / 1e6,
            self.database_bytes as f64 / 1e6
        );
        out
    }

    /// The highest load up to which no load degraded.
    fn sustained(&self) -> Option<u32> {
        self.steps.iter().take_while(|step| !step.is_degraded).last().map(|step| step.offered)
    }

    fn verdict(&self) -> String {
        let Some(sustained) = self.sustained() else {
            return "Latency has degraded at the first load: begin with a smaller one (--first)".to_owned();
        };
        let a_day = f64::from(sustained) * SECONDS_OF_DAY / CALLS as f64;
        let until = match self.steps.iter().find(|step| step.is_degraded) {
            Some(step) => format!("Latency degrades between {sustained} and {} calls a second", step.offered),
            None => format!("Latency has not degraded at {sustained} calls a second"),
        };
        format!(
            "{until}. {sustained} calls a second all day long are {:.1} million conversations of {CALLS} calls",
            a_day / 1e6
        )
    }

    pub(super) fn json(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            json!({
                "calls_per_second": step.offered,
                "done_per_second": step.done_per_second,
                "p50_ms": step.p50,
                "p95_ms": step.p95,
                "p99_ms": step.p99,
                "server_ms_per_call": step.server_ms,
                "client_ms_per_call": step.own_ms,
                "log_bytes_per_call": step.wal_bytes,
                "machine_load": step.load,
                "degraded": step.is_degraded,
            })
        });
        json!({
            "owners": self.owners,
            "seconds": self.seconds,
            "steps": steps.collect::<Value>(),
            "sustained_calls_per_second": self.sustained(),
            "messages": self.messages,
            "text_bytes": self.text_bytes,
            "database_bytes": self.database_bytes,
        })
    }
}

#[expect(clippy::print_stderr, reason = "a run takes minutes: what it is at is said meanwhile")]
fn note(what: &str) {
    eprintln!("{what}");
}
