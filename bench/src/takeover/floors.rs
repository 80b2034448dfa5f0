//! Figures that must not get worse while notes improve: the user's words, spared re-reads, anchors, and the division of notes among their
//! sections.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::baseline::Baselines;
use super::log::{Call, Spoken, later_calls};
use super::score::{SECTIONS, split};
use super::table::thousands;
use super::text::{chars, fold, lines, strip, tokens};

/// The number of calls after the cut in which a file may be read again.
const CALLS_AFTER: usize = 40;
/// The percentage of a file's lines in the view from which a re-read is spared.
const SPARED_PERCENT: usize = 80;
/// A fifth of the summary's budget: the user's words must be kept completely if they have at most this many tokens.
const PROMPT_TOKENS: usize = 2_000;
/// The number of words below which a sentence may occur in two sections.
const SENTENCE_WORDS: usize = 6;

/// Hits and their maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) hits: usize,
    pub(super) of: usize,
}

impl Share {
    fn add(&mut self, is_hit: bool) {
        self.hits += usize::from(is_hit);
        self.of += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.hits as f64 / self.of.max(1) as f64
    }
}

/// The sums over sessions, for each way of compacting.
#[derive(Default)]
pub(super) struct Floors {
    ways: Vec<(String, Floor)>,
    anchors: String,
}

#[derive(Default)]
struct Floor {
    prompts: Share,
    /// For sessions whose prompts are few enough to be kept completely.
    few_prompts: Share,
    re_reads: Share,
    twice: Share,
    examples: Vec<String>,
    sections: BTreeMap<usize, usize>,
    chars: usize,
}

/// One session with its view.
pub(super) struct Session<'a> {
    pub(super) name: &'a str,
    pub(super) log: &'a str,
    pub(super) cut: usize,
    pub(super) past: &'a [Spoken],
}

impl Floors {
    /// Adds a view of a session with its notes.
    pub(super) fn add(
        &mut self,
        way: &str,
        session: &Session<'_>,
        notes: &str,
        view: &[Spoken],
        baselines: &Baselines,
    ) {
        let at = self.ways.iter().position(|(known, _)| known == way).unwrap_or_else(|| {
            self.ways.push((way.to_owned(), Floor::default()));
            self.ways.len() - 1
        });
        let Some((_, floor)) = self.ways.get_mut(at) else { return };
        let prompts = prompts(session.past, baselines);
        let seen = fold(&super::view_text(view));
        let are_few = prompts.iter().map(|prompt| tokens(prompt)).sum::<usize>() <= PROMPT_TOKENS;
        for prompt in &prompts {
            let is_there = seen.contains(&fold(prompt));
            floor.prompts.add(is_there);
            if are_few {
                floor.few_prompts.add(is_there);
            }
        }
        let known = known_lines(view);
        for text in re_reads(session) {
            floor.re_reads.add(is_spared(&text, &known));
        }
        // Also the user's words in rejected calls.
        let refusals = session.past.iter().filter(|message| message.role == "tool");
        let refusals = refusals.filter_map(|message| baselines.said_in_rejection(&message.content));
        let said: Vec<&str> = prompts.iter().map(String::as_str).chain(refusals).collect();
        let prompts = fold(&said.join("\n"));
        let (twice, of) = repeated_sentences(notes, &prompts);
        floor.twice.hits += twice.len();
        floor.twice.of += of;
        floor.examples.extend(twice.into_iter().map(|sentence| format!("{}: {sentence}", session.name)));
        let sections = split(notes);
        for (index, name) in SECTIONS.iter().enumerate() {
            *floor.sections.entry(index).or_default() += sections.get(name).map_or(0, |text| chars(text));
        }
        floor.chars += chars(notes);
    }

    /// Adds the result of the retention benchmark.
    pub(super) fn set_anchors(&mut self, words: String) {
        self.anchors = words;
    }

