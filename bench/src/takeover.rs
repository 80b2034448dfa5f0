//! Could an engineer take over after a compaction? Compares notes and whole views with what a reader of the log marked as true.
//!
//! For each recorded session, a file of marks states what was true at one line of it: the current request, the fate of every request,
//! constraints, decisions, results of runs, open items, the next step, questions that the notes must answer, and statements that would be
//! false. The arithmetic is that of `score.py`, which is stored with the marks; tokens are characters / 4.
//!
//! Columns: ours (every compaction that the recorded client made before the cut is made by rules), client (its own summary, if there is
//! one at the cut), dialogue (the text of user and agent, within the size of our notes), list (the most frequent names, same size),
//! prototype (the dialogue with a line for each edit, command and report, same size), model (notes that a strong model wrote, unchanged),
//! merged (the same notes used as a model's answer). If notes have no sections, the whole text counts as every section, in their favour.

mod baseline;
pub(crate) mod compactbench;
mod compactor;
mod floors;
mod generated;
mod hermes;
mod log;
mod marks;
mod score;
pub(crate) mod sent;
mod table;
mod text;
mod truth;

use std::path::{Path, PathBuf};

use self::baseline::{Baselines, newest};
use self::compactor::Compactor;
use self::floors::{Floors, Session};
use self::log::{Spoken, Stage, part_ends, stages};
use self::score::{NotesForm, Scorer, has};
use self::table::{Tables, ViewRow};
use self::text::{chars, fold, tokens};
use self::truth::Truth;
use crate::recorded::read;
use crate::retention;

/// The sizes of the baseline views: tokens of the dialogue, and of the newest messages.
const BASELINE_VIEWS: [(usize, usize); 2] = [(5_000, 3_000), (8_000, 5_000)];
/// The text at the beginning of notes.
const NOTES_TAG: &str = "CONTEXT COMPACTION";
/// The settings and the window of smaller views.
const SMALLER_RATIO: &str = "compression.target_ratio=0.1";
const SMALLER_WINDOW_TOKENS: u64 = 100_000;

/// The options of the benchmark.
pub(crate) struct Takeover {
    /// The folder of recorded Claude Code sessions.
    pub(crate) sessions: PathBuf,
    /// The folder of marks.
    pub(crate) truth: PathBuf,
    /// The model's window, in tokens.
    pub(crate) window_tokens: u64,
    /// The numbers of compactions of the past, in parts of equal size; empty for the compactions of the client.
    pub(crate) parts: Vec<usize>,
    /// Settings that override the defaults.
    pub(crate) settings: Vec<String>,
    /// Values of `compression.target_tokens` whose views are measured as well.
    pub(crate) targets: Vec<u64>,
    /// The folder of notes that are used as a model's answer.
    pub(crate) words: Option<PathBuf>,
    /// A Python with the package of Hermes, for a column with its rules.
    pub(crate) hermes: Option<PathBuf>,
    /// The only session to show, with its notes beside the marks.
    pub(crate) show: Option<String>,
    /// The folder to which all notes are written.
    pub(crate) dump: Option<PathBuf>,
    /// Whether to print the figures that must not get worse.
    pub(crate) floors: bool,
    /// Whether to print figures as JSON.
    pub(crate) json: bool,
}

/// The notes of one column, with their view.
struct Candidate {
    column: String,
    notes: String,
    view: String,
    form: NotesForm,
}

impl Candidate {
    /// A text that is both notes and view.
    fn alone(column: &str, notes: String, form: NotesForm) -> Self {
        Self { column: column.to_owned(), view: notes.clone(), notes, form }
    }
}

/// A session with its marks.
struct Marked {
    truth: Truth,
    marks: String,
    log: String,
    stages: Vec<Stage>,
}

impl Marked {
    fn past(&self) -> &[Spoken] {
        self.stages.last().map(|stage| stage.past.as_slice()).unwrap_or_default()
    }

    fn client(&self) -> Option<&str> {
        self.stages.last().and_then(|stage| stage.summary.as_deref())
    }

