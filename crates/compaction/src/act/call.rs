//! Parses a tool call: its subject, from the arguments.

use std::borrow::Cow;

use throughline_transcript::RawJson;

use super::family::ToolFamily;
use super::text::{counted, one_line};

/// Members that name a file, most telling first.
const PATH_KEYS: &[&str] = &[
    "file_path",
    "path",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "absolute_path",
    "filePath",
    "paths",
];
/// Members that hold a command or code.
const COMMAND_KEYS: &[&str] = &["command", "cmd", "code", "script", "input", "commands", "chars"];
/// Members that hold what is looked for.
const QUERY_KEYS: &[&str] =
    &["pattern", "query", "regex", "search_term", "q", "glob", "name_pattern", "target"];
/// Members that hold an address.
const URL_KEYS: &[&str] = &["url", "urls", "uri", "ref", "query", "q"];
/// Members that say what someone else shall do or answer.
const TASK_KEYS: &[&str] = &["description", "goal", "task", "prompt", "question", "questions", "explanation"];

/// Names of members in arguments and answers: they say how a tool is called, not what with.
const MEMBER_NAMES: &[&str] = &[
    "absolute_path",
    "bytes_written",
    "dirs_created",
    "duration_seconds",
    "end_line",
    "exit_code",
    "file_path",
    "file_text",
    "filePath",
    "head_limit",
    "line_end",
    "line_start",
    "max_lines",
    "max_output_tokens",
    "name_pattern",
    "new_source",
    "new_str",
    "new_string",
    "new_text",
    "notebook_path",
    "num_lines",
    "old_str",
    "old_string",
    "old_text",
    "output_mode",
    "replace_all",
    "run_in_background",
    "search_term",
    "start_line",
    "subagent_type",
    "target_file",
    "timeout_ms",
    "total_count",
    "total_lines",
    "view_start",
    "yield_time_ms",
];

/// Whether a word is one of the names that tools give their arguments.
pub(crate) fn is_member_name(word: &str) -> bool {
    // Most words are none, which their first letter and their length show.
    let first = word.as_bytes().first().copied().unwrap_or_default();
    word.len() <= LONGEST_MEMBER_NAME
        && first.is_ascii_lowercase()
        && FIRST_LETTERS & 1 << (first - b'a') != 0
        && MEMBER_NAMES.contains(&word)
}

/// The letters with which [`MEMBER_NAMES`] begin, one bit each.
const FIRST_LETTERS: u32 = {
    let (mut letters, mut at) = (0, 0);
    while at < MEMBER_NAMES.len() {
        letters |= 1 << (MEMBER_NAMES[at].as_bytes()[0] - b'a');
        at += 1;
    }
    letters
};
const LONGEST_MEMBER_NAME: usize = {
    let (mut longest, mut at) = (0, 0);
    while at < MEMBER_NAMES.len() {
        if MEMBER_NAMES[at].len() > longest {
            longest = MEMBER_NAMES[at].len();
        }
        at += 1;
    }
    longest
};

/// A command is quoted up to this length in a line.
const MAX_TARGET_CHARS: usize = 160;

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The tool as the agent names it.
    pub tool: String,
    /// What the tool does.
    pub family: ToolFamily,
    /// File, command, query or address; may be empty.
    pub target: String,
    /// Range, folder, replacement size and the like; may be empty.
    pub detail: String,
    /// Further files a patch touches.
    pub more_files: Vec<String>,
    /// What came of it, once the result is there.
    pub outcome: Option<super::result::ActOutcome>,
    /// The message that made the call.
    pub message: u32,
}

