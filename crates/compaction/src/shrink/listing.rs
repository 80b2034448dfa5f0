//! Search results and lists of paths: some of every file, and the count of the rest.

use std::collections::HashMap;

use super::draft::{Draft, MARK};
use super::lines::{counted, shortened, tells_of_error};

/// The minimum number of lines to group.
const LEAST_LINES: usize = 20;
/// The number of lines examined to recognise their kind, and the percentage of them that must match.
const LOOKED_AT: usize = 200;
const ALIKE_PERCENT: usize = 90;
/// The number of hits per file, and of names per folder, that are shown.
const HITS_SHOWN: usize = 3;
const NAMES_SHOWN: usize = 8;

/// Parses a hit of a search: file, line, text.
fn hit(line: &str) -> Option<(&str, &str)> {
    let (path, rest) = line.split_once(':')?;
    let number = rest.find(|c: char| !c.is_ascii_digit())?;
    let is_hit = number > 0 && rest.get(number..).is_some_and(|rest| rest.starts_with([':', '-']));
    (is_hit && !path.is_empty() && !path.contains(' ') && !is_moment(path)).then_some((path, rest))
}

/// Whether the text before the first colon is the beginning of a time, as in `2026-11-18T10:02:33` and `10:02:33`.
fn is_moment(text: &str) -> bool {
    let text = text.trim_start_matches('[');
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '/' | '.' | 'T'))
}

fn are_mostly(lines: &[&str], is: impl Fn(&str) -> bool) -> bool {
    let looked_at = || lines.iter().filter(|line| !line.is_empty()).take(LOOKED_AT);
    let all = looked_at().count();
    all >= LEAST_LINES && looked_at().filter(|line| is(line)).count() * 100 >= all * ALIKE_PERCENT
}

/// Whether lines are the hits of a search.
pub(super) fn is_search(lines: &[&str]) -> bool {
    are_mostly(lines, |line| hit(line).is_some())
}

/// Whether lines are paths.
pub(super) fn is_listing(lines: &[&str]) -> bool {
    are_mostly(lines, |line| line.contains('/') && !line.contains([' ', ':', '(', '"', '{', '=', '<']))
}

/// Shortens search results to the first hits of each file, every hit that reports an error, and counts.
pub(super) fn shrink_search(lines: &[&str]) -> Draft {
    let mut groups = ListedGroups::default();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        match hit(line) {
            Some((path, rest)) => groups.add(path, rest, HITS_SHOWN, tells_of_error(rest)),
            None => groups.add("", line, usize::MAX, true),
        }
    }
    let mut text = String::new();
    for ListedGroup { name, shown, left_out } in &groups.list {
        for line in shown {
            let line = shortened(line);
            text.push_str(&if name.is_empty() { format!("{line}\n") } else { format!("{name}:{line}\n") });
        }
        if *left_out > 0 {
            text.push_str(&format!("{MARK}{} in {name}]\n", counted(*left_out, "hit")));
        }
    }
    text.pop();
    Draft { text, left_out: format!("{} of {}", counted(groups.left_out(), "hit"), groups.count) }
}

/// Shortens a listing to the first names in each folder, and counts.
pub(super) fn shrink_listing(lines: &[&str]) -> Draft {
    let mut groups = ListedGroups::default();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let (folder, name) = line.trim_end_matches('/').rsplit_once('/').unwrap_or(("", line));
        groups.add(folder, name, NAMES_SHOWN, tells_of_error(name));
    }
    let mut text = String::new();
    for ListedGroup { name, shown, left_out } in &groups.list {
        text.push_str(&format!("{name}/ {}", shown.join(" ")));
        if *left_out > 0 {
            text.push_str(&format!(" {MARK}{left_out} more]"));
        }
        text.push('\n');
    }
    text.pop();
    Draft { text, left_out: format!("{} of {}", counted(groups.left_out(), "path"), groups.count) }
}

struct ListedGroup<'a> {
    name: &'a str,
    shown: Vec<&'a str>,
    left_out: usize,
}

/// Lines grouped by file or folder, in order of first occurrence.
#[derive(Default)]
struct ListedGroups<'a> {
    list: Vec<ListedGroup<'a>>,
    places: HashMap<&'a str, usize>,
    count: usize,
}

impl<'a> ListedGroups<'a> {
    fn add(&mut self, name: &'a str, line: &'a str, most: usize, is_kept: bool) {
        self.count += 1;
        let place = *self.places.entry(name).or_insert_with(|| {
            self.list.push(ListedGroup { name, shown: Vec::new(), left_out: 0 });
            self.list.len() - 1
        });
        let Some(group) = self.list.get_mut(place) else { return };
        if group.shown.len() < most || is_kept {
            group.shown.push(line);
        } else {
            group.left_out += 1;
        }
    }

    fn left_out(&self) -> usize {
        self.list.iter().map(|group| group.left_out).sum()
    }
}