    /// The positions at which the past is compacted: the ends of parts, or those of the client's compactions.
    fn ends(&self, parts: Option<usize>) -> Vec<usize> {
        match parts {
            Some(count) => part_ends(self.past(), count),
            None => self.stages.iter().map(|stage| stage.past.len()).collect(),
        }
    }
}

/// Runs the benchmark and formats the tables.
pub(crate) fn run(asked: &Takeover) -> Result<String, String> {
    let sessions = marked_sessions(asked)?;
    let bench = Bench::new(asked)?;
    let mut tables = Tables::default();
    let mut shown = String::new();
    let mut floors = asked.floors.then(Floors::default);
    for marked in &sessions {
        let candidates = bench.candidates(marked)?;
        if asked.show.is_some() {
            shown.push_str(&marks::beside(&marked.truth, &marked.marks, &candidates)?);
        }
        if let Some(folder) = &asked.dump {
            dump(folder, &marked.truth.session, &candidates)?;
        }
        bench.views(marked, &candidates, &mut tables)?;
        if let Some(floors) = &mut floors {
            bench.floors(marked, floors)?;
        }
        for candidate in &candidates {
            let Candidate { column, notes, view, form } = candidate;
            let rows = bench.scorer.score(&marked.truth, notes, view, *form)?;
            tables.add(&marked.truth.session, column, tokens(notes), &rows);
        }
    }
    if let Some(floors) = &mut floors {
        floors.set_anchors(format!("anchors: {}", retention::in_short(&asked.sessions)?));
    }
    if asked.json {
        return Ok(tables.to_json(floors.as_ref().map(Floors::to_json)));
    }
    let floors = floors.as_ref().map(Floors::print).unwrap_or_default();
    Ok(format!("{shown}{}{floors}", tables.print()))
}

/// Compacts generated conversations by rules and prints the fate of their requests.
pub(crate) fn run_generated(
    count: u64,
    window_tokens: u64,
    settings: &[String],
    as_json: bool,
) -> Result<String, String> {
    generated::run(count, &Compactor::new(window_tokens, settings)?, as_json)
}

/// The sessions for which both folders have a file.
fn marked_sessions(asked: &Takeover) -> Result<Vec<Marked>, String> {
    if !asked.sessions.is_dir() {
        return Err(format!("recorded sessions not found: {} is no folder", asked.sessions.display()));
    }
    if let Some(words) = asked.words.as_ref().filter(|words| !words.is_dir()) {
        return Err(format!("the words of a model not found: {} is no folder", words.display()));
    }
    let mut found = Vec::new();
    for (truth, marks) in truth::read_all(&asked.truth)? {
        if asked.show.as_ref().is_some_and(|name| *name != truth.session) {
            continue;
        }
        let paths =
            ["jsonl.gz", "jsonl"].map(|ending| asked.sessions.join(format!("{}.{ending}", truth.session)));
        let Some(path) = paths.iter().find(|path| path.is_file()) else { continue };
        let log = String::from_utf8_lossy(&read(path)?).into_owned();
        let stages = stages(&log, truth.cut);
        found.push(Marked { truth, marks, log, stages });
    }
    match (&asked.show, found.is_empty()) {
        (_, false) => Ok(found),
        (Some(name), true) => Err(format!("no session {name} with marks")),
        (None, true) => {
            let (marks, sessions) = (asked.truth.display(), asked.sessions.display());
            Err(format!("no session of {sessions} has marks in {marks}"))
        }
    }
}

struct Bench<'a> {
    asked: &'a Takeover,
    compactor: Compactor,
    smaller: Vec<(String, Compactor)>,
    baselines: Baselines,
    scorer: Scorer,
}

