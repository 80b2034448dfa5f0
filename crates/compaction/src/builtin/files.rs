//! Relevant Files: the files in hand with their newest lines, the changed ones, and what was read.

use rustc_hash::FxHashMap;

use crate::act::one_line;

use super::draft::{Line, Price, choose_for};
use super::story::Scope;

/// Files with what matters in them.
pub(super) fn files(scope: &Scope<'_>, budget: u64, price: Price) -> Vec<Line> {
    let state = scope.state;
    let mut by_path: FxHashMap<&str, (u32, u32)> = FxHashMap::default();
    for edit in state.edits.iter().filter(|edit| edit.applied && scope.has(edit.message)) {
        let entry = by_path.entry(&edit.path).or_default();
        entry.0 += 1;
        entry.1 = edit.message;
    }
    let mut lines: Vec<Line> = Vec::new();
    for (path, (times, last)) in &by_path {
        let how = match times {
            1 => "edited".to_owned(),
            2 => "edited twice".to_owned(),
            n => format!("edited {n} times"),
        };
        let value = 4.0 + 3.0 * scope.recency(*last) + scope.bonus(path);
        lines.push(Line { message: *last, text: format!("`{path}` {how}"), value });
    }
    for look in state.looks.iter().filter(|look| scope.has(look.message)) {
        if by_path.contains_key(look.path.as_str()) {
            continue;
        }
        let range = if look.range.is_empty() { String::new() } else { format!(" ({})", look.range) };
        let has = if look.lines.is_empty() {
            String::new()
        } else {
            format!(": {}", one_line(&look.lines.join("; "), 240))
        };
        let value = 1.0 + 2.5 * scope.recency(look.message) + scope.bonus(&look.path);
        lines.push(Line { message: look.message, text: format!("`{}` read{range}{has}", look.path), value });
    }
    lines.sort_by_key(|line| line.message);
    choose_for(scope, lines, budget, price).0
}

/// The path an entry is about.
pub(super) fn path_of(entry: &str) -> Option<&str> {
    entry.strip_prefix('`')?.split('`').next()
}