    /// Formats the figures.
    pub(super) fn print(&self) -> String {
        let mut out = format!("{:46}", "\nfloors, percent (of so many)");
        let row = |out: &mut String, name: &str, figure: &dyn Fn(&Floor) -> String| {
            let _ = write!(out, "\n{name:45}");
            for (_, floor) in &self.ways {
                let _ = write!(out, "{:>18}", figure(floor));
            }
        };
        for (way, _) in &self.ways {
            let _ = write!(out, "{way:>18}");
        }
        let share = |share: Share| format!("{:.1} ({:>5})", share.percent(), thousands(share.of as u64));
        row(&mut out, "prompts word for word in the view", &|floor| share(floor.prompts));
        row(&mut out, "  of sessions with at most 2,000 tokens of them", &|floor| share(floor.few_prompts));
        row(&mut out, "re-reads spared", &|floor| share(floor.re_reads));
        row(&mut out, "sentences that stand in two sections (bad)", &|floor| share(floor.twice));
        for (index, name) in SECTIONS.iter().enumerate() {
            row(&mut out, &format!("share of the notes: {name}"), &|floor| {
                let chars = floor.sections.get(&index).copied().unwrap_or(0);
                format!("{:.1}        ", Share { hits: chars, of: floor.chars }.percent())
            });
        }
        let _ = writeln!(out, "\n\n{}", self.anchors);
        let examples = self.ways.first().map(|(_, floor)| floor.examples.as_slice()).unwrap_or_default();
        for example in examples.iter().take(5) {
            let _ = writeln!(out, "stands in two sections: {example}");
        }
        out
    }

    /// The figures as JSON.
    pub(super) fn to_json(&self) -> Value {
        let pair = |share: Share| json!([share.hits, share.of]);
        let way = |(name, floor): &(String, Floor)| {
            let sections: Map<String, Value> = SECTIONS
                .iter()
                .enumerate()
                .map(|(index, name)| {
                    ((*name).to_owned(), json!(floor.sections.get(&index).copied().unwrap_or(0)))
                })
                .collect();
            let figures = json!({
                "prompts": pair(floor.prompts),
                "few_prompts": pair(floor.few_prompts),
                "re_reads_spared": pair(floor.re_reads),
                "sentences_twice": pair(floor.twice),
                "section_chars": sections,
                "notes_chars": floor.chars,
            });
            (name.clone(), figures)
        };
        json!({ "ways": self.ways.iter().map(way).collect::<Map<_, _>>(), "anchors": self.anchors })
    }
}

/// The user's messages.
fn prompts(past: &[Spoken], baselines: &Baselines) -> Vec<String> {
    let said = past.iter().filter(|message| message.role == "user").map(|message| strip(&message.content));
    said.filter(|text| !text.is_empty() && !baselines.is_noise(text)).map(str::to_owned).collect()
}

/// The file that a call reads or writes.
fn file_of(call: &Call) -> Option<String> {
    if !matches!(call.name.as_str(), "Read" | "Edit" | "Write" | "MultiEdit" | "NotebookEdit") {
        return None;
    }
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let path = arguments.get("file_path").or_else(|| arguments.get("notebook_path"))?;
    path.as_str().map(str::to_owned)
}

/// The contents of files that were used before the cut and read again soon after it.
fn re_reads(session: &Session<'_>) -> Vec<String> {
    let touched: HashSet<String> =
        session.past.iter().flat_map(|m| m.calls.iter().filter_map(file_of)).collect();
    let later = later_calls(session.log, session.cut);
    let reads = later.into_iter().take(CALLS_AFTER).filter(|(call, _)| call.name == "Read");
    let again = reads.filter(|(call, _)| file_of(call).is_some_and(|file| touched.contains(&file)));
    again.filter_map(|(_, result)| result).collect()
}