impl<'a> Bench<'a> {
    fn new(asked: &'a Takeover) -> Result<Self, String> {
        let mut smaller = asked.settings.clone();
        smaller.push(SMALLER_RATIO.to_owned());
        let smaller_views = [asked.window_tokens, SMALLER_WINDOW_TOKENS].map(|window| {
            let name = format!("ours, target_ratio 0.10, window {}", table::thousands(window));
            Compactor::new(window, &smaller).map(|compactor| (name, compactor))
        });
        let targets = asked.targets.iter().map(|target| {
            let mut settings = asked.settings.clone();
            settings.push(format!("compression.target_tokens={target}"));
            let name = format!("ours, target_tokens {}", table::thousands(*target));
            Compactor::new(asked.window_tokens, &settings).map(|compactor| (name, compactor))
        });
        let smaller_views = smaller_views.into_iter().chain(targets).collect::<Result<Vec<_>, String>>()?;
        Ok(Self {
            asked,
            compactor: Compactor::new(asked.window_tokens, &asked.settings)?,
            smaller: smaller_views,
            baselines: Baselines::new().map_err(|error| error.to_string())?,
            scorer: Scorer::new().map_err(|error| error.to_string())?,
        })
    }

    /// The notes of every column.
    fn candidates(&self, marked: &Marked) -> Result<Vec<Candidate>, String> {
        let name = &marked.truth.session;
        let past = marked.past();
        let mut candidates = Vec::new();
        for (column, parts) in self.ways() {
            let view = compacted(&self.compactor, past, &marked.ends(parts))
                .map_err(|error| format!("{name}: {error}"))?;
            candidates.push(ours(column, &view));
        }
        let room = candidates.first().map_or(0, |first| chars(&first.notes));
        if let Some(client) = marked.client() {
            candidates.push(Candidate::alone("client", client.to_owned(), NotesForm::Whole));
        }
        let whole = |column: &str, notes: String| Candidate::alone(column, notes, NotesForm::Whole);
        candidates.push(whole("dialogue", self.baselines.dialogue(past, room)));
        candidates.push(whole("list", self.baselines.frequent(past, room)));
        candidates.push(whole("prototype", self.baselines.prototype(past, room)));
        if let Some(python) = &self.asked.hermes {
            let ends = marked.ends(self.asked.parts.first().copied());
            let view = hermes::compacted(python, self.asked.window_tokens, past, &ends);
            let view = view.map_err(|error| format!("{name}: {error}"))?;
            candidates.push(Candidate { form: NotesForm::Whole, ..ours("hermes".to_owned(), &view) });
        }
        let folder = self.asked.words.clone().unwrap_or_else(|| self.asked.truth.join("words"));
        let Ok(words) = std::fs::read_to_string(folder.join(format!("{name}.md"))) else {
            return Ok(candidates);
        };
        if self.asked.words.is_some() {
            let view =
                self.merged(&self.compactor, marked, &words).map_err(|error| format!("{name}: {error}"))?;
            candidates.push(ours("merged".to_owned(), &view));
        }
        candidates.push(Candidate::alone("model", words, NotesForm::Sections));
        Ok(candidates)
    }

    /// The notes that are used as a model's answer, if a folder of them was given.
    fn words_of(&self, marked: &Marked) -> Option<String> {
        let path = self.asked.words.as_ref()?.join(format!("{}.md", marked.truth.session));
        std::fs::read_to_string(path).ok()
    }

    /// The numbers of compactions, each with its column.
    fn ways(&self) -> Vec<(String, Option<usize>)> {
        match self.asked.parts.as_slice() {
            [] => vec![("ours".to_owned(), None)],
            [count] => vec![("ours".to_owned(), Some(*count))],
            counts => counts.iter().map(|count| (format!("ours {count}x"), Some(*count))).collect(),
        }
    }

    /// The view after a compaction of the whole past with these words as the model's answer. If there are parts, those before the last
    /// are compacted by rules first.
    fn merged(&self, compactor: &Compactor, marked: &Marked, words: &str) -> Result<Vec<Spoken>, String> {
        let past = marked.past();
        let ends = marked.ends(Some(self.asked.parts.first().copied().unwrap_or(1)));
        let (last, earlier) =
            ends.split_last().map_or((past.len(), &[][..]), |(last, earlier)| (*last, earlier));
        let mut view = compacted(compactor, past, earlier)?;
        let at = earlier.last().copied().unwrap_or(0);
        view.extend_from_slice(past.get(at..last).unwrap_or_default());
        compactor.with_words(&view, words)
    }

