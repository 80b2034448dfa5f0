//! The output of `search` for people: each hit with its location and the text around it.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_store::{Hit, Neighbour, SearchAnswer, Snippet};

use crate::args::time::Now;
use crate::ui::text::{columns, counted, glimpse, on_one_line, shorten, thousands};

const INDENT: usize = 2;
/// The shortest part of a title that is shown, in columns.
const MIN_TITLE_COLUMNS: usize = 8;

/// Formats all hits, the best first.
pub(crate) fn render(answer: &SearchAnswer, now: &Now, width: usize) -> String {
    let mut out = String::new();
    for (index, hit) in answer.hits.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", heading(hit, now, width));
        for neighbour in &hit.before {
            let _ = writeln!(out, "{}", beside(neighbour, width));
        }
        let lead = if hit.before.is_empty() && hit.after.is_empty() {
            String::new()
        } else {
            format!("#{} {}: ", hit.seq, hit.role)
        };
        out.push_str(&passage(&lead, &hit.snippet, width));
        for neighbour in &hit.after {
            let _ = writeln!(out, "{}", beside(neighbour, width));
        }
    }
    out
}

/// Notes about how the answer was found, and what is missing.
pub(crate) fn notes(answer: &SearchAnswer, limit: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if answer.hits.is_empty() {
        notes.push("nothing was found".to_owned());
    } else if answer.as_substring {
        notes.push("no message contains these words; they were found as a substring".to_owned());
    } else if answer.hits.iter().all(|hit| hit.matched.is_some_and(|matched| matched.words < matched.of)) {
        notes.push("no message contains all of these words; passages with some of them are shown".to_owned());
    }
    if let Some(meaning) = &answer.meaning {
        if let Some(problem) = &meaning.problem {
            notes.push(format!("searched by words alone; the embedding model failed: {problem}"));
        } else if meaning.waiting > 0 {
            notes.push(format!(
                "vectors are missing for {}, so only words were compared there; `throughline vectors --make` makes them",
                counted(meaning.waiting, "message", "messages")
            ));
        }
        if meaning.newest_only {
            notes.push(format!(
                "the meaning of the newest {} passages was compared; --session or --project compares others",
                thousands(meaning.compared)
            ));
        }
    }
    if let Some(first) = answer.unseen.first() {
        notes.push(format!(
            "{} cannot be searched, among them #{} of {}; `throughline doctor` says why and repairs what it can",
            counted(answer.unseen.len() as u64, "message", "messages"),
            first.seq,
            first.session
        ));
    }
    if answer.hits.len() >= limit {
        notes.push(format!("only the best {limit} are shown; --limit N shows more"));
    }
    if let Some(ranked) = answer.ranked_newest {
        notes.push(format!(
            "too many matches; only the newest {} were ranked. More words, --session or --since narrow it down",
            thousands(ranked)
        ));
    }
    notes
}

/// The command that shows the first hit in its conversation.
pub(crate) fn how_to_open(answer: &SearchAnswer) -> Option<String> {
    let first = answer.hits.first()?;
    Some(format!(
        "throughline sessions show {} --around {} prints the first hit with the messages beside it",
        first.session, first.seq
    ))
}

/// The heading of a hit: session, message, role, time, and as much of the title as fits.
fn heading(hit: &Hit, now: &Now, width: usize) -> String {
    let mut words = vec![format!("#{} {}", hit.seq, hit.role)];
    if !hit.tools.is_empty() {
        let tools: Vec<String> = hit.tools.iter().map(|tool| on_one_line(tool)).collect();
        words.push(shorten(&tools.join(", "), width / 4));
    }
    if let Some(place) = &hit.artifact {
        words.push(format!("line {}", thousands(place.line)));
    }
    if hit.repeats > 0 {
        words.push(format!("said {} times", thousands(hit.repeats + 1)));
    }
    words.push(now.ago(hit.at_ms));
    if let Some(matched) = hit.matched.filter(|matched| matched.words < matched.of) {
        words.push(format!("{} of {} words", matched.words, matched.of));
    }
    if let Some(similarity) = hit.similarity {
        words.push(format!("{:.0} % alike in meaning", 100.0 * similarity.max(0.0)));
    }
    let place = format!("{}  {}", hit.session, words.join(", "));
    let room = width.saturating_sub(columns(&place) + 2);
    match hit.title.as_deref().filter(|_| room >= MIN_TITLE_COLUMNS) {
        Some(title) => format!("{}  {}", place.bold(), shorten(&on_one_line(title), room).dimmed()),
        None => place.bold().to_string(),
    }
}

/// Formats the passage as lines; matches are highlighted.
fn passage(lead: &str, snippet: &Snippet, width: usize) -> String {
    let mut letters: Vec<(char, bool)> = lead.chars().map(|c| (c, false)).collect();
    letters.extend(snippet.cut_before.then_some(('…', false)));
    for (at, c) in snippet.text.char_indices() {
        let is_marked = snippet.marks.iter().any(|(start, end)| (*start..*end).contains(&at));
        letters.extend(on_one_line(c.encode_utf8(&mut [0; 4])).chars().map(|c| (c, is_marked)));
    }
    letters.extend(snippet.cut_after.then_some(('…', false)));
    let room = width.saturating_sub(INDENT);
    let mut out = String::new();
    let mut line: Vec<(char, bool)> = Vec::new();
    for word in letters.split_inclusive(|(c, _)| *c == ' ') {
        let mut rest = word;
        while !rest.is_empty() {
            if columns_of(&line) + columns_of(trimmed(rest)) <= room {
                line.extend_from_slice(rest);
                break;
            }
            if line.is_empty() {
                // A word longer than a line is broken at the end of the line.
                let fits = (1..=rest.len()).rev().find(|end| columns_of(&rest[..*end]) <= room).unwrap_or(1);
                line.extend_from_slice(&rest[..fits]);
                rest = &rest[fits..];
            }
            push_styled(&mut out, &line);
            line.clear();
        }
    }
    push_styled(&mut out, &line);
    out
}

fn trimmed(letters: &[(char, bool)]) -> &[(char, bool)] {
    letters.strip_suffix(&[(' ', false)]).or(letters.strip_suffix(&[(' ', true)])).unwrap_or(letters)
}

fn columns_of(letters: &[(char, bool)]) -> usize {
    columns(&letters.iter().map(|(c, _)| *c).collect::<String>())
}

/// Appends one line of a passage.
fn push_styled(out: &mut String, line: &[(char, bool)]) {
    let line = trimmed(line);
    if line.is_empty() {
        return;
    }
    let _ = write!(out, "{:INDENT$}", "");
    for run in line.chunk_by(|(_, a), (_, b)| a == b) {
        let text: String = run.iter().map(|(c, _)| *c).collect();
        match run.first() {
            Some((_, true)) => out.push_str(&text.red().bold().to_string()),
            _ => out.push_str(&text),
        }
    }
    out.push('\n');
}

fn beside(neighbour: &Neighbour, width: usize) -> String {
    let lead = format!("#{} {}: ", neighbour.seq, neighbour.role);
    let room = width.saturating_sub(INDENT + columns(&lead));
    format!("{:INDENT$}{}", "", format!("{lead}{}", glimpse(&neighbour.text, room)).dimmed())
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
