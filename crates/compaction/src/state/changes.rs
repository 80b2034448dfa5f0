//! Reading what calls change: lists, plans and files.

use std::cell::LazyCell;

use rustc_hash::FxHashSet;
use throughline_transcript::RawJson;

use crate::act::{Act, ToolFamily, one_line, slice_start};
use crate::facts::Facts;

use super::lists::{TodoSource, TodoStatus, all_steps, item_update, new_item, steps, whole_list};
use super::model::{Edit, State};
use super::prose::{begins_word, plain_sentences};

/// Lines kept of a file that was read.
const LOOK_LINES: usize = 8;
/// Of a long text, this much is looked at.
pub(super) const LOOK_BYTES: usize = 24 * 1024;
/// New lines kept of one edit.
const NEW_LINES: usize = 4;
/// A new line is cut here.
const NEW_LINE_CHARS: usize = 140;

impl State {
    /// What only the arguments of a call tell: lists, plans and new text.
    pub(super) fn read_arguments(&mut self, index: u32, tool: &str, arguments: &str, facts: &Facts) {
        match ToolFamily::of(tool) {
            ToolFamily::Plan => self.read_list_call(index, tool, arguments),
            ToolFamily::Edit | ToolFamily::Write => self.read_edit(index, tool, arguments, facts),
            ToolFamily::Run if arguments.contains("*** Begin Patch") => {
                self.read_edit(index, tool, arguments, facts)
            }
            _ => {}
        }
    }

    fn read_list_call(&mut self, index: u32, tool: &str, arguments: &str) {
        let name: String =
            tool.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        if name.ends_with("taskcreate") {
            if let Some(mut item) = new_item(arguments, index) {
                self.reader.items += 1;
                item.number = Some(self.reader.items);
                self.todos.push(item);
            }
        } else if name.ends_with("taskupdate") {
            if let Some((number, status)) = item_update(arguments) {
                let found = self.todos.iter_mut().rev();
                let mut found =
                    found.filter(|item| item.source == TodoSource::Item && item.number == Some(number));
                match found.next() {
                    Some(item) => {
                        item.status = status;
                        item.changed_by = Some(index);
                    }
                    // The item was added before what this state has read.
                    None => self.item_updates.push((number, status)),
                }
            }
        } else if let Some(plan) = RawJson(arguments).get("plan").and_then(RawJson::as_text) {
            self.read_plan(index, &plan);
        } else {
            let list = whole_list(arguments, index);
            if !list.is_empty() {
                self.todos.retain(|item| item.source != TodoSource::List);
                self.todos.extend(list);
            }
        }
    }

    /// A plan that the agent wrote for the person.
    fn read_plan(&mut self, index: u32, plan: &str) {
        let list = steps(plan, index, TodoSource::Plan);
        if !list.is_empty() {
            self.todos.retain(|item| !matches!(item.source, TodoSource::Plan | TodoSource::Words));
            self.todos.extend(list);
        }
    }

    fn read_edit(&mut self, index: u32, tool: &str, arguments: &str, facts: &Facts) {
        let act = Act::read(tool, arguments, index);
        let root = RawJson(arguments);
        let text = |keys: &[&str]| keys.iter().find_map(|key| root.get(key).and_then(RawJson::as_text));
        let old = text(&["old_string", "old_str", "old_text", "search"]).unwrap_or_default();
        let new = text(&[
            "new_string",
            "new_str",
            "new_text",
            "replace",
            "new_source",
            "content",
            "contents",
            "file_text",
        ]);
        let new = new.map_or_else(|| patched_lines(&root, arguments), std::borrow::Cow::into_owned);
        let whole = act.family == ToolFamily::Write;
        for path in act.changed_files() {
            let is_plan = path.ends_with(".md") && path.to_lowercase().contains("plan");
            if is_plan && whole {
                self.read_plan(index, &new);
            } else if is_plan {
                self.change_plan(index, &old, &new);
            }
            if !is_plan {
                self.tick_off(index, path, &new);
            }
            for problem in self.problems.iter_mut().filter(|problem| problem.solved_by.is_none()) {
                if problem.file.as_deref().is_some_and(|file| is_same_file(path, file)) {
                    problem.solved_by = Some(index);
                }
            }
            // Texts and tests say what is expected, not what was chosen.
            let has_choices =
                !path.ends_with(".md") && !["test", "Test", "TEST"].iter().any(|word| path.contains(word));
            let reasons = if has_choices { reasons(&old, &new) } else { Vec::new() };
            for edit in self.edits.iter_mut().filter(|edit| edit.path == path) {
                edit.reasons.retain(|reason| {
                    let said = reason.split_once(WITHIN).map_or(reason.as_str(), |(_, said)| said);
                    let start = slice_start(said, COMMENT_CHARS.start);
                    whole || !old.contains(start) || new.contains(start)
                });
            }
            let masked =
                |lines: Vec<String>| lines.into_iter().map(|line| facts.mask(&line).into_owned()).collect();
            let (new_lines, removed) =
                (masked(new_lines(&old, &new)), masked(removed_definitions(&old, &new)));
            self.edits.push(Edit {
                message: index,
                path: path.to_owned(),
                whole,
                new_lines,
                removed,
                reasons: masked(reasons),
                applied: true,
            });
        }
    }

