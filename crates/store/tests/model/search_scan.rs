//! Search by the index against a scan of everything (`MemoryStore::scan`): both must find the same,
//! for every kind of question, over several segments of the index, after deletions too.

use throughline_store::{
    Dependants, IdLength, MemoryStore, NewMessage, NewSession, Origin, Owner, SearchAnswer, SearchMode,
    SearchQuery, SessionId, SqliteStore, Store,
};
use throughline_testkit::Rng;
use throughline_transcript::{SharedText, WireFormat, compact_json_string, decode_message};

/// Two segments of the index, and one that is not complete.
const MESSAGES: usize = 5_000;
const SESSION_MESSAGES: usize = 600;
const QUESTIONS: usize = 24;

const WORDS: &[&str] = &[
    "the",
    "of",
    "error",
    "file",
    "config",
    "server",
    "request",
    "Straße",
    "ÄPFEL",
    "naïve",
    "cache",
    "retry",
    "parser",
    "token",
    "HTTPServer",
    "v2",
    "ls",
    "x",
    "42",
    "→",
    "🎉",
    "don't",
    "C++",
];
const HAN: &[&str] = &["修复", "解析", "数据库", "连接", "缓存", "서울에서", "회의를", "タワー"];
const JOINTS: &[&str] = &[" ", " ", " ", " ", "_", "-", ".", "/", "::", ", ", "\n", "\\", "\"", ": "];

struct Author {
    rng: Rng,
    /// Rare words, each in a few messages.
    rare: Vec<String>,
}

impl Author {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut letter = |_| char::from(b'a' + rng.below(26) as u8);
        let rare = (0..900).map(|at| (0..3 + at % 9).map(&mut letter).collect::<String>()).collect();
        Self { rng, rare }
    }

    fn word(&mut self) -> String {
        match self.rng.below(10) {
            0..4 => {
                let at = self.rng.below(self.rare.len());
                self.rare[at].clone()
            }
            4 => self.rng.pick(HAN).to_owned(),
            5 => {
                // An identifier with a hump.
                let (first, second) = (self.rng.below(self.rare.len()), self.rng.below(self.rare.len()));
                let mut letters = self.rare[second].chars();
                let hump: String = letters.next().iter().flat_map(|first| first.to_uppercase()).collect();
                format!("{}{hump}{}", self.rare[first], letters.as_str())
            }
            _ => self.rng.pick(WORDS).to_owned(),
        }
    }

    fn text(&mut self) -> String {
        let mut text = self.word();
        for _ in 0..self.rng.between(2, 14) {
            text.push_str(self.rng.pick(JOINTS));
            text.push_str(&self.word());
        }
        text
    }

    /// So many words of a text from somewhere in it, as they stand there.
    fn passage<'t>(&mut self, text: &'t str, words: usize) -> &'t str {
        let is_word = |c: char| c.is_alphanumeric();
        let starts: Vec<usize> = text
            .char_indices()
            .filter(|(at, c)| is_word(*c) && !text[..*at].ends_with(is_word))
            .map(|(at, _)| at)
            .collect();
        if starts.is_empty() {
            return text;
        }
        let first = self.rng.below(starts.len());
        let last = starts[(first + words - 1).min(starts.len() - 1)];
        let length = text[last..].find(|c| !is_word(c)).unwrap_or(text.len() - last);
        &text[starts[first]..last + length]
    }

    /// A question of a kind about a text.
    fn question(&mut self, kind: &str, text: &str) -> String {
        match kind {
            "a word" => self.passage(text, 1).to_owned(),
            "two words" => format!("{} {}", self.passage(text, 1), self.passage(text, 1)),
            "a phrase" => format!("\"{}\"", self.passage(text, 3).replace('"', " ")),
            "a long phrase" => format!("\"{}\"", self.passage(text, 6).replace('"', " ")),
            "an identifier" => self.passage(text, 2).split_whitespace().collect::<Vec<_>>().join("_"),
            "identifiers and words" => {
                let held = self.passage(text, 2).split_whitespace().collect::<Vec<_>>().join("_");
                format!("{held} {}", self.passage(text, 1))
            }
            "many words" => {
                let mut words: Vec<&str> = self.passage(text, 7).split_whitespace().collect();
                words.reverse();
                words.join(" ")
            }
            "a path" => self.passage(text, 2).split_whitespace().collect::<Vec<_>>().join("/"),
            "a beginning" => {
                let word = self.passage(text, 1);
                let keep = self.rng.between(2, 7);
                format!("{}*", word.chars().take(keep).collect::<String>())
            }
            _ => {
                let characters: Vec<char> = text.chars().collect();
                let from = self.rng.below(characters.len());
                let count = self.rng.between(1, 12);
                characters.iter().skip(from).take(count).collect()
            }
        }
    }
}

