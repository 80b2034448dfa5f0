//! The record with a million messages: the speed of appends, its size, and the speed of searches.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use throughline_store::{
    Continuation, EndReason, IdLength, NewMessage, NewSession, NewSummary, NewViewItem, Origin, Owner,
    SearchMode, SearchQuery, Session, SessionFilter, SessionId, SqliteStore, Store, ViewItem,
};
use throughline_testkit::Rng;
use throughline_transcript::{SharedText, WireFormat, decode_message};

use crate::store_texts::Author;
use crate::table::Table;

/// Messages per append.
const BATCH: usize = 1_000;
/// Messages per session.
const SESSION_MESSAGES: usize = 4_000;
/// The number of searches of each kind.
const QUESTIONS: usize = 40;
/// The number of timed continuations, in sequence on the same conversation.
const CONTINUATIONS: usize = 50;
pub(crate) const START_MS: i64 = 1_790_000_000_000;

/// The limits of the figures: the least append rate, and the most milliseconds of each kind.
pub(crate) struct RecordLimits {
    /// Messages per second.
    pub(crate) append: f64,
    /// Milliseconds.
    pub(crate) words: f64,
    pub(crate) questions: f64,
    pub(crate) substrings: f64,
    pub(crate) continuation: f64,
}

/// The limits of a record in a file.
pub(crate) const IN_FILE: RecordLimits =
    RecordLimits { append: 20_000.0, words: 10.0, questions: 60.0, substrings: 100.0, continuation: 2.0 };

/// Runs the benchmark with a record in `folder`, which stays there. An existing record is searched again.
pub(crate) fn run(folder: &Path, messages: usize) -> Result<String, String> {
    let path = folder.join("record.db");
    let mut table = Table::default();
    let mut author = Author::new(11);
    if !path.exists() {
        let store = SqliteStore::open(&path, START_MS).map_err(told)?;
        let text_bytes = append(&store, &mut author, messages, &IN_FILE, &mut table)?;
        sizes(&store, folder, text_bytes, &mut table)?;
    }
    opening(&path, &mut table)?;
    let store = SqliteStore::open(&path, START_MS).map_err(told)?;
    ask_everything(&store, &author, &IN_FILE, &mut table)?;
    Ok(format!("The record with {messages} messages\n\n{}", table.print()))
}

/// Runs searches of every kind, and continuations.
pub(crate) fn ask_everything(
    store: &dyn Store,
    author: &Author,
    limits: &RecordLimits,
    table: &mut Table,
) -> Result<(), String> {
    words(store, author, limits, table)?;
    questions(store, author, limits, table)?;
    substrings(store, author, limits, table)?;
    continuations(store, limits, table)
}

pub(crate) fn told(error: throughline_store::StoreError) -> String {
    let mut out = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        let _ = write!(out, ": {cause}");
        source = cause.source();
    }
    out
}

pub(crate) fn session_id(number: usize) -> SessionId {
    let at = START_MS + i64::try_from(number).unwrap_or_default() * 1_000;
    SessionId::new(at, u32::try_from(number).unwrap_or_default(), IdLength::Local)
}

pub(crate) fn new_session(number: usize) -> NewSession {
    NewSession {
        id: session_id(number),
        owner: Owner::default(),
        link: None,
        started_ms: START_MS + i64::try_from(number).unwrap_or_default() * 1_000,
        model: Some("claude-sonnet-4-5".to_owned()),
        title: Some(format!("Conversation {number}")),
        origin: Origin { program: "bench".to_owned(), key: Some(format!("s{number}")), project: None },
        wire_format: WireFormat::Anthropic,
    }
}

