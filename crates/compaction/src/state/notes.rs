//! Reading notes of an earlier compaction: what they say is open stays open, and everything before them is decided.

use throughline_transcript::{Message, Part};

use crate::document::SummaryDocument;
use crate::preface::SummaryFrame;
use crate::sections::Section;

use super::lists::{TodoItem, TodoSource, TodoStatus, marks};
use super::model::{Fate, Noted, Problem, Request, State, Via};
use super::runs::is_diagnostic;
use super::waiting::puts_off;

/// How the notes quote what the person said while the agent was working.
pub(crate) const ON_THE_WAY: &str = "The person said on the way: \"";

/// How the notes list the commands with which the work is checked.
pub(crate) const CHECKS_IN_USE: &str = "Checks in use: ";

/// A compaction puts its notes behind the head, and heads are no longer than this. Notes further on were pasted.
const HEAD_MESSAGES: u32 = 66;

/// The notes in a message, if it carries any that a compaction put there, with how many messages were kept beside them.
pub(super) fn notes_in(index: u32, message: &Message) -> Option<(SummaryDocument, u32)> {
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
    let found = SummaryFrame::find(message)?;
    let kept = found.kept.and_then(|kept| u32::try_from(kept).ok()).unwrap_or(0);
    Some((SummaryDocument::parse(&found.body), kept))
}

impl State {
    /// Takes over where earlier notes say the conversation stood.
    pub(super) fn read_notes(&mut self, index: u32, notes: &SummaryDocument, kept: u32) {
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
        let checks =
            notes.entries(Section::InProgress).iter().filter_map(|e| e.text.strip_prefix(CHECKS_IN_USE));
        // Every second piece stands between the quotes.
        let named = checks.flat_map(|list| list.split('`').skip(1).step_by(2));
        self.checks = named.filter(|check| !check.ends_with('…')).map(str::to_owned).collect();
        // Runs, lists and problems before the notes are older than what the notes say of them.
        self.runs.retain(|run| !run.is_by_person());
        self.todos.clear();
        for problem in self.problems.iter_mut().filter(|problem| problem.solved_by.is_none()) {
            problem.solved_by = Some(index);
        }
        self.read_carried_items(index, notes);
        self.read_names_of_notes(index, notes);
        // Of several problems of one run only the first names it.
        let mut command: Option<String> = None;
        for entry in notes.entries(Section::Blocked) {
            let mut problem = problem_of(index, &entry.text);
            match &problem.command {
                Some(own) => command = Some(own.clone()),
                None => problem.command = command.clone(),
            }
            self.problems.push(problem);
        }
        let of_notes = |request: &&Request| request.fate.is_open();
        let noted = Noted {
            kept,
            requests: self
                .requests
                .iter()
                .filter(of_notes)
                .map(|request| (request.words.clone(), request.fate, request.via))
                .collect(),
            items: self.todos.iter().filter(|item| item.message == index).cloned().collect(),
            problems: self.problems.iter().filter(|problem| problem.message == index).cloned().collect(),
        };
        self.reader.noted = (kept > 0).then(|| Box::new(noted));
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
    /// Returns how it was said, by the notes.
    pub(super) fn find_again(&mut self, index: u32, words: &str) -> Option<Via> {
        let notes_at = self.reader.notes_at?;
        let again = |request: &Request| request.message == notes_at && is_same(&request.words, words);
        let found = self.requests.iter().find(|request| again(request))?;
        let via = found.via;
        let is_active = found.fate == Fate::InProgress && found.begins_turn();
        self.requests.retain(|request| !again(request));
        for item in self.todos.iter_mut().filter(|item| item.message == notes_at) {
            item.message = index;
        }
        if is_active {
            let on_the_way = |request: &&mut Request| request.message == notes_at && !request.begins_turn();
            self.requests.iter_mut().filter(on_the_way).for_each(|request| request.message = index);
        }
        Some(via)
    }

    /// Counts the messages that were kept beside earlier notes. After the last of them what the notes say is open is open,
    /// and nothing else of those messages is.
    pub(super) fn count_kept(&mut self, index: u32) {
        let Some(noted) = &mut self.reader.noted else { return };
        noted.kept = noted.kept.saturating_sub(1);
        if noted.kept > 0 {
            return;
        }
        let (noted, notes_at) = (self.reader.noted.take(), self.reader.notes_at);
        if let (Some(noted), Some(notes_at)) = (noted, notes_at) {
            self.settle_kept_requests(index, notes_at, &noted);
            self.settle_kept_items(index, &noted);
            for problem in noted.problems {
                let is_open = |known: &Problem| known.solved_by.is_none() && known.text == problem.text;
                let open = self.problems.iter().filter(|known| is_open(known)).count();
                if open == 0 {
                    self.problems.push(problem);
                } else if open > 1 {
                    self.problems.retain(|known| known.message != notes_at || !is_open(known));
                }
            }
        }
    }

    fn settle_kept_requests(&mut self, index: u32, notes_at: u32, noted: &Noted) {
        if noted.requests.is_empty() {
            return;
        }
        // What is not begun is newer than the notes, if the messages were counted differently since.
        let last = self.requests.len().saturating_sub(usize::from(!self.reader.began));
        for request in self.requests.iter_mut().take(last) {
            if request.message <= notes_at || !request.fate.is_open() {
                continue;
            }
            match noted.requests.iter().find(|(words, ..)| is_same(words, &request.words)) {
                Some((_, fate, via)) => {
                    request.fate = *fate;
                    if *via == Via::Aside {
                        request.via = Via::Aside;
                    }
                }
                None => {
                    request.fate = Fate::Done;
                    request.decided_by = Some(index);
                }
            }
        }
    }

    /// Items that the kept messages add again are the noted ones, or done.
    fn settle_kept_items(&mut self, index: u32, noted: &Noted) {
        let is_one = |item: &TodoItem, of_notes: &TodoItem| match (item.number, of_notes.number) {
            (Some(own), Some(other)) => own == other,
            _ => is_same(&item.text, &of_notes.text),
        };
        let mut items: Vec<TodoItem> = Vec::new();
        for mut item in std::mem::take(&mut self.todos) {
            if item.status != TodoStatus::Done && item.source != TodoSource::List {
                let of_notes = noted.items.iter().find(|of_notes| is_one(&item, of_notes));
                let status = of_notes.map_or(TodoStatus::Done, |of_notes| of_notes.status);
                if item.status != status {
                    item.status = status;
                    item.changed_by = (status != TodoStatus::Open).then_some(index);
                }
                // The same item, as the notes tell it and as it was added: the later one knows more.
                if let Some(of_notes) = of_notes {
                    items.retain(|known| known.source == TodoSource::List || !is_one(known, of_notes));
                }
            }
            items.push(item);
        }
        self.todos = items;
        // A plan that was read again has taken the place of the noted items.
        let missing =
            noted.items.iter().filter(|of_notes| !self.todos.iter().any(|item| is_one(item, of_notes)));
        let missing: Vec<TodoItem> = missing.cloned().collect();
        self.todos.extend(missing);
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