    /// A change of the plan's file: steps that were taken out go, steps that were put in are added.
    fn change_plan(&mut self, index: u32, old: &str, new: &str) {
        let (before, after) =
            (all_steps(old, index, TodoSource::Plan), all_steps(new, index, TodoSource::Plan));
        self.todos.retain(|item| {
            item.source != TodoSource::Plan || !before.iter().any(|gone| gone.text == item.text)
        });
        self.todos.extend(after);
    }

    /// Items that a change shows to be done.
    fn tick_off(&mut self, index: u32, path: &str, new: &str) {
        for item in self.todos.iter_mut().filter(|item| item.status == TodoStatus::Open) {
            if !matches!(item.source, TodoSource::Words | TodoSource::Plan) {
                continue;
            }
            let mut files =
                item.marks.iter().filter(|mark| mark.contains('.') && !mark.contains([' ', '('])).peekable();
            let is_shown = if files.peek().is_some() {
                files.any(|file| is_same_file(path, file))
            } else {
                item.marks.iter().any(|mark| !mark.contains(' ') && new.contains(mark.as_str()))
            };
            if is_shown {
                item.status = TodoStatus::InProgress;
                item.changed_by = Some(index);
            }
        }
    }
}

/// Whether two names are of the same file: one ends with the other.
pub(crate) fn is_same_file(path: &str, name: &str) -> bool {
    let name = name.trim_start_matches("./").split(':').next().unwrap_or(name);
    let ends = |long: &str, short: &str| {
        long.ends_with(short)
            && (long.len() == short.len()
                || long.get(..long.len() - short.len()).is_some_and(|rest| rest.ends_with('/')))
    };
    !name.is_empty() && (ends(path, name) || ends(name, path))
}
/// The lines of a patch that are new.
fn patched_lines(root: &RawJson<'_>, arguments: &str) -> String {
    let edits = root.get("edits").map(|edits| {
        let news = edits.elements().filter_map(|edit| {
            ["new_string", "new_str", "new_text"]
                .iter()
                .find_map(|key| edit.get(key).and_then(RawJson::as_text))
        });
        news.map(std::borrow::Cow::into_owned).collect::<Vec<_>>().join("\n")
    });
    if let Some(edits) = edits {
        return edits;
    }
    let patch = ["patch", "input", "diff", "command", "cmd"]
        .iter()
        .find_map(|key| root.get(key).and_then(RawJson::as_text));
    let patch = patch.unwrap_or(std::borrow::Cow::Borrowed(arguments));
    let added =
        patch.lines().filter_map(|line| line.strip_prefix('+').filter(|line| !line.starts_with("++")));
    added.collect::<Vec<_>>().join("\n")
}