/// Appends all messages and returns the bytes of text.
pub(crate) fn append(
    store: &dyn Store,
    author: &mut Author,
    messages: usize,
    limits: &RecordLimits,
    table: &mut Table,
) -> Result<usize, String> {
    let owner = Owner::default();
    let mut text_bytes = 0;
    let mut batch_ms = Vec::new();
    for first in (0..messages).step_by(BATCH) {
        let number = first / SESSION_MESSAGES;
        if first % SESSION_MESSAGES == 0 {
            store.open_session(new_session(number), None).map_err(told)?;
        }
        let batch: Vec<NewMessage> = (first..(first + BATCH).min(messages))
            .map(|at| {
                let made = author.message();
                text_bytes += made.text_bytes;
                let message = decode_message(SharedText::new(made.json)).ok_or("no message was made")?;
                Ok(NewMessage {
                    message,
                    tokens: made.text_bytes as u64 / 4,
                    at_ms: START_MS + i64::try_from(at).unwrap_or_default() * 100,
                    tools: made.tool.map(str::to_owned).into_iter().collect(),
                    rendition: None,
                })
            })
            .collect::<Result<_, String>>()?;
        let started = Instant::now();
        store.append(&owner, &session_id(number), batch).map_err(told)?;
        batch_ms.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    let all_ms: f64 = batch_ms.iter().sum();
    let rate = messages as f64 / all_ms * 1_000.0;
    table.note("text", format!("{:.1} MB, {} B each", text_bytes as f64 / 1e6, text_bytes / messages.max(1)));
    table.at_least("append, words and substrings searchable", rate, limits.append, "messages/s");
    let (p50, p95) = percentiles(&mut batch_ms);
    table.note("  a batch of 1,000: p50, p95", format!("{p50:.1} ms, {p95:.1} ms"));
    Ok(text_bytes)
}

fn sizes(store: &SqliteStore, folder: &Path, text_bytes: usize, table: &mut Table) -> Result<(), String> {
    let bytes = std::fs::metadata(store.path()).map_err(|error| error.to_string())?.len();
    let journal = std::fs::metadata(folder.join("record.db-wal")).map_or(0, |journal| journal.len());
    table.at_most("database over text, indexes included", bytes as f64 / text_bytes as f64, 3.0, "times");
    table
        .note("  database, journal", format!("{:.0} MB, {:.0} MB", bytes as f64 / 1e6, journal as f64 / 1e6));
    Ok(())
}

fn opening(path: &Path, table: &mut Table) -> Result<(), String> {
    let mut times = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let store = SqliteStore::open(path, START_MS).map_err(told)?;
        let listed = store.conversations(&Owner::default(), &SessionFilter::default()).map_err(told)?;
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
        if listed.is_empty() {
            return Err("no conversation is listed".to_owned());
        }
    }
    let (p50, p95) = percentiles(&mut times);
    table.at_most("open and list all conversations, p50", p50, 50.0, "ms");
    table.note("  p95", format!("{p95:.1} ms"));
    Ok(())
}

/// Times the searches of one kind and returns all times.
fn ask(
    store: &dyn Store,
    what: &str,
    mode: SearchMode,
    questions: Vec<(String, Option<SessionId>)>,
    table: &mut Table,
) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    let mut hits = 0;
    let mut bounded = 0;
    for (text, session) in questions {
        let query = SearchQuery { text, mode, session, neighbours: 1, ..SearchQuery::default() };
        let started = Instant::now();
        let answer = store.search(&Owner::default(), &query).map_err(told)?;
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
        hits += usize::from(!answer.hits.is_empty());
        bounded += usize::from(answer.ranked_newest.is_some());
    }
    let count = times.len();
    let (p50, p95) = percentiles(&mut times);
    table.note(
        format!("  {what}: p50, p95"),
        format!("{p50:.1} ms, {p95:.1} ms ({hits} of {count} found, {bounded} bounded)"),
    );
    Ok(times)
}

fn words(store: &dyn Store, author: &Author, limits: &RecordLimits, table: &mut Table) -> Result<(), String> {
    let mut rng = Rng::new(5);
    let mut ranked = |from: usize, to: usize| author.word(rng.between(from, to)).to_owned();
    let everywhere = |text: String| (text, None);
    let rare = (0..QUESTIONS).map(|_| everywhere(ranked(20_000, 39_999))).collect();
    let medium = (0..QUESTIONS).map(|_| everywhere(ranked(500, 5_000))).collect();
    let common = (0..QUESTIONS).map(|_| everywhere(ranked(0, 50))).collect();
    let two =
        (0..QUESTIONS).map(|_| everywhere(format!("{} {}", ranked(100, 2_000), ranked(0, 100)))).collect();
    let phrase =
        (0..QUESTIONS).map(|_| everywhere(format!("\"{} {}\"", ranked(0, 60), ranked(0, 60)))).collect();
    let identifier =
        (0..QUESTIONS).map(|_| everywhere(format!("{}_{}", ranked(0, 100), ranked(0, 100)))).collect();
    let path = (0..QUESTIONS).map(|_| everywhere(format!("src/{}", ranked(0, 200)))).collect();
    let in_session = (0..QUESTIONS).map(|at| (ranked(0, 200), Some(session_id(at % 5)))).collect();
    let prefix = (0..QUESTIONS).map(|_| everywhere(format!("{}*", ranked(5_000, 20_000)))).collect();
    let mut all = Vec::new();
    for (what, questions) in [
        ("a rare word", rare),
        ("a word", medium),
        ("a common word", common),
        ("two words", two),
        ("a phrase of common words", phrase),
        ("an identifier", identifier),
        ("a path", path),
        ("in one conversation", in_session),
        ("the beginning of a word", prefix),
        (
            "Chinese",
            vec![
                everywhere("数据库连接".to_owned()),
                everywhere("缓存".to_owned()),
                everywhere("库".to_owned()),
            ],
        ),
    ] {
        all.extend(ask(store, what, SearchMode::Words, questions, table)?);
    }
    let (p50, p95) = percentiles(&mut all);
    table.at_most("search by words, p50 over all", p50, limits.words, "ms");
    table.note("  p95 over all", format!("{p95:.1} ms"));
    Ok(())
}

