//! The record on disk: appended turns and searches.

use throughline_store::{NewMessage, Owner, SearchMode, SearchQuery, SqliteStore, Store};
use throughline_testkit::Rng;
use throughline_transcript::{SharedText, decode_message};

use super::workloads::Round;
use crate::store::{START_MS, new_session, session_id, told};
use crate::store_texts::Author;

/// The number of messages in the record before counting.
const FILLING: usize = 4_000;
const FILLING_BATCH: usize = 500;
/// The appends of a round, and the messages of each: a question and its answer.
const APPENDS: usize = 40;
const APPENDED: usize = 2;
/// The number of searches of each kind in a round.
const QUESTIONS: usize = 8;

struct Stage {
    store: SqliteStore,
    author: Author,
    written: usize,
    // Dropped last, because it contains the record.
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let store = SqliteStore::open(&folder.path().join("record.db"), START_MS).map_err(told)?;
        store.open_session(new_session(0), None).map_err(told)?;
        let mut stage = Self { store, author: Author::new(11), written: 0, _folder: folder };
        while stage.written < FILLING {
            stage.append(FILLING_BATCH)?;
        }
        Ok(stage)
    }

    fn append(&mut self, messages: usize) -> Result<(), String> {
        let mut batch = Vec::with_capacity(messages);
        for _ in 0..messages {
            let made = self.author.message();
            let message = decode_message(SharedText::new(made.json)).ok_or("no message was made")?;
            batch.push(NewMessage {
                message,
                tokens: made.text_bytes as u64 / 4,
                at_ms: START_MS + i64::try_from(self.written).unwrap_or_default() * 100,
                tools: made.tool.map(str::to_owned).into_iter().collect(),
                rendition: None,
            });
            self.written += 1;
        }
        self.store.append(&Owner::default(), &session_id(0), batch).map_err(told)?;
        Ok(())
    }
}

pub(super) fn append() -> Result<Round, String> {
    let mut stage = Stage::new()?;
    Ok(Box::new(move || (0..APPENDS).try_for_each(|_| stage.append(APPENDED))))
}

/// The same searches in every round: a rare word, a common one, two together, a phrase, a path.
pub(super) fn search() -> Result<Round, String> {
    let stage = Stage::new()?;
    let mut rng = Rng::new(5);
    let mut word = |from: usize, to: usize| stage.author.word(rng.between(from, to)).to_owned();
    let mut questions = Vec::new();
    for _ in 0..QUESTIONS {
        questions.push(word(2_000, 10_000));
        questions.push(word(0, 50));
        questions.push(format!("{} {}", word(100, 500), word(0, 100)));
        questions.push(format!("\"{} {}\"", word(0, 60), word(0, 60)));
        questions.push(format!("src/{}", word(0, 200)));
    }
    Ok(Box::new(move || {
        // Captures the whole stage; with its store alone, the folder of the record would be dropped.
        let stage = &stage;
        let mut hits = 0;
        for text in &questions {
            let query = SearchQuery {
                text: text.clone(),
                mode: SearchMode::AllWords,
                neighbours: 1,
                ..SearchQuery::default()
            };
            hits += stage.store.search(&Owner::default(), &query).map_err(told)?.hits.len();
        }
        if hits == 0 { Err("no question was answered".to_owned()) } else { Ok(()) }
    }))
}