impl Act {
    /// Reads a call from its name and arguments (JSON text, or whatever the model wrote).
    #[must_use]
    pub fn read(tool: &str, arguments: &str, message: u32) -> Self {
        let family = ToolFamily::of(tool);
        let mut act = Self {
            tool: tool.to_owned(),
            family,
            target: String::new(),
            detail: String::new(),
            more_files: Vec::new(),
            outcome: None,
            message,
        };
        let members = Members::of(arguments);
        match family {
            ToolFamily::Run => {
                act.target = members.command().or_else(|| members.first_text()).unwrap_or_default();
                if let Some(patch) = embedded_patch(&act.target) {
                    act.take_patch(patch.to_owned());
                }
                act.target = one_line(&act.target, MAX_TARGET_CHARS);
            }
            ToolFamily::Read => {
                act.target = members.text(PATH_KEYS).unwrap_or_default();
                act.detail = members.range();
            }
            ToolFamily::Write => {
                act.target = members.text(PATH_KEYS).unwrap_or_default();
                let lines =
                    members.text(&["content", "contents", "file_text", "text"]).map(|t| t.lines().count());
                act.detail =
                    lines.map(|n| counted(u32::try_from(n).unwrap_or(u32::MAX), "line")).unwrap_or_default();
            }
            ToolFamily::Edit => act.read_edit(&members, arguments),
            ToolFamily::Search => {
                act.target = members.text(QUERY_KEYS).unwrap_or_default();
                let place =
                    members.text(&["path", "directory", "dir", "glob", "include"]).unwrap_or_default();
                if act.target.is_empty() {
                    act.target = place;
                } else {
                    act.detail = place;
                }
                act.target = one_line(&act.target, MAX_TARGET_CHARS);
            }
            ToolFamily::Web => {
                act.target = one_line(&members.text(URL_KEYS).unwrap_or_default(), MAX_TARGET_CHARS)
            }
            ToolFamily::Delegate | ToolFamily::Ask => {
                act.target = one_line(&members.text(TASK_KEYS).unwrap_or_default(), MAX_TARGET_CHARS);
            }
            ToolFamily::Plan => act.detail = members.count_items(),
            ToolFamily::Other => act.detail = members.first_pairs(),
        }
        act
    }

    fn read_edit(&mut self, members: &Members<'_>, arguments: &str) {
        let patch = members
            .text(&["patch", "input", "diff"])
            .or_else(|| arguments.contains("*** Begin Patch").then(|| arguments.to_owned()));
        self.target = members.text(PATH_KEYS).unwrap_or_default();
        if let Some(patch) = patch.filter(|text| text.contains("***") || text.contains("@@")) {
            self.take_patch(patch);
            return;
        }
        let lines = |keys: &[&str]| members.text(keys).map_or(0, |text| text.lines().count());
        let removed = lines(&["old_string", "old_str", "old_text", "search"]);
        let added = lines(&["new_string", "new_str", "new_text", "replace", "new_source", "content"]);
        if removed + added > 0 {
            self.detail = format!("+{added} -{removed} lines");
        } else if let Some(edits) = members.get("edits") {
            self.detail = format!("{} edits", edits.elements().count());
        }
    }

    /// Takes files and line counts from a patch text.
    fn take_patch(&mut self, patch: String) {
        let mut files = Vec::new();
        let (mut added, mut removed) = (0, 0);
        for line in patch.lines() {
            let named = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/", "+++ "]
                .iter()
                .find_map(|mark| line.strip_prefix(mark));
            if let Some(file) = named.filter(|file| *file != "/dev/null") {
                files.push(file.trim().to_owned());
            } else if line.starts_with('+') && !line.starts_with("+++") {
                added += 1;
            } else if line.starts_with('-') && !line.starts_with("---") {
                removed += 1;
            }
        }
        files.dedup();
        if files.is_empty() {
            return;
        }
        self.family = ToolFamily::Edit;
        self.target = files.remove(0);
        self.more_files = files;
        self.detail = format!("+{added} -{removed} lines");
    }

    /// Whether it was refused or failed, as far as its answer tells.
    #[must_use]
    pub fn came_to_nothing(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| !outcome.shows_no_failure())
    }

    /// Files this call changes, when it is one that changes files.
    pub fn changed_files(&self) -> impl Iterator<Item = &str> {
        let changes = matches!(self.family, ToolFamily::Write | ToolFamily::Edit) && !self.target.is_empty();
        changes.then_some(self.target.as_str()).into_iter().chain(self.more_files.iter().map(String::as_str))
    }
}