/// Lines of a new text that its old text does not have: what defines something first, then how it begins.
fn new_lines(old: &str, new: &str) -> Vec<String> {
    let known: FxHashSet<&str> = old.lines().map(str::trim).collect();
    let tells = |line: &&str| {
        let letters = line.chars().filter(|c| c.is_alphanumeric()).count();
        letters >= 4 && !known.contains(*line)
    };
    let lines: Vec<&str> = slice_start(new, LOOK_BYTES).lines().map(str::trim).filter(tells).collect();
    let mut chosen: Vec<usize> = (0..lines.len())
        .filter(|at| lines.get(*at).is_some_and(|line| is_definition(line)))
        .take(NEW_LINES)
        .collect();
    for at in 0..lines.len() {
        if chosen.len() >= NEW_LINES {
            break;
        }
        if !chosen.contains(&at) {
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    chosen
        .into_iter()
        .filter_map(|at| lines.get(at))
        .map(|line| one_line(line.trim_end_matches('{'), NEW_LINE_CHARS))
        .collect()
}

/// Words with which a comment says why something is as it is.
const REASONS: &[&str] = &[
    "because",
    "since we ",
    "since it ",
    "since this ",
    "since the ",
    "so that",
    "so we ",
    "instead of",
    "rather than",
    "avoid",
    "prevent",
    "fall back",
    "falls back",
    "fallback",
    "backward compat",
    "backwards compat",
    "for compatibility",
    "consistency",
    "to keep",
    "kept ",
    "otherwise ",
    "intentional",
    "deliberate",
    "workaround",
    "must not",
    "weil",
    "damit",
    "statt",
    "porque",
    "parce que",
    "потому",
    "因为",
];
/// Comments kept of one edit, and how long one may be.
const COMMENTS: usize = 3;
const COMMENT_CHARS: std::ops::Range<usize> = 24..260;

/// Sentences of new comments that say why something is as it is. Lines of one comment are read as one text.
fn reasons(old: &str, new: &str) -> Vec<String> {
    // Most changes have no comment, and need no list of the old lines.
    let known: LazyCell<FxHashSet<&str>, _> = LazyCell::new(|| old.lines().map(str::trim).collect());
    let mut comments: Vec<(Option<&str>, String)> = Vec::new();
    let mut goes_on = false;
    let mut within: Option<&str> = None;
    for line in slice_start(new, LOOK_BYTES).lines().map(str::trim) {
        let Some((text, is_alone)) = comment_of(line).filter(|_| !known.contains(line)) else {
            goes_on = false;
            if is_definition(line) {
                within = defined_name(line);
            }
            continue;
        };
        match comments.last_mut().map(|(_, last)| last).filter(|_| goes_on && is_alone) {
            Some(last) => {
                // A line that ends without a mark before one that begins large is a sentence of its own.
                let is_new = text.starts_with(char::is_uppercase) && last.ends_with(char::is_alphanumeric);
                last.push_str(if is_new { ". " } else { " " });
                last.push_str(text);
            }
            None => comments.push((within, text.to_owned())),
        }
        goes_on = is_alone;
    }
    let gives_reason = |sentence: &&str| {
        let is_whole = !sentence.ends_with(':')
            && !sentence.trim_end_matches('.').ends_with(|c: char| c.is_ascii_digit());
        if !is_whole || !COMMENT_CHARS.contains(&sentence.chars().count()) {
            return false;
        }
        let lower = sentence.to_lowercase();
        REASONS.iter().any(|cue| begins_word(&lower, cue))
    };
    let mut out: Vec<String> = Vec::new();
    for (within, comment) in &comments {
        let within = within.map(|name| format!("{name}{WITHIN}")).unwrap_or_default();
        let mut before = "";
        for sentence in plain_sentences(comment) {
            if gives_reason(&sentence) && out.len() < COMMENTS {
                // `This is needed because ...` says nothing without what it is about.
                let leans = ["This ", "It ", "That ", "They "].iter().any(|word| sentence.starts_with(word));
                let about = if leans && !before.is_empty() { format!("{before} ") } else { String::new() };
                out.push(format!("{within}{about}{sentence}"));
            }
            before = sentence;
        }
    }
    out
}

/// Between what a comment stands in and what it says.
pub(crate) const WITHIN: &str = "(): ";

/// The text of a line's comment, and whether the line is nothing else.
pub(crate) fn comment_of(line: &str) -> Option<(&str, bool)> {
    let line = line.trim();
    // `//nolint:unused // kept for later`: the mark of a tool with its reason.
    if let Some(text) =
        line.strip_prefix("//").filter(|text| text.contains(" // ") && !text.starts_with([' ', '/', '!']))
    {
        return Some((text, true));
    }
    let alone =
        ["// ", "# ", "-- ", "/// ", "//! ", "* ", "/* "].iter().find_map(|mark| line.strip_prefix(mark));
    let (text, is_alone) = match alone {
        Some(text) => (text, true),
        None => (line.rsplit_once(" // ")?.1, false),
    };
    Some((text.trim_end_matches("*/").trim(), is_alone))
}

/// Names that an old text defines and its new text has no more.
fn removed_definitions(old: &str, new: &str) -> Vec<String> {
    let names = old.lines().map(str::trim).filter(|line| is_definition(line)).filter_map(defined_name);
    names.filter(|name| !new.contains(*name)).take(NEW_LINES).map(str::to_owned).collect()
}

/// The name that a line defines.
fn defined_name(line: &str) -> Option<&str> {
    let rest = line.split_once(' ')?.1;
    // `func (s *Store) Open(...)`.
    let rest = if rest.starts_with('(') { rest.split_once(") ")?.1 } else { rest };
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    rest.get(..end).filter(|name| name.len() >= 4)
}

/// Whether a line defines something.
pub(crate) fn is_definition(line: &str) -> bool {
    DEFINING.iter().any(|start| line.starts_with(start)) && line.len() > 6
}

/// How lines begin that define something, in the languages that are common.
const DEFINING: &[&str] = &[
    "func ",
    "fn ",
    "pub ",
    "def ",
    "class ",
    "type ",
    "struct ",
    "enum ",
    "interface ",
    "trait ",
    "impl ",
    "export ",
    "const ",
    "var ",
    "public ",
    "private ",
    "async ",
    "function ",
    "module ",
];

/// Lines of a file that define something.
pub(super) fn defining_lines(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        // The number and the mark that some tools put before each line.
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let bare = line.get(digits..).unwrap_or(line);
        let bare = bare
            .strip_prefix('→')
            .or_else(|| bare.strip_prefix('\t'))
            .or_else(|| bare.strip_prefix('|'))
            .unwrap_or(bare);
        if is_definition(bare) {
            out.push(one_line(bare.trim_end_matches('{'), 100));
            if out.len() >= LOOK_LINES {
                break;
            }
        }
    }
    out
}
