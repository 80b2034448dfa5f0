//! Whether a search finds the answer to a question: questions are put unchanged to a record, and the benchmark counts how often the first
//! passages contain the answer.
//!
//! Four columns: the search of the record; plain BM25 with stems over windows of eighty words, of single messages and across messages;
//! and the newest windows, independent of the question. A passage counts with its first 200 words, the first k passages with 80 x k words
//! together.

mod automatic;
mod baseline;
mod dialogue;
mod generated;
mod marked;
mod public;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use throughline_config::Loader;
use throughline_models::ConfiguredEmbedder;
use throughline_store::{NewMessage, Owner, SearchQuery, SessionId, SqliteStore, Store};
use throughline_transcript::decode_message_text;

use crate::store::{new_session, session_id, told};
use baseline::Windows;

/// The numbers of first passages that are evaluated.
const DEPTHS: [usize; 3] = [5, 10, 20];
/// The words of a passage that count, and their mean over all passages.
const PASSAGE_WORDS: usize = 200;
const MEAN_WORDS: usize = 80;
const START_MS: i64 = 1_700_000_000_000;

/// A conversation with questions about it.
pub(super) struct Examined {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) questions: Vec<Asked>,
}

/// The source of its messages.
pub(super) enum Source {
    /// A log to import.
    Log(String),
    /// Messages, each with a role and a text.
    Messages(Vec<(&'static str, String)>),
}

/// A question with its answer.
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) answer: Answer,
}

/// The criterion of an answer.
pub(super) enum Answer {
    /// The passages together contain one key of every group, compared without case and with runs of white space as one space.
    Keys(Vec<Vec<String>>),
    /// A passage contains one of these messages.
    Messages(HashSet<u64>),
}

/// A passage that is evaluated.
pub(super) struct Shown {
    /// The number of its first message.
    pub(super) seq: u64,
    pub(super) text: String,
}

/// The options of the benchmark.
pub(crate) struct RecallOptions {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) truth: Option<PathBuf>,
    pub(crate) locomo: Option<PathBuf>,
    pub(crate) beam: Option<PathBuf>,
    pub(crate) static_model: Option<PathBuf>,
    pub(crate) tokenizer: Option<PathBuf>,
    pub(crate) generated: u64,
    /// Whether to list every question that the first twenty passages do not answer.
    pub(crate) missing: bool,
}

/// The hits by column and depth.
#[derive(Default)]
struct Figures {
    questions: usize,
    empty: usize,
    columns: Vec<(&'static str, [usize; DEPTHS.len()])>,
    missing: Vec<String>,
}

impl Figures {
    fn count(
        &mut self,
        column: &'static str,
        question: &Asked,
        passages: &[Shown],
        texts: &[String],
    ) -> bool {
        if !self.columns.iter().any(|(name, _)| *name == column) {
            self.columns.push((column, [0; DEPTHS.len()]));
        }
        let hits = DEPTHS.map(|depth| is_answered(&question.answer, passages, depth, texts));
        for (name, counts) in &mut self.columns {
            if *name == column {
                counts.iter_mut().zip(hits).for_each(|(count, hit)| *count += usize::from(hit));
            }
        }
        hits.last().copied().unwrap_or_default()
    }