/// A line of a file without its number.
fn bare_line(line: &str) -> &str {
    let line = strip(line);
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.len() < line.len();
    rest.strip_prefix('→').or_else(|| rest.strip_prefix('\t')).filter(|_| numbered).map_or(line, strip)
}

/// Every line of text in a view, including those in arguments.
fn known_lines(view: &[Spoken]) -> HashSet<String> {
    let mut known = HashSet::new();
    let mut add = |text: &str| known.extend(lines(text).into_iter().map(|line| bare_line(line).to_owned()));
    for message in view {
        add(&message.content);
        for call in &message.calls {
            if let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) {
                add_strings(&arguments, &mut add);
            }
        }
    }
    known
}

fn add_strings(value: &Value, add: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => add(text),
        Value::Array(items) => items.iter().for_each(|item| add_strings(item, add)),
        Value::Object(members) => members.values().for_each(|member| add_strings(member, add)),
        _ => {}
    }
}

/// Whether known lines spare the re-read of a text.
fn is_spared(text: &str, known: &HashSet<String>) -> bool {
    let all: Vec<&str> = lines(text).into_iter().map(bare_line).filter(|line| !line.is_empty()).collect();
    let found = all.iter().filter(|line| known.contains(**line)).count();
    !all.is_empty() && found * 100 >= all.len() * SPARED_PERCENT
}

/// The sentences of notes that occur in two sections, and the number of all sentences. A sentence of the user may occur once more under
/// Constraints & Preferences or Key Decisions.
fn repeated_sentences(notes: &str, prompts: &str) -> (Vec<String>, usize) {
    let mut places: HashMap<String, Vec<&str>> = HashMap::new();
    let sections = split(notes);
    for name in SECTIONS {
        let Some(text) = sections.get(name) else { continue };
        let sentences = lines(text).into_iter().flat_map(|line| line.split(". "));
        let bullets = |c: char| " -*•\"'`.".contains(c) || c.is_ascii_digit();
        let sentences = sentences.map(|sentence| fold(sentence).trim_matches(bullets).to_owned());
        for sentence in sentences.filter(|sentence| sentence.split(' ').count() >= SENTENCE_WORDS) {
            let known = places.entry(sentence).or_default();
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
    let all = places.len();
    let is_allowed = |sentence: &str, sections: &[&str]| {
        let elsewhere = |section: &&&str| !matches!(**section, "Constraints & Preferences" | "Key Decisions");
        prompts.contains(sentence) && sections.len() == 2 && sections.iter().filter(elsewhere).count() <= 1
    };
    let twice = places
        .into_iter()
        .filter(|(sentence, sections)| sections.len() > 1 && !is_allowed(sentence, sections));
    let mut twice: Vec<String> =
        twice.map(|(sentence, sections)| format!("{} ({})", sentence, sections.join(", "))).collect();
    twice.sort();
    (twice, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_re_read_is_spared_by_four_fifths_of_its_lines() {
        let view =
            [Spoken::parse(r#"{"role":"user","content":"     1→fn a() {\n     2→    b();\n     3→}\nc"}"#)
                .unwrap()];
        let known = known_lines(&view);
        assert!(is_spared("10→fn a() {\n11→    b();\n12→}\n13→\n14→c\n15→not there", &known));
        assert!(!is_spared("10→fn a() {\n11→    b();\n12→not there", &known));
        assert!(!is_spared("", &known));
    }

    #[test]
    fn a_sentence_of_the_persons_may_stand_twice() {
        let rule = "please never touch the lexer of it";
        let notes = format!("## Completed Actions\n- {rule}\n## Constraints & Preferences\n- {rule}\n");
        assert_eq!(repeated_sentences(&notes, rule), (Vec::new(), 1));
        assert_eq!(repeated_sentences(&notes, "").0.len(), 1);
        let three = format!("{notes}## Blocked\n- {rule}\n");
        assert_eq!(repeated_sentences(&three, rule).0.len(), 1);
    }
}
