//! Search on PostgreSQL and on SQLite: the same answers on the same data, over several segments of the index and after deletions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use throughline_store::{
    Dependants, Millis, NewArtifact, NewMessage, NewSession, Owner, SearchMode, SearchQuery, SqliteStore,
    Store,
};
use throughline_testkit::Rng;
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use crate::contract::support::{compact, id, new_session, owner, postgres, stranger};

/// Words of every kind; the more there are of one, the commoner it is.
const WORDS: &[&str] = &[
    "the",
    "the",
    "the",
    "the",
    "of",
    "of",
    "error",
    "error",
    "file",
    "config",
    "server",
    "request",
    "Stra\u{df}e",
    "\u{c4}PFEL",
    "na\u{ef}ve",
    "cache",
    "retry",
    "parser",
    "token",
    "HTTPServer",
    "v2",
    "x",
    "42",
    "don't",
    "C++",
    "\u{4fee}\u{590d}",
    "\u{6570}\u{636e}\u{5e93}",
    "\u{c11c}\u{c6b8}\u{c5d0}\u{c11c}",
    "src/parser/mod.rs",
];
const JOINTS: &[&str] = &[" ", " ", " ", " ", "_", "-", ".", "/", "::", ", ", "\n", "\"", ": "];
const ROLES: [Role; 3] = [Role::User, Role::Assistant, Role::User];
const SESSIONS: usize = 9;

struct Author {
    rng: Rng,
    at_ms: Millis,
}

impl Author {
    fn word(&mut self) -> String {
        match self.rng.below(3) {
            // A few hundred rare ones.
            0 => format!("w{}q", self.rng.below(400)),
            _ => self.rng.pick(WORDS).to_owned(),
        }
    }

    fn text(&mut self, words: usize) -> String {
        let mut text = self.word();
        for _ in 1..words {
            text.push_str(self.rng.pick(JOINTS));
            text.push_str(&self.word());
        }
        text
    }

    fn message(&mut self) -> NewMessage {
        // Some are said word for word again; some hold a large text, which becomes an artifact.
        let (words, tools) = match self.rng.below(200) {
            0 => (3_000, vec!["Read".to_owned()]),
            1..20 => (120, vec!["Bash".to_owned(), "read".to_owned()]),
            _ => (1 + self.rng.below(14), Vec::new()),
        };
        let text = self.text(words);
        let message = if tools.is_empty() {
            let role = ROLES[self.rng.below(ROLES.len())];
            text_message(WireFormat::Chat, role, &text)
        } else {
            serde_json::json!({ "role": "tool", "tool_call_id": "c1", "content": text }).to_string()
        };
        self.at_ms += 1_000;
        let message = decode_message_text(message).unwrap();
        NewMessage { message, tokens: 10, at_ms: self.at_ms, tools, rendition: None }
    }

    fn question(&mut self, answers: &[String]) -> SearchQuery {
        let text = match self.rng.below(6) {
            0 => self.word(),
            1 => format!("\"{} {}\"", self.word(), self.word()),
            2 => format!("where did the {} of {} and {} go wrong", self.word(), self.word(), self.word()),
            3 => {
                // Part of something that was said.
                let text = &answers[self.rng.below(answers.len())];
                let (start, length) = (self.rng.below(text.len().min(60)), 3 + self.rng.below(20));
                let start = text.floor_char_boundary(start);
                text[start..text.floor_char_boundary((start + length).min(text.len()))].to_owned()
            }
            4 => self.word().chars().take(2).collect(),
            _ => format!("{} {}", self.word(), self.word()),
        };
        let mode = [SearchMode::Words, SearchMode::AllWords, SearchMode::Substring][self.rng.below(3)];
        let mut query = SearchQuery { text, mode, neighbours: self.rng.below(3), ..SearchQuery::default() };
        query.limit = [0, 3, 40][self.rng.below(3)];
        match self.rng.below(12) {
            0 => query.role = Some(Role::Tool),
            1 => query.role = Some(Role::Assistant),
            2 => query.tool = Some("READ".to_owned()),
            3 => query.session = Some(id(&format!("s{}", self.rng.below(SESSIONS)))),
            4 => query.project = Some(format!("p{}", self.rng.below(3))),
            5 => query.file = Some("parser/mod.rs".to_owned()),
            6 => query.since_ms = Some(self.at_ms / 2),
            7 => query.until_ms = Some(self.at_ms / 2),
            _ => {}
        }
        query
    }
}