fn session_id(number: usize) -> SessionId {
    SessionId::new(1_790_000_000_000, number as u32, IdLength::Local)
}

fn owner(session: usize) -> Owner {
    if session % 5 == 4 { Owner::new("another") } else { Owner::default() }
}

fn fill(store: &dyn Store, texts: &[String]) {
    for (number, said) in texts.chunks(SESSION_MESSAGES).enumerate() {
        let session = NewSession {
            id: session_id(number),
            owner: owner(number),
            link: None,
            started_ms: 1,
            model: None,
            title: None,
            origin: Origin { program: "test".to_owned(), key: None, project: None },
            wire_format: WireFormat::Anthropic,
        };
        store.open_session(session, None).unwrap();
        let messages = said
            .iter()
            .enumerate()
            .map(|(at, text)| NewMessage {
                message: decode_message(SharedText::new(format!(
                    r#"{{"role":"{}","content":{}}}"#,
                    if at % 2 == 0 { "user" } else { "assistant" },
                    compact_json_string(text)
                )))
                .unwrap(),
                tokens: 1,
                at_ms: 1_000 + at as i64,
                tools: Vec::new(),
                rendition: None,
            })
            .collect();
        store.append(&owner(number), &session_id(number), messages).unwrap();
    }
}

/// What an answer says, but for the order of its hits.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    as_substring: bool,
    /// Sessions, places in them, and how many others say the same.
    hits: Vec<(SessionId, u64, u64)>,
}

/// Everything that answers; `None` where more does than is ranked.
fn found(answer: SearchAnswer) -> Option<Found> {
    let mut hits: Vec<_> = answer.hits.into_iter().map(|hit| (hit.session, hit.seq, hit.repeats)).collect();
    hits.sort();
    answer.ranked_newest.is_none().then_some(Found { as_substring: answer.as_substring, hits })
}

/// A search that also ranks passages finds first what all words find, in the same order.
fn ranked_goes_on_from_exact(store: &dyn Store, owner: &Owner, query: &SearchQuery) {
    let exact = SearchQuery { limit: 50, ..query.clone() };
    let ranked = SearchQuery { mode: SearchMode::Words, ..exact.clone() };
    let (exact, ranked) = (store.search(owner, &exact).unwrap(), store.search(owner, &ranked).unwrap());
    assert_eq!(ranked.hits.get(..exact.hits.len()), Some(exact.hits.as_slice()), "{:?}", query.text);
    assert_eq!(ranked.as_substring, exact.as_substring, "{:?}", query.text);
}

fn compare(indexed: &dyn Store, scanned: &MemoryStore, texts: &[String], seed: u64) {
    let mut author = Author::new(seed);
    for kind in [
        "a word",
        "two words",
        "a phrase",
        "a long phrase",
        "an identifier",
        "identifiers and words",
        "a path",
        "a beginning",
        "many words",
        "a substring",
    ] {
        let (mut compared, mut hits) = (0, 0);
        for _ in 0..QUESTIONS {
            let text = texts[author.rng.below(texts.len())].clone();
            let query = SearchQuery {
                text: author.question(kind, &text),
                mode: if kind == "a substring" { SearchMode::Substring } else { SearchMode::AllWords },
                limit: 10_000,
                ..SearchQuery::default()
            };
            let owner = owner(author.rng.below(5));
            let Some(by_index) = found(indexed.search(&owner, &query).unwrap()) else { continue };
            let by_scan = found(scanned.scan(&owner, &query).unwrap()).unwrap();
            assert_eq!(by_index, by_scan, "{kind}: {:?} for {owner}", query.text);
            if kind != "a substring" && compared % 4 == 0 {
                ranked_goes_on_from_exact(indexed, &owner, &query);
            }
            compared += 1;
            hits += by_scan.hits.len();
        }
        assert!(compared >= QUESTIONS / 3 && hits > 0, "{kind}: {compared} compared, {hits} hits");
    }
}

#[test]
fn every_kind_of_question_finds_what_a_scan_finds() {
    let home = tempfile::tempdir().unwrap();
    let indexed = SqliteStore::open(&home.path().join("record.db"), 1).unwrap();
    let scanned = MemoryStore::default();
    let mut author = Author::new(3);
    let texts: Vec<String> = (0..MESSAGES).map(|_| author.text()).collect();
    fill(&indexed, &texts);
    fill(&scanned, &texts);
    compare(&indexed, &scanned, &texts, 3);
    for number in [2, 4, 7] {
        for store in [&indexed as &dyn Store, &scanned] {
            store.delete(&owner(number), &session_id(number), Dependants::Refuse).unwrap();
        }
    }
    compare(&indexed, &scanned, &texts, 4);
}