    fn print(&self, title: &str, out: &mut String) {
        let _ = writeln!(out, "{title}: {} questions, {} without any passage", self.questions, self.empty);
        let _ = writeln!(out, "{:<44} {:>8} {:>8} {:>8}", "percent", "hit@5", "hit@10", "hit@20");
        for (name, counts) in &self.columns {
            let [five, ten, twenty] = counts.map(|count| 100.0 * count as f64 / self.questions.max(1) as f64);
            let _ = writeln!(out, "{name:<44} {five:>8.1} {ten:>8.1} {twenty:>8.1}");
        }
        self.missing.iter().for_each(|missing| {
            let _ = writeln!(out, "  missing: {missing}");
        });
        out.push('\n');
    }
}

/// Runs the benchmark.
pub(crate) fn run(options: &RecallOptions) -> Result<String, String> {
    let mut out = String::new();
    let embedder = embedder(options)?;
    let examine =
        |examined: &[Examined], records| examine(examined, records, options.missing, embedder.as_ref());
    // A folder in one of the public formats needs no flag.
    let format = options.folder.as_deref().and_then(public::format_of);
    let named =
        |format_here: public::PublicFormat| options.folder.clone().filter(|_| format == Some(format_here));
    if let Some(folder) = options.folder.as_ref().filter(|_| format.is_none()) {
        let examined = marked::read(folder, options.truth.as_deref())?;
        examine(&examined, Records::OneEach)?.print("marked sessions, a record each", &mut out);
        examine(&examined, Records::Shared)?.print("marked sessions, one record of all", &mut out);
        let records = tempfile::tempdir().map_err(|error| error.to_string())?;
        out.push_str(&automatic::run(&examined, records.path())?);
        out.push('\n');
    }
    if options.generated > 0 {
        let examined = generated::conversations(options.generated);
        examine(&examined, Records::OneEach)?
            .print("generated conversations, questions in other words", &mut out);
        let examined = dialogue::conversations(options.generated);
        examine(&examined, Records::OneEach)?
            .print("generated dialogues of short turns, questions in other words", &mut out);
    }
    let locomo = options.locomo.clone().or_else(|| named(public::PublicFormat::Locomo));
    let beam = options.beam.clone().or_else(|| named(public::PublicFormat::Beam));
    for (title, path, read) in [
        ("LoCoMo", locomo, public::locomo as fn(&Path) -> Result<Vec<Examined>, String>),
        ("BEAM", beam, public::beam),
    ] {
        if let Some(path) = path {
            examine(&read(&path)?, Records::OneEach)?.print(title, &mut out);
        }
    }
    Ok(out)
}

/// The embedding model of the column with vectors.
fn embedder(options: &RecallOptions) -> Result<Option<Arc<ConfiguredEmbedder>>, String> {
    let Some(model) = &options.static_model else { return Ok(None) };
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let mut loader = Loader::new().set(&format!("recall.embeddings.static_model={}", model.display()));
    if let Some(tokenizer) = &options.tokenizer {
        loader = loader.set(&format!("recall.embeddings.tokenizer={}", tokenizer.display()));
    }
    let settings = loader.load().map_err(|errors| errors.to_string())?.settings;
    ConfiguredEmbedder::of(&settings, &here, &|_| None)
}

/// Whether each conversation has its own record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Records {
    OneEach,
    Shared,
}

fn examine(
    conversations: &[Examined],
    records: Records,
    lists_missing: bool,
    embedder: Option<&Arc<ConfiguredEmbedder>>,
) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let open =
        |name: &str| SqliteStore::open(&folder.path().join(format!("{name}.db")), START_MS).map_err(told);
    let shared = match records {
        Records::Shared => {
            let store = open("all")?;
            for (number, examined) in conversations.iter().enumerate() {
                fill(&store, examined, number, folder.path())?;
            }
            make_vectors(&store, embedder)?;
            let texts = texts_of(&store)?;
            Some((store, Windows::new(&texts), Windows::across(&texts)))
        }
        Records::OneEach => None,
    };
    for (number, examined) in conversations.iter().enumerate() {
        let own = open(&format!("record{number}"))?;
        fill(&own, examined, number, folder.path())?;
        if shared.is_none() {
            make_vectors(&own, embedder)?;
        }
        let texts = texts_of(&own)?;
        let own_windows;
        let (searched, windows, across) = match &shared {
            Some((store, windows, across)) => (store, windows, across),
            None => {
                own_windows = (Windows::new(&texts), Windows::across(&texts));
                (&own, &own_windows.0, &own_windows.1)
            }
        };
        for question in &examined.questions {
            figures.questions += 1;
            let found = search(searched, &question.text, Words::Only)?;
            figures.empty += usize::from(found.is_empty());
            if !figures.count("search", question, &found, &texts) && lists_missing {
                figures.missing.push(format!("{}: {}", examined.name, question.text));
            }
            if embedder.is_some() {
                let found = search(searched, &question.text, Words::AndVectors)?;
                figures.count("search with vectors", question, &found, &texts);
            }
            let deepest = DEPTHS.into_iter().max().unwrap_or_default();
            figures.count(
                "BM25, windows of 80 words, stems",
                question,
                &windows.ranked(&question.text, deepest),
                &texts,
            );
            figures.count(
                "BM25, windows across messages, stems",
                question,
                &across.ranked(&question.text, deepest),
                &texts,
            );
            figures.count("the newest windows", question, &windows.newest(deepest), &texts);
        }
    }
    Ok(figures)
}

/// Adds a conversation to a record.
fn fill(store: &SqliteStore, examined: &Examined, number: usize, folder: &Path) -> Result<(), String> {
    match &examined.source {
        Source::Log(log) => {
            let path = folder.join(format!("{}.jsonl", examined.name));
            std::fs::write(&path, log).map_err(|error| error.to_string())?;
            let mut next = number as u32 * 1_000;
            let mut new_id = |at_ms| {
                next += 1;
                SessionId::new(at_ms, next, throughline_store::IdLength::Local)
            };
            let mut report = throughline_store::ImportReport::default();
            throughline_store::Importer::new(store, Owner::default(), &mut new_id, |_| None)
                .import_path(&path, &mut report, &mut |_| {})
                .map_err(told)
        }
        Source::Messages(messages) => {
            store.open_session(new_session(number), None).map_err(told)?;
            let messages = messages.iter().enumerate().map(|(at, (role, text))| {
                let json = serde_json::json!({ "role": role, "content": text }).to_string();
                Ok(NewMessage {
                    message: decode_message_text(json).map_err(|error| error.to_string())?,
                    tokens: text.len() as u64 / 4,
                    at_ms: START_MS + at as i64 * 1_000,
                    tools: Vec::new(),
                    rendition: None,
                })
            });
            let messages = messages.collect::<Result<Vec<_>, String>>()?;
            store.append(&Owner::default(), &session_id(number), messages).map_err(told)?;
            Ok(())
        }
    }
}