/// A patch given to a shell (`apply_patch <<'EOF' ...`), as Codex does.
fn embedded_patch(command: &str) -> Option<&str> {
    command.find("*** Begin Patch").and_then(|at| command.get(at..))
}

/// Arguments as members; text that is not an object has none.
struct Members<'a> {
    list: Vec<(Cow<'a, str>, RawJson<'a>)>,
    whole: &'a str,
}

impl<'a> Members<'a> {
    fn of(arguments: &'a str) -> Self {
        Self { list: RawJson(arguments).members().collect(), whole: arguments }
    }

    fn get(&self, name: &str) -> Option<RawJson<'a>> {
        self.list.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The first of `keys` that holds text; of a list, its first element and how many more there are.
    fn text(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| {
            let value = self.get(key)?;
            if let Some(text) = value.as_text() {
                return (!text.is_empty()).then(|| text.into_owned());
            }
            let mut elements = value.elements();
            let first = elements.next()?;
            let first = first.as_text().or_else(|| {
                ["url", "path", "question"].iter().find_map(|key| first.get(key)).and_then(RawJson::as_text)
            })?;
            let more = elements.count();
            Some(if more > 0 { format!("{first} (+{more} more)") } else { first.into_owned() })
        })
    }

    /// A command: a text, or the words of a list (`["bash", "-lc", "make"]` is `make`).
    fn command(&self) -> Option<String> {
        COMMAND_KEYS.iter().find_map(|key| {
            let value = self.get(key)?;
            if let Some(text) = value.as_text() {
                return Some(text.into_owned());
            }
            let words: Vec<_> = value.elements().filter_map(RawJson::as_text).collect();
            let plain = match words.as_slice() {
                [shell, flag, rest @ ..] if shell.ends_with("sh") && flag.starts_with('-') => rest,
                all => all,
            };
            (!plain.is_empty()).then(|| plain.join(" "))
        })
    }

    fn first_text(&self) -> Option<String> {
        if self.list.is_empty() && !self.whole.trim().is_empty() {
            return Some(self.whole.trim().to_owned());
        }
        self.list.iter().find_map(|(_, value)| value.as_text().map(Cow::into_owned))
    }

    /// `lines 10-60` from an offset and a limit, however they are called.
    fn range(&self) -> String {
        let number = |keys: &[&str]| {
            keys.iter().find_map(|key| {
                let raw = self.get(key)?;
                raw.0.trim_matches('"').parse::<u64>().ok()
            })
        };
        let start = number(&["offset", "start_line", "line_start", "start", "view_start"]);
        let limit = number(&["limit", "num_lines", "max_lines"]);
        let end = number(&["end_line", "line_end", "end"]).or_else(|| {
            // Counted from one: a hundred lines from line 101 end with line 200.
            Some(start.unwrap_or(1).max(1).saturating_add(limit?).saturating_sub(1))
        });
        match (start, end) {
            (Some(start), Some(end)) => format!("lines {start}-{end}"),
            (Some(start), None) => format!("from line {start}"),
            (None, Some(end)) => format!("lines 1-{end}"),
            (None, None) => String::new(),
        }
    }

    fn count_items(&self) -> String {
        let items = ["todos", "plan", "items", "tasks"].iter().find_map(|key| self.get(key));
        let count = items.map(|list| u32::try_from(list.elements().count()).unwrap_or(u32::MAX));
        count.map(|count| counted(count, "item")).unwrap_or_default()
    }

    fn first_pairs(&self) -> String {
        let pairs = self.list.iter().take(2).map(|(key, value)| {
            let text = value.as_text().unwrap_or(Cow::Borrowed(value.0));
            format!("{key}={}", one_line(&text, 40))
        });
        pairs.collect::<Vec<_>>().join(", ")
    }
}
