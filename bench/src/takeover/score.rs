//! Scores notes and a view by the marks of a session, with the arithmetic of `score.py`, which is stored with the marks.

use std::collections::{HashMap, HashSet};

use regex::{Regex, RegexBuilder};

use super::baseline::NAMES;
use super::text::{chars, first_chars, fold, is_space, lines, strip, words};
use super::truth::{Keys, Truth};

/// The headings of notes.
pub(super) const SECTIONS: [&str; 13] = [
    "Active Task",
    "Goal",
    "Constraints & Preferences",
    "Completed Actions",
    "Active State",
    "In Progress",
    "Blocked",
    "Key Decisions",
    "Resolved Questions",
    "Pending User Asks",
    "Relevant Files",
    "Remaining Work",
    "Critical Context",
];
/// The sections about the present.
pub(super) const NOW: [&str; 4] = ["Active Task", "In Progress", "Pending User Asks", "Remaining Work"];
/// The number of characters that distinguish one command from another.
const COMMAND_CHARS: usize = 36;

/// A row of the table: its name, hits and their maximum.
pub(super) type Row = (&'static str, usize, usize);

/// The compiled expressions of the scorer.
pub(super) struct Scorer {
    names: Regex,
    name_lists: Regex,
    bullet: Regex,
    said_ok: Regex,
    said_failed: Regex,
}

impl Scorer {
    pub(super) fn new() -> Result<Self, regex::Error> {
        let lists = format!(r"(?:(?:{NAMES})[\s,;`]+){{4,}}");
        Ok(Self {
            names: Regex::new(NAMES)?,
            name_lists: RegexBuilder::new(&lists).size_limit(1 << 28).dfa_size_limit(1 << 28).build()?,
            bullet: Regex::new(r"^\s*(?:[-*•]|\d+[.)])\s*")?,
            said_ok: Regex::new(r"(-> |→ |: )(ok\b|exit 0|passed|success)")?,
            said_failed: Regex::new(r"fail|error|exit [1-9]|interrupted|refused|rejected")?,
        })
    }

    /// Scores notes and their view. Without sections, the whole text counts as every section.
    pub(super) fn score(
        &self,
        truth: &Truth,
        notes: &str,
        view: &str,
        form: NotesForm,
    ) -> Result<Vec<Row>, String> {
        let mut rows = Rows::default();
        let text = Text::of(notes, view, form);
        self.probes(truth, &text, &mut rows);
        self.requests(truth, &text, &mut rows);
        self.rules_and_decisions(truth, &text, &mut rows);
        if form == NotesForm::Sections {
            self.runs(truth, &text, &mut rows);
            self.shares(&text, &mut rows);
        }
        self.work(truth, &text, &mut rows);
        if form == NotesForm::Sections {
            rows.put("false statements (bad)", false_statements(truth, &text)?.len(), truth.never.len());
        }
        Ok(rows.0)
    }

    fn probes(&self, truth: &Truth, text: &Text<'_>, rows: &mut Rows) {
        let all = &truth.probes;
        let answered = |text: &str| all.iter().filter(|probe| has(text, &probe.keys)).count();
        rows.put("probes answered by the notes", answered(&text.whole), all.len());
        for (kind, name) in [
            ("recall", "  recall"),
            ("artifact", "  artifact"),
            ("continuation", "  continuation"),
            ("decision", "  decision"),
        ] {
            let of_kind: Vec<_> = all.iter().filter(|probe| probe.kind.as_deref() == Some(kind)).collect();
            let hits = of_kind.iter().filter(|probe| has(&text.whole, &probe.keys)).count();
            rows.put(name, hits, of_kind.len());
        }
        rows.put("probes answered by the view", answered(&text.seen), all.len());
    }

    fn requests(&self, truth: &Truth, text: &Text<'_>, rows: &mut Rows) {
        if let Some(task) = truth.active_task.as_ref().filter(|task| task.status == "in_progress") {
            let place = format!("{} {}", text.section("Active Task"), text.section("In Progress"));
            rows.put("active task", usize::from(said(&place, &task.quote, 0.75)), 1);
        }
        let place = format!("{} {}", text.section("Goal"), text.section("Active Task"));
        rows.put("goal", usize::from(has(&place, &truth.goal.keys)), 1);
        let with = |fates: &[&str]| -> Vec<&str> {
            let requests = truth.requests.iter().filter(|request| fates.contains(&request.fate.as_str()));
            requests.map(|request| request.quote.as_str()).collect()
        };
        let open = with(&["open", "in_progress"]);
        let shut = with(&["done", "answered", "interrupted", "superseded", "withdrawn"]);
        let hits = open.iter().filter(|quote| said(&text.now, quote, 0.75)).count();
        rows.put("open requests said", hits, open.len());
        if text.form == NotesForm::Sections {
            let listed = format!("{} {}", text.section("Active Task"), text.section("Pending User Asks"));
            let count = |quotes: &[&str]| quotes.iter().filter(|quote| said(&listed, quote, 0.9)).count();
            let (right, wrong) = (count(&open), count(&shut));
            rows.put("requests told as open that are", right, right + wrong);
        }
    }

    fn rules_and_decisions(&self, truth: &Truth, text: &Text<'_>, rows: &mut Rows) {
        let section = text.section("Constraints & Preferences");
        let live: Vec<String> =
            truth.constraints.iter().filter(|rule| rule.in_force).map(|rule| fold(&rule.quote)).collect();
        let within = |place: &str| live.iter().filter(|quote| place.contains(quote.as_str())).count();
        rows.put("constraints in their section", within(section), live.len());
        rows.put("constraints in view", within(&text.seen), live.len());
        if text.form == NotesForm::Sections {
            let raw = text.raw("Constraints & Preferences");
            let stated = lines(raw).into_iter().filter(|line| !matches!(strip(line), "" | "None." | "None"));
            let stated: Vec<String> = stated.map(|line| fold(&self.bullet.replace(line, ""))).collect();
            let is_one = |line: &&String| {
                truth.constraints.iter().any(|rule| {
                    let quote = fold(&rule.quote);
                    line.contains(&quote)
                        || quote.contains(first_chars(line, 60))
                        || said(line, &rule.quote, 0.75)
                })
            };
            let hits = stated.iter().filter(is_one).count();
            rows.put("constraint lines that are one", hits, stated.len());
        }
        let decisions = &truth.decisions;
        let hits = decisions.iter().filter(|decision| has(&text.whole, &decision.keys)).count();
        rows.put("decisions in the notes", hits, decisions.len());
        if text.form == NotesForm::Sections {
            let section = text.section("Key Decisions");
            let hits = decisions.iter().filter(|decision| has(section, &decision.keys)).count();
            rows.put("decisions in their section", hits, decisions.len());
        }
        let by_person: Vec<_> =
            decisions.iter().filter(|decision| decision.by.as_deref() == Some("human")).collect();
        let hits = by_person.iter().filter(|decision| has(&text.whole, &decision.keys)).count();
        rows.put("decisions of the person in the notes", hits, by_person.len());
    }

    /// Scores the newest run of each command; the last line with a result counts.
    fn runs(&self, truth: &Truth, text: &Text<'_>, rows: &mut Rows) {
        let (mut right, mut named, mut all, mut seen) = (0, 0, 0, HashSet::new());
        let mut runs: Vec<_> = truth.runs.iter().collect();
        runs.sort_by_key(|run| -run.line);
        let told: Vec<String> = lines(text.notes).into_iter().map(fold).collect();
        for run in runs {
            let command = first_chars(&fold(&run.command), COMMAND_CHARS).to_owned();
            if command.is_empty() || !seen.insert(command.clone()) || run.outcome == "unknown" {
                continue;
            }
            all += 1;
            let naming: Vec<&String> = told.iter().filter(|line| line.contains(&command)).collect();
            if naming.is_empty() {
                continue;
            }
            named += 1;
            let judged = naming
                .into_iter()
                .rfind(|line| self.said_ok.is_match(line) || self.said_failed.is_match(line));
            let is_right = |line: &String| self.said_failed.is_match(line) == (run.outcome == "failed");
            right += usize::from(judged.is_some_and(is_right));
        }
        rows.put("outcomes of runs that are named", right, named);
        rows.put("runs named", named, all);
    }

    fn shares(&self, text: &Text<'_>, rows: &mut Rows) {
        let all = chars(text.notes).max(1);
        let now = NOW.iter().map(|section| chars(text.raw(section))).sum();
        rows.put("share of the now sections (at most 25)", now, all);
        rows.put("share of Key Decisions (at most 15)", chars(text.raw("Key Decisions")), all);
        rows.put("share of bare names (at most 10)", self.bare_names(text.notes), all);
    }

    /// The characters of lists of at least four names, and of lines and list items that consist of names.
    pub(super) fn bare_names(&self, notes: &str) -> usize {
        let lists: Vec<&str> = self.name_lists.find_iter(notes).map(|found| found.as_str()).collect();
        let bare = notes.split('\n').flat_map(|line| line.split("; ")).filter(|item| {
            let rest = self.names.replace_all(item, "");
            let filler = |c: char| " -*`,.:;()[]0123456789".contains(c);
            !strip(item).is_empty() && rest.trim_matches(filler).is_empty()
        });
        let alone = bare.filter(|item| !lists.iter().any(|list| list.contains(item) || item.contains(list)));
        lists.iter().map(|list| chars(list)).sum::<usize>() + alone.map(chars).sum::<usize>()
    }

    fn work(&self, truth: &Truth, text: &Text<'_>, rows: &mut Rows) {
        let sections = text.form == NotesForm::Sections;
        let items = |states: &[&str]| -> Vec<&str> {
            let items = truth.todo.iter().filter(|item| states.contains(&item.state.as_str()));
            items.map(|item| item.subject.as_str()).collect()
        };
        let (open, done) = (items(&["open", "in_progress"]), items(&["done"]));
        let count = |place: &str, quotes: &[&str], share: f64| {
            quotes.iter().filter(|quote| said(place, quote, share)).count()
        };
        rows.put("open to-do items said", count(&text.now, &open, 0.75), open.len());
        if sections {
            let hits = count(text.section("Remaining Work"), &done, 0.95);
            rows.put("done items told as open (bad)", hits, done.len());
        }
        let blockers = |open: bool| -> Vec<&str> {
            let found = truth.blockers.iter().filter(|blocker| blocker.open == open);
            found.map(|blocker| blocker.quote.as_str()).collect()
        };
        let (open, solved) = (blockers(true), blockers(false));
        let blocked = text.section("Blocked");
        rows.put("open blockers said", count(blocked, &open, 0.6), open.len());
        if sections {
            rows.put("solved blockers told as open (bad)", count(blocked, &solved, 0.7), solved.len());
        }
        let next = truth.next.iter().filter(|next| matches!(next.kind.as_str(), "file" | "command"));
        let next: Vec<String> = next.map(|next| name_of(&next.what)).collect();
        let hits = next.iter().filter(|name| text.now.contains(name.as_str())).count();
        rows.put("next step named in now", hits, next.len());
    }
}

/// Whether notes have our sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotesForm {
    /// They do.
    Sections,
    /// They do not: the whole text counts as every section.
    Whole,
}