/// The texts of all messages of a record, in order.
fn texts_of(store: &SqliteStore) -> Result<Vec<String>, String> {
    let owner = Owner::default();
    let mut messages = Vec::new();
    for conversation in
        store.conversations(&owner, &throughline_store::SessionFilter::default()).map_err(told)?
    {
        messages.extend(store.transcript(&owner, &conversation.tip.id).map_err(told)?);
    }
    messages.sort_by_key(|message| message.id);
    messages.dedup_by_key(|message| message.id);
    Ok(messages
        .iter()
        .map(|message| {
            let message = throughline_transcript::decode_message(message.json.clone());
            message.map_or_else(String::new, |message| {
                crate::retention::all_text(&message, crate::retention::Counting::Everything)
            })
        })
        .collect())
}

/// Computes all vectors of a record and enables search with them.
fn make_vectors(store: &SqliteStore, embedder: Option<&Arc<ConfiguredEmbedder>>) -> Result<(), String> {
    let Some(embedder) = embedder else { return Ok(()) };
    while store.embed_next(embedder.as_ref()).map_err(told)?.messages > 0 {}
    store.use_embedder(Arc::<ConfiguredEmbedder>::clone(embedder));
    Ok(())
}

/// Whether a record is searched by words alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Only,
    AndVectors,
}

fn search(store: &SqliteStore, text: &str, words: Words) -> Result<Vec<Shown>, String> {
    let limit = DEPTHS.into_iter().max().unwrap_or_default();
    let words_only = words == Words::Only;
    let query = SearchQuery { text: text.to_owned(), limit, words_only, ..SearchQuery::default() };
    let answer = store.search(&Owner::default(), &query).map_err(told)?;
    Ok(answer.hits.into_iter().map(|hit| Shown { seq: hit.seq, text: hit.snippet.text }).collect())
}

/// The text that is read of the first passages, within the limits on words.
fn first_passages(passages: &[Shown], depth: usize) -> (String, HashSet<u64>) {
    let mut left = MEAN_WORDS * depth;
    let mut read = String::new();
    let mut shown = HashSet::new();
    for passage in passages.iter().take(depth) {
        let words: Vec<&str> = passage.text.split_whitespace().take(PASSAGE_WORDS.min(left)).collect();
        if words.is_empty() {
            break;
        }
        left -= words.len();
        shown.insert(passage.seq);
        read.push_str(&words.join(" "));
        read.push('\n');
    }
    (read, shown)
}

/// The text that one recall reads: the first passages of a search.
pub(crate) fn recalled(store: &SqliteStore, question: &str, depth: usize) -> Result<String, String> {
    Ok(first_passages(&search(store, question, Words::Only)?, depth).0)
}

/// The result of plain BM25 for a question about a string.
pub(crate) struct PlainFinding {
    /// The first passages.
    pub(crate) text: String,
    /// Whether the question shares a word with any passage that contains the string.
    pub(crate) shares_word: bool,
}

/// Runs plain BM25 over messages for questions, each about a string.
pub(crate) fn recalled_plainly(
    texts: &[String],
    questions: &[(String, &str)],
    depth: usize,
) -> Vec<PlainFinding> {
    let windows = Windows::new(texts);
    let finding = |(question, wanted): &(String, &str)| PlainFinding {
        text: first_passages(&windows.ranked(question, depth), depth).0,
        shares_word: windows.shares_word(question, |window| crate::anchor::stands_in(window, wanted)),
    };
    questions.iter().map(finding).collect()
}

/// Whether the first passages answer a question.
fn is_answered(answer: &Answer, passages: &[Shown], depth: usize, texts: &[String]) -> bool {
    let (read, shown) = first_passages(passages, depth);
    let read = fold(&read);
    match answer {
        Answer::Keys(keys) => keys.iter().all(|group| group.iter().any(|key| read.contains(&fold(key)))),
        Answer::Messages(evidence) => evidence.iter().any(|seq| {
            let beginning = texts.get(*seq as usize).map(|text| first_words(text)).unwrap_or_default();
            shown.contains(seq) || (!beginning.is_empty() && read.contains(&beginning))
        }),
    }
}

/// The first six words of a text, which are enough to recognise it in a passage.
fn first_words(text: &str) -> String {
    fold(&text.split_whitespace().take(6).collect::<Vec<_>>().join(" "))
}

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
