//! `lcm_expand_query`: answers a question with the model that writes summaries, from original messages that are fetched
//! for it, and names the messages used.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use throughline_engine::{ModelQuestion, SummariserSource};
use throughline_provider::Priority;
use throughline_redact::Redactor;
use throughline_store::{Hit, SearchQuery, SessionId, StoredMessage, SummaryId};

use crate::recall::{RecallError, RecallReader, RecallResult, readable, text_tokens};

const INSTRUCTIONS: &str = include_str!("../prompts/question.md");

/// A question about compacted messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecallQuestion {
    /// The question, as the model wrote it.
    pub text: String,
    /// Only messages that these nodes cover.
    pub nodes: Vec<SummaryId>,
    /// Messages that are read in any case.
    pub messages: Vec<u64>,
}

/// An answer with its sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecallAnswer {
    /// The answer for the model.
    pub answer: String,
    /// The messages it names as its sources.
    pub used: Vec<u64>,
    /// The messages it was given.
    pub read: Vec<u64>,
    /// The model that gave it.
    pub author: String,
}

/// The maximum number of words searched.
const MOST_WORDS: usize = 8;
/// Shorter words are too frequent.
const LEAST_WORD_CHARS: usize = 4;
/// Number of passages read for the whole question.
const RANKED: usize = 10;
/// Number of messages proposed by the index for each word.
const PROPOSED: usize = 40;
/// The maximum percentage of the budget for a single message.
const ONE_MESSAGE_PERCENT: u64 = 25;
/// The mark before a quoted message.
const MARK: &str = "----";

/// The originals chosen for a question.
pub(crate) struct Originals {
    /// The quoted text, each message with its number.
    pub(crate) text: String,
    /// Their numbers, in order.
    pub(crate) read: Vec<u64>,
}

impl RecallReader<'_> {
    /// Chooses the messages from which a question is answered: those named, then those with most of its words.
    pub(crate) fn originals(
        &self,
        session: &SessionId,
        ask: &RecallQuestion,
        redactor: Option<&Redactor>,
    ) -> RecallResult<Originals> {
        if ask.text.trim().is_empty() {
            return Err(RecallError::NothingAsked("say what the question is"));
        }
        let heads = ask.nodes.iter().map(|id| self.head(*id)).collect::<RecallResult<Vec<_>>>()?;
        let stretches = self.stretches(session)?;
        let mut chosen: Vec<(SessionId, u64)> = Vec::new();
        for seq in &ask.messages {
            chosen.push((self.session_of(&stretches, *seq)?, *seq));
        }
        let mut found: BTreeMap<u64, (SessionId, u64)> = BTreeMap::new();
        let admitted =
            |hit: &Hit| heads.is_empty() || heads.iter().any(|head| head.covers(&hit.session, hit.seq));
        let query = |text: &str, limit: usize| SearchQuery {
            text: text.to_owned(),
            session: Some(session.clone()),
            limit,
            ..SearchQuery::default()
        };
        // The passages that match the whole question come first, in order.
        let ranked = self.store.search(self.owner, &query(&ask.text, RANKED))?.hits;
        chosen.extend(ranked.into_iter().filter(admitted).map(|hit| (hit.session, hit.seq)));
        for word in words_of(&ask.text) {
            for hit in
                self.store.search(self.owner, &query(&word, PROPOSED))?.hits.into_iter().filter(admitted)
            {
                found.entry(hit.seq).or_insert((hit.session, 0)).1 += 1;
            }
        }
        let mut ranked: Vec<(u64, SessionId, u64)> =
            found.into_iter().map(|(seq, (session, words))| (seq, session, words)).collect();
        ranked.sort_by(|a, b| b.2.cmp(&a.2).then(b.0.cmp(&a.0)));
        chosen.extend(ranked.into_iter().map(|(seq, session, _)| (session, seq)));
        if !heads.is_empty() {
            // Other messages are read from the beginning on, as far as they fit.
            for run in heads.iter().flat_map(|head| &head.sources) {
                chosen.extend((run.first_seq..run.end_seq).map(|seq| (run.session.clone(), seq)));
            }
        }
        self.quote(chosen, redactor)
    }

    fn quote(&self, chosen: Vec<(SessionId, u64)>, redactor: Option<&Redactor>) -> RecallResult<Originals> {
        let mut seen: HashSet<u64> = HashSet::new();
        let mut quoted: BTreeMap<u64, String> = BTreeMap::new();
        let room = self.limits.query_tokens;
        let mut left = room;
        for (session, seq) in chosen {
            if left < room / 50 {
                break;
            }
            if !seen.insert(seq) {
                continue;
            }
            let Some(stored) = self.message(&session, seq)? else { continue };
            let text = quoted_message(&stored, redactor, left.min(room * ONE_MESSAGE_PERCENT / 100));
            let tokens = text_tokens(&text);
            if tokens <= left {
                left -= tokens;
                quoted.insert(seq, text);
            }
        }
        let read = quoted.keys().copied().collect();
        Ok(Originals { text: quoted.into_values().collect::<Vec<_>>().join("\n"), read })
    }

    /// Returns the prompt of a question over originals, and the instructions.
    fn prompt(ask: &RecallQuestion, originals: &Originals) -> (String, String) {
        let text = format!("{}\n\n{MARK} question\n{}", originals.text, ask.text.trim());
        (INSTRUCTIONS.trim_end().to_owned(), text)
    }
}