/// Whole questions; hardly any message contains every word of one.
fn questions(
    store: &dyn Store,
    author: &Author,
    limits: &RecordLimits,
    table: &mut Table,
) -> Result<(), String> {
    let mut rng = Rng::new(7);
    let mut question = |words: usize, from: usize, to: usize| {
        let words: Vec<&str> = (0..words).map(|_| author.word(rng.between(from, to))).collect();
        (format!("why did the {} not work?", words.join(" ")), None)
    };
    let usual = (0..QUESTIONS).map(|_| question(5, 60, 3_000)).collect();
    let common = (0..QUESTIONS).map(|_| question(5, 20, 300)).collect();
    let long = (0..QUESTIONS).map(|_| question(12, 60, 20_000)).collect();
    let mut all = Vec::new();
    for (what, questions) in
        [("of five words", usual), ("of five common words", common), ("of twelve words", long)]
    {
        all.extend(ask(store, what, SearchMode::Words, questions, table)?);
    }
    let (p50, p95) = percentiles(&mut all);
    table.at_most("whole questions, p50 over all", p50, limits.questions, "ms");
    table.note("  p95 over all", format!("{p95:.1} ms"));
    Ok(())
}

fn substrings(
    store: &dyn Store,
    author: &Author,
    limits: &RecordLimits,
    table: &mut Table,
) -> Result<(), String> {
    let mut rng = Rng::new(6);
    let mut piece = |from: usize, to: usize, keep: usize| {
        let word = author.word(rng.between(from, to));
        word.get(1..(1 + keep).min(word.len())).unwrap_or(word).to_owned()
    };
    let everywhere = |text: String| (text, None);
    let rare = (0..QUESTIONS).map(|_| everywhere(piece(20_000, 39_999, 8))).collect();
    let medium = (0..QUESTIONS).map(|_| everywhere(piece(300, 3_000, 5))).collect();
    let common = (0..QUESTIONS).map(|_| everywhere(piece(3, 60, 4))).collect();
    let across =
        (0..QUESTIONS).map(|_| everywhere(format!("{} {}", piece(0, 60, 9), piece(0, 2_000, 4)))).collect();
    let in_path = (0..QUESTIONS).map(|_| everywhere(format!("rc/{}", piece(0, 500, 4)))).collect();
    let absent = (0..QUESTIONS).map(|at| everywhere(format!("tion{at}zzing"))).collect();
    let short = (0..QUESTIONS / 4).map(|_| everywhere(piece(0, 3_000, 2))).collect();
    let mut all = Vec::new();
    for (what, questions) in [
        ("inside a rare word", rare),
        ("inside a word", medium),
        ("inside a common word", common),
        ("across two words", across),
        ("inside a path", in_path),
        ("not there", absent),
        ("two characters", short),
    ] {
        all.extend(ask(store, what, SearchMode::Substring, questions, table)?);
    }
    let (p50, p95) = percentiles(&mut all);
    table.at_most("search by substring, p50 over all", p50, limits.substrings, "ms");
    table.note("  p95 over all", format!("{p95:.1} ms"));
    Ok(())
}

/// A compaction of a session: the first messages of its conversation stay, a summary replaces the others.
pub(crate) fn continuation(from: &Session, first: SessionId, id: SessionId) -> Continuation {
    let kept = ViewItem::Range { session: first, first_seq: 0, end_seq: Some(3.min(from.next_seq)) };
    Continuation {
        lease: None,
        from: from.id.clone(),
        id,
        reason: EndReason::COMPRESSION,
        at_ms: START_MS,
        made_at_seq: from.next_seq,
        summary: Some(NewSummary {
            author: "rules".to_owned(),
            document: "## What was done\n\n".repeat(200),
            sources: Vec::new(),
            supersedes: None,
            facts: serde_json::json!({}),
            figures: serde_json::json!({}),
        }),
        view: vec![
            NewViewItem::Kept(kept),
            NewViewItem::Summary { json: r#"{"role":"user","content":"summary"}"#.to_owned(), tokens: 900 },
        ],
    }
}

/// Compacts the first conversation repeatedly.
fn continuations(store: &dyn Store, limits: &RecordLimits, table: &mut Table) -> Result<(), String> {
    let owner = Owner::default();
    let mut from = store.session(&owner, &session_id(0)).map_err(told)?;
    let mut times = Vec::new();
    for number in 0..CONTINUATIONS {
        let continuation = continuation(&from, session_id(0), session_id(1_000_000 + number));
        let started = Instant::now();
        from = store.continue_session(&owner, continuation).map_err(told)?;
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    let (p50, p95) = percentiles(&mut times);
    table.at_most("a continuation, p50", p50, limits.continuation, "ms");
    table.note("  p95", format!("{p95:.2} ms"));
    Ok(())
}

/// The text in a message's JSON, as a full-text table would receive it.
pub(crate) fn text_of(json: String) -> Result<String, String> {
    let message = decode_message(SharedText::new(json)).ok_or("no message was made")?;
    Ok(crate::retention::all_text(&message, crate::retention::Counting::Everything))
}

pub(crate) fn percentiles(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times.get(((times.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or_default()
    };
    (at(0.5), at(0.95))
}