/// Parsed notes with their view.
pub(super) struct Text<'a> {
    notes: &'a str,
    form: NotesForm,
    whole: String,
    seen: String,
    raw: HashMap<&'static str, String>,
    folded: HashMap<&'static str, String>,
    now: String,
}

impl<'a> Text<'a> {
    pub(super) fn of(notes: &'a str, view: &str, form: NotesForm) -> Self {
        let raw: HashMap<&'static str, String> = match form {
            NotesForm::Sections => split(notes),
            NotesForm::Whole => HashMap::new(),
        };
        let folded: HashMap<&'static str, String> =
            raw.iter().map(|(name, text)| (*name, fold(text))).collect();
        let mut text =
            Self { notes, form, whole: fold(notes), seen: fold(view), raw, folded, now: String::new() };
        text.now = NOW.map(|section| text.section(section)).join(" ");
        text
    }

    /// The sections about the present, normalised by [`fold`].
    pub(super) fn now(&self) -> &str {
        &self.now
    }

    pub(super) fn raw(&self, section: &str) -> &str {
        match self.form {
            NotesForm::Sections => self.raw.get(section).map_or("", String::as_str),
            NotesForm::Whole if SECTIONS.contains(&section) => self.notes,
            NotesForm::Whole => "",
        }
    }

    fn section(&self, section: &str) -> &str {
        match self.form {
            NotesForm::Sections => self.folded.get(section).map_or("", String::as_str),
            NotesForm::Whole => &self.whole,
        }
    }
}