/// Answers a question from originals; the record was read before, on a thread that may block.
pub(crate) async fn answer(
    session: &SessionId,
    ask: &RecallQuestion,
    originals: &Originals,
    answer_tokens: u64,
    summarisers: &dyn SummariserSource,
) -> RecallResult<RecallAnswer> {
    if originals.read.is_empty() {
        return Err(RecallError::NotAnswered("no message contains any of its words".to_owned()));
    }
    let (instructions, text) = RecallReader::prompt(ask, originals);
    let question = ModelQuestion {
        session,
        task: ModelQuestion::TASK,
        priority: Priority::Foreground,
        instructions: &instructions,
        text: &text,
        answer_tokens,
    };
    let given = summarisers.answer(&question).await.map_err(RecallError::NotAnswered)?;
    let used = named_messages(&given.text, &originals.read);
    Ok(RecallAnswer { answer: given.text, used, read: originals.read.clone(), author: given.author })
}

/// Returns the numbers in brackets that name quoted messages.
fn named_messages(text: &str, read: &[u64]) -> Vec<u64> {
    let mut used: Vec<u64> = text
        .split('[')
        .skip(1)
        .filter_map(|after| after.split_once(']'))
        .flat_map(|(inside, _)| inside.split([',', ' ', ';']))
        .filter_map(|number| number.trim().parse().ok())
        .filter(|number| read.contains(number))
        .collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let pieces = text.split(|c: char| c.is_whitespace() || "?!,;:()\"'`".contains(c));
    for word in pieces.map(|word| word.trim_matches('.').to_lowercase()) {
        if word.chars().count() >= LEAST_WORD_CHARS && !words.contains(&word) {
            words.push(word);
        }
    }
    // Longer words are more significant.
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    words.truncate(MOST_WORDS);
    words
}

fn quoted_message(stored: &StoredMessage, redactor: Option<&Redactor>, room_tokens: u64) -> String {
    let text = stored.decode().map(|message| readable(&message)).unwrap_or_default();
    let masked = redactor.map_or(text.clone(), |redactor| redactor.redact(&text).into_owned());
    let most = usize::try_from(room_tokens.saturating_mul(3)).unwrap_or(usize::MAX);
    let count = masked.chars().count();
    let shown: String = match count > most {
        false => masked,
        // The beginning and the end are the most informative.
        true => {
            let half = most / 2;
            let head: String = masked.chars().take(half).collect();
            let tail: String = masked.chars().skip(count - half).collect();
            format!("{head}\n[{} characters left out]\n{tail}", count - 2 * half)
        }
    };
    // A line of the text that looks like our mark is indented, so that it is not mistaken for one.
    let quoted = shown.replace(&format!("\n{MARK}"), &format!("\n {MARK}"));
    format!("{MARK} message {} ({})\n{quoted}", stored.seq, stored.role.name())
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