/// Says the same on both, and returns some of what was said.
fn fill(stores: [&dyn Store; 2], author: &mut Author, owner: &Owner, messages: usize) -> Vec<String> {
    let mut said = Vec::new();
    for at in 0..SESSIONS {
        for store in stores {
            let mut new = NewSession { owner: owner.clone(), ..new_session(&name(owner, at)) };
            new.origin.project = Some(format!("/home/me/p{}", at % 3));
            new.title = (at % 2 == 0).then(|| format!("conversation {at}"));
            store.open_session(new, None).unwrap();
        }
    }
    let mut left = messages;
    while left > 0 {
        let some = left.min(1 + author.rng.below(120));
        left -= some;
        let session = id(&name(owner, author.rng.below(SESSIONS)));
        let batch: Vec<NewMessage> = (0..some).map(|_| author.message()).collect();
        said.extend(batch.iter().take(3).map(|new| new.message.text().into_owned()));
        for store in stores {
            store.append(owner, &session, batch.clone()).unwrap();
        }
    }
    said
}

fn name(of: &Owner, at: usize) -> String {
    if *of == owner() { format!("s{at}") } else { format!("other{at}") }
}

/// Asks both, and compares everything they answer.
fn compare(stores: [&dyn Store; 2], author: &mut Author, said: &[String], questions: usize) {
    let (mut found, mut passages) = (0, 0);
    for _ in 0..questions {
        let query = author.question(said);
        let [expected, answer] =
            stores.map(|store| store.search(&owner(), &query).map_err(|error| error.to_string()));
        let (Ok(expected), Ok(answer)) = (&expected, &answer) else {
            // A conversation that was deleted.
            assert_eq!(answer, expected, "{query:?}");
            continue;
        };
        found += usize::from(!answer.hits.is_empty());
        passages += usize::from(answer.hits.iter().any(|hit| hit.matched.is_some_and(|m| m.words < m.of)));
        assert_eq!(answer, expected, "{query:?}");
    }
    assert!(
        found > questions / 3 && passages > 0,
        "{found} of {questions} found anything, {passages} passages"
    );
}

fn differential(messages: usize, questions: usize) {
    let Some(server) = postgres() else { return };
    let file = SqliteStore::in_memory().unwrap();
    let stores: [&dyn Store; 2] = [&file, &server];
    let mut author = Author { rng: Rng::new(messages as u64), at_ms: 0 };
    let said = fill(stores, &mut author, &owner(), messages);
    for store in stores {
        // What came by itself, and a conversation that was compacted.
        let artifact = NewArtifact {
            session: &id("s1"),
            label: "notes",
            text: &"a note on w7q\n".repeat(9_000),
            at_ms: 5,
        };
        store.put_artifact(&owner(), artifact).unwrap();
        compact(store, "s0", "s0b", "notes");
    }
    compare(stores, &mut author, &said, questions);
    for name in ["s2", "s5"] {
        for store in stores {
            store.delete(&owner(), &id(name), Dependants::Refuse).unwrap();
        }
    }
    compare(stores, &mut author, &said, questions / 3);
    let gone: SearchQuery = SearchQuery { session: Some(id("s3")), ..author.question(&said) };
    let [expected, answer] = stores.map(|store| store.search(&owner(), &gone).unwrap());
    assert_eq!(answer, expected);
}

#[test]
fn small_records_are_searched_alike() {
    differential(900, 120);
}

#[test]
fn records_of_several_segments_are_searched_alike() {
    differential(7_000, 150);
}

#[test]
fn owners_have_indexes_of_their_own() {
    let Some(server) = postgres() else { return };
    let (own, other) = (SqliteStore::in_memory().unwrap(), SqliteStore::in_memory().unwrap());
    let mut author = Author { rng: Rng::new(5), at_ms: 0 };
    let said = fill([&own, &server], &mut author, &owner(), 2_500);
    fill([&other, &server], &mut author, &stranger(), 2_500);
    // Numbers of messages are common to all owners, so they differ here.
    for _ in 0..80 {
        let query = author.question(&said);
        let [mut expected, mut answer] =
            [&own as &dyn Store, &server].map(|store| store.search(&owner(), &query).unwrap());
        for hit in expected.hits.iter_mut().chain(&mut answer.hits) {
            hit.message = 0;
        }
        assert_eq!(answer, expected, "{query:?}");
    }
}
