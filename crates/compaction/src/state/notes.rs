//! Reading notes of an earlier compaction: what they say is open stays open, and everything before them is decided.

use throughline_transcript::{Message, Part};

use crate::document::SummaryDocument;
use crate::preface::find_summary;
use crate::sections::Section;

use super::lists::{TodoItem, TodoSource, TodoStatus, marks};
use super::model::{Fate, Problem, Request, State, Via};
use super::runs::is_diagnostic;
use super::waiting::puts_off;

/// How the notes quote what the person said while the agent was working.
pub(crate) const ON_THE_WAY: &str = "The person said on the way: \"";

/// A compaction puts its notes behind the head, and heads are no longer than this. Notes further on were pasted.
const HEAD_MESSAGES: u32 = 66;

/// The notes in a message, if it carries any that a compaction put there.
pub(super) fn notes_in(index: u32, message: &Message) -> Option<SummaryDocument> {
    if index > HEAD_MESSAGES {
        return None;
    }
    let begins = |part: &Part| match part {
        Part::Text(string) => message.str(*string).trim_start().starts_with('['),
        _ => false,
    };
    if !message.parts().first().is_some_and(begins) {
        return None;
    }
    find_summary(message).map(|found| SummaryDocument::parse(&found.body))
}

impl State {
    /// Takes over where earlier notes say the conversation stood.
    pub(super) fn read_notes(&mut self, index: u32, notes: &SummaryDocument) {
        let listed_in = |section: Section| {
            notes.entries(section).iter().map(|entry| words_of(&entry.text)).collect::<Vec<_>>()
        };
        let active = listed_in(Section::ActiveTask).into_iter().next();
        let pending = listed_in(Section::PendingAsks);
        let listed = pending.into_iter().map(|words| (words, Fate::Open));
        let listed: Vec<(String, Fate)> =
            listed.chain(active.map(|words| (words, Fate::InProgress))).collect();
        for request in self.requests.iter_mut().filter(|request| request.fate.is_open()) {
            let fate = listed.iter().find(|(words, _)| is_same(words, &request.words));
            request.fate = fate.map_or(Fate::Done, |(_, fate)| *fate);
            request.decided_by = fate.is_none().then_some(index);
        }
        for (words, fate) in listed {
            if !self.requests.iter().any(|request| request.fate.is_open() && is_same(&words, &request.words))
            {
                let mut request = Request::new(index, words, Via::Message, fate);
                request.put_off = fate == Fate::Open;
                self.requests.push(request);
            }
        }
        for entry in notes.entries(Section::InProgress) {
            if let Some(words) = entry.text.strip_prefix(ON_THE_WAY) {
                let words = words_of(words.trim_end_matches('"'));
                let put_off = puts_off(&words);
                let fate = if put_off { Fate::Open } else { Fate::InProgress };
                self.requests.push(Request { put_off, ..Request::new(index, words, Via::Aside, fate) });
            }
        }
        self.read_carried_items(index, notes);
        self.read_names_of_notes(index, notes);
        for entry in notes.entries(Section::Blocked) {
            self.problems.push(problem_of(index, &entry.text));
        }
        let reader = &mut self.reader;
        reader.talked = true;
        reader.notes_at = Some(index);
        (reader.began, reader.worked, reader.interrupted) = (false, false, false);
        (reader.closed_by, reader.command) = (None, None);
    }

    fn read_carried_items(&mut self, index: u32, notes: &SummaryDocument) {
        let item = |text: &str, status: TodoStatus| {
            let number = text.strip_prefix('#').and_then(|rest| rest.split_once(' '));
            let number =
                number.and_then(|(number, rest)| Some((number.parse::<u32>().ok()?, rest.to_owned())));
            let source = if number.is_some() { TodoSource::Item } else { TodoSource::Plan };
            let changed_by = (status == TodoStatus::InProgress).then_some(index);
            let (number, text) = number.map_or((None, text.to_owned()), |(n, rest)| (Some(n), rest));
            let marks = if number.is_none() { marks(&text) } else { Vec::new() };
            TodoItem { message: index, text, status, source, changed_by, number, marks }
        };
        for entry in notes.entries(Section::InProgress).iter().filter(|entry| entry.text.starts_with('#')) {
            self.todos.push(item(&entry.text, TodoStatus::InProgress));
        }
        for entry in notes.entries(Section::RemainingWork) {
            self.todos.push(item(&entry.text, TodoStatus::Open));
        }
        let most = self.todos.iter().filter_map(|item| item.number).max().unwrap_or(0);
        self.reader.items = self.reader.items.max(most);
    }

    /// A request that stands in earlier notes is said again where it was said: after the notes, in what was kept.
    pub(super) fn find_again(&mut self, index: u32, words: &str) {
        let Some(notes_at) = self.reader.notes_at else { return };
        let again = |request: &Request| request.message == notes_at && is_same(&request.words, words);
        if self.requests.iter().any(again) {
            self.requests.retain(|request| !again(request));
            for item in self.todos.iter_mut().filter(|item| item.message == notes_at) {
                item.message = index;
            }
        }
    }

    /// Whether the state has read earlier notes: what they say of the present is in it.
    pub(crate) fn has_read_notes(&self) -> bool {
        self.reader.notes_at.is_some()
    }
}

/// The person's words in an entry, without what says that they were shortened. Of a description that quotes them, the
/// longest quote.
fn words_of(entry: &str) -> String {
    let entry = entry.split("… (").next().unwrap_or(entry).trim();
    let quote = entry.split('"').skip(1).step_by(2).max_by_key(|quote| quote.len());
    match quote {
        Some(quote) if entry.ends_with('"') && quote.len() >= 8 => quote.to_owned(),
        _ => entry.to_owned(),
    }
}

fn problem_of(index: u32, entry: &str) -> Problem {
    let (text, command) = match entry.rsplit_once(" (`") {
        Some((text, command)) if command.ends_with("`)") => {
            (text, Some(command.trim_end_matches("`)").trim_end_matches('…').to_owned()))
        }
        _ => (entry, None),
    };
    let file = match text.split_once("conflict in ") {
        Some((_, file)) => Some(file.to_owned()),
        None => is_diagnostic(text).then(|| {
            let file = text.split(':').next().unwrap_or_default();
            file.rsplit(' ').next().unwrap_or(file).to_owned()
        }),
    };
    Problem { message: index, text: text.to_owned(), command, file, solved_by: None }
}

/// Whether two quotes are of the same words, one of them perhaps shortened.
pub(crate) fn is_same(first: &str, second: &str) -> bool {
    const LETTERS: usize = 48;
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        letters.take(LETTERS).collect::<String>()
    };
    let (first, second) = (letters(first), letters(second));
    !first.is_empty() && !second.is_empty() && (first.starts_with(&second) || second.starts_with(&first))
}