    /// Adds the figures that must not get worse, after the client's compactions, and after one and three in a row.
    fn floors(&self, marked: &Marked, floors: &mut Floors) -> Result<(), String> {
        let (name, past) = (marked.truth.session.as_str(), marked.past());
        let session = Session { name, log: &marked.log, cut: marked.truth.cut, past };
        for (way, parts) in [("as the client", None), ("once", Some(1)), ("three times", Some(3))] {
            let view = compacted(&self.compactor, past, &marked.ends(parts))?;
            let notes = ours(way.to_owned(), &view).notes;
            floors.add(way, &session, &notes, &view, &self.baselines);
        }
        Ok(())
    }

    /// Scores the probes with whole views of several sizes.
    fn views(&self, marked: &Marked, candidates: &[Candidate], tables: &mut Tables) -> Result<(), String> {
        let (truth, past) = (&marked.truth, marked.past());
        let mut add = |name: &str, view: &str| {
            let seen = fold(view);
            let hits = truth.probes.iter().filter(|probe| has(&seen, &probe.keys)).count();
            tables.add_view(ViewRow {
                name: name.to_owned(),
                tokens: tokens(view),
                hits,
                probes: truth.probes.len(),
            });
        };
        for candidate in candidates.iter().filter(|c| shows_view(c)) {
            add(&candidate.column, &candidate.view);
        }
        for (name, compactor) in &self.smaller {
            add(name, &view_text(&compacted(compactor, past, &marked.ends(None))?));
            if let Some(words) = self.words_of(marked).filter(|_| name.contains("target_tokens")) {
                let view = self.merged(compactor, marked, &words)?;
                add(&name.replace("ours", "merged"), &view_text(&view));
            }
        }
        add(
            "ours after three compactions",
            &view_text(&compacted(&self.compactor, past, &marked.ends(Some(3)))?),
        );
        for (dialogue, tail) in BASELINE_VIEWS {
            let sizes =
                format!("{} + newest {}", table::thousands(dialogue as u64), table::thousands(tail as u64));
            let tail = newest(past, tail * 4);
            add(
                &format!("dialogue {sizes}"),
                &format!("{}\n{tail}", self.baselines.dialogue(past, dialogue * 4)),
            );
            add(
                &format!("prototype {sizes}"),
                &format!("{}\n{tail}", self.baselines.prototype(past, dialogue * 4)),
            );
        }
        if let Some(client) = marked.client() {
            add("client", client);
        }
        Ok(())
    }
}

/// The view after compactions by rules at these positions, each of the previous view and the messages since.
fn compacted(compactor: &Compactor, past: &[Spoken], ends: &[usize]) -> Result<Vec<Spoken>, String> {
    let (mut view, mut at): (Vec<Spoken>, usize) = (Vec::new(), 0);
    for end in ends {
        view.extend_from_slice(past.get(at..*end).unwrap_or_default());
        view = compactor.by_rules(&view)?;
        at = *end;
    }
    Ok(view)
}

/// The notes of one of our views.
fn ours(column: String, view: &[Spoken]) -> Candidate {
    let notes = view.iter().map(Spoken::text).find(|text| text.contains(NOTES_TAG)).unwrap_or_default();
    Candidate { column, notes, view: view_text(view), form: NotesForm::Sections }
}

/// Whether its view contains more than its notes.
fn shows_view(candidate: &Candidate) -> bool {
    candidate.column.starts_with("ours") || matches!(candidate.column.as_str(), "merged" | "hermes")
}

fn view_text(view: &[Spoken]) -> String {
    view.iter().map(Spoken::text).collect::<Vec<_>>().join("\n")
}

/// Writes the notes of a session, one file for each column.
fn dump(folder: &Path, name: &str, candidates: &[Candidate]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for candidate in candidates {
        let column = candidate.column.replace(' ', "-");
        std::fs::write(folder.join(format!("{name}.{column}.md")), &candidate.notes).map_err(failed)?;
    }
    Ok(())
}