#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn put(&mut self, name: &'static str, hits: usize, of: usize) {
        if of > 0 {
            self.0.push((name, hits, of));
        }
    }
}

/// The false statements that a text contains.
pub(super) fn false_statements<'t>(truth: &'t Truth, text: &Text<'_>) -> Result<Vec<&'t str>, String> {
    let mut found = Vec::new();
    for never in &truth.never {
        let pattern = fancy_regex::RegexBuilder::new(&never.pattern).case_insensitive(true).build().map_err(
            |error| format!("{}: the pattern {} cannot be read: {error}", truth.session, never.pattern),
        )?;
        let says = |section: &String| pattern.is_match(text.raw(section)).unwrap_or_default();
        if never.sections.iter().any(says) {
            found.push(never.text.as_str());
        }
    }
    Ok(found)
}

/// The sections of notes, without headings.
pub(super) fn split(notes: &str) -> HashMap<&'static str, String> {
    let lines: Vec<&str> = notes.split('\n').collect();
    let heading = |line: &str| {
        let name = line.strip_prefix("## ")?.trim_end_matches(is_space);
        SECTIONS.into_iter().find(|section| *section == name)
    };
    let mut found: HashMap<&'static str, String> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(section) = heading(line) else { continue };
        if found.contains_key(section) {
            continue;
        }
        let rest = lines.get(index + 1..).unwrap_or_default();
        let body = rest.iter().take_while(|line| heading(line).is_none() && !line.starts_with("--- END"));
        found.insert(section, strip(&body.copied().collect::<Vec<_>>().join("\n")).to_owned());
    }
    found
}

/// Whether a text matches every group of keys.
pub(super) fn has(text: &str, keys: &Keys) -> bool {
    keys.iter().all(|group| group.iter().any(|key| text.contains(&fold(key))))
}

/// Whether a normalised text contains a quote: its first 70 characters, or most of its words and four of them in sequence.
pub(super) fn said(text: &str, quote: &str, share: f64) -> bool {
    let folded = fold(quote);
    if text.contains(first_chars(&folded, 70)) {
        return true;
    }
    let wanted = words(quote);
    let found = wanted.iter().filter(|word| text.contains(word.as_str())).count();
    if wanted.is_empty() || (found as f64 / wanted.len() as f64) < share {
        return false;
    }
    let all: Vec<&str> = folded.split(' ').collect();
    all.windows(4.min(all.len().max(1))).any(|run| text.contains(&run.join(" ")))
}

/// The search key of a file or command: a file's last name, a command's beginning.
fn name_of(what: &str) -> String {
    if what.contains('/') && !what.contains(' ') {
        return what.rsplit('/').next().unwrap_or_default().to_lowercase();
    }
    first_chars(&fold(what), 30).to_lowercase()
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
