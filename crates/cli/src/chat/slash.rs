//! Parses slash commands: names, descriptions, and the nearest name for a typing error.

use crate::ui::text::on_one_line;

/// A slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlashCommand {
    pub(super) name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) what: &'static str,
}

const fn command(name: &'static str, arguments: &'static str, what: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, what }
}

/// All commands, in the order of `/help`.
pub(super) const COMMANDS: [SlashCommand; 21] = [
    command("compress", "[TOPIC | here [N] | --keep N] [--preview]", "compact the older part now"),
    command("undo", "", "go back to what the model saw before the last compaction"),
    command("summary", "", "the summary that the model sees in place of the older part"),
    command("retry", "", "send your last message again if it got no answer"),
    command("context", "", "what fills the window, and how far it is to the next compaction"),
    command("state", "[--open] [--drop ENTRY]", "requests, items, decisions and what became of them"),
    command("usage", "", "tokens, cache and cost of this conversation"),
    command("insights", "[DAYS] [--top N]", "calls, tokens and money by day and model"),
    command("new", "[TITLE]", "start a new conversation"),
    command("resume", "[ID]", "continue another conversation; without an id, list them"),
    command("sessions", "[--all] [--limit N] [--since 7d]", "list recorded conversations"),
    command("search", "WORDS [--limit N] [--since 7d]", "search everything recorded"),
    command("title", "[TITLE]", "name this conversation, or show its name"),
    command("model", "[MODEL [--anyway]]", "switch to another model; without a name, show this one"),
    command("memory", "", "the notes included in every prompt"),
    command("tools", "", "the tools the agent has"),
    command("config", "[KEY]", "settings and where they come from"),
    command("export", "[--force] FILE", "write this conversation to a file"),
    command("status", "", "how full the window is"),
    command("help", "", "this list"),
    command("quit", "", "leave; the conversation is recorded"),
];

/// Aliases of commands, many of them from other agents.
const ALIASES: [(&str, &str); 15] = [
    ("compact", "compress"),
    ("summarize", "compress"),
    ("exit", "quit"),
    ("q", "quit"),
    ("?", "help"),
    ("h", "help"),
    ("clear", "new"),
    ("reset", "new"),
    ("cost", "usage"),
    ("tokens", "context"),
    ("stats", "insights"),
    ("history", "sessions"),
    ("continue", "resume"),
    ("rename", "title"),
    ("models", "model"),
];

/// The aliases of a command for `/help`: with a slash, and without one where none is needed.
pub(super) fn other_names(command: &str) -> Vec<String> {
    let aliases = ALIASES.iter().filter(|(_, known)| *known == command).map(|(alias, _)| format!("/{alias}"));
    let bare = BARE.iter().filter(|(_, known)| *known == command).map(|(word, _)| (*word).to_owned());
    aliases.chain(bare).collect()
}

/// Words that count as a command without a slash, because a user who types only this word wants to leave.
const BARE: [(&str, &str); 3] = [("exit", "quit"), ("quit", "quit"), (":q", "quit")];

/// Commands of other agents that have no counterpart, and what to do instead.
const ELSEWHERE: [(&str, &str); 8] = [
    (
        "init",
        "write an AGENTS.md for this folder, or ask the agent for one; it is read when a conversation starts",
    ),
    (
        "login",
        "keys come from the environment or the settings: `throughline config set model.api_key_env NAME`",
    ),
    ("logout", "keys come from the environment or the settings: /config model shows which"),
    ("permissions", "every change needs your approval; `throughline chat --yolo` skips the questions"),
    ("mcp", "`throughline mcp --show` says how other agents get recall; this one takes no MCP servers"),
    ("agents", "this chat starts no other agents"),
    ("review", "ask for the review in a message"),
    ("doctor", "`throughline doctor` in a shell examines the record"),
];

/// Returns the message for an unknown command.
pub(super) fn unknown_words(name: &str, nearest: Option<&str>) -> String {
    let shown = on_one_line(name);
    let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == name.to_lowercase());
    match (elsewhere, nearest) {
        (Some((_, instead)), _) => format!("there is no command /{shown} here: {instead}"),
        (None, Some(nearest)) => format!("there is no command /{shown}; did you mean /{nearest}?"),
        (None, None) => format!("there is no command /{shown}; /help lists what there is"),
    }
}

/// A parsed input line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParsedLine<'a> {
    /// A message for the model.
    Words(&'a str),
    /// A command and its arguments.
    Command(&'static str, &'a str),
    /// An unknown command.
    Unknown {
        /// The typed name.
        name: &'a str,
        /// The most similar command, if there is one.
        nearest: Option<&'static str>,
    },
}

/// Parses a line. A path at its beginning is not a command.
pub(super) fn read(line: &str) -> ParsedLine<'_> {
    let trimmed = line.trim();
    let Some(rest) = trimmed.strip_prefix('/') else {
        let bare = BARE.iter().find(|(word, _)| word.eq_ignore_ascii_case(trimmed));
        return bare.map_or(ParsedLine::Words(trimmed), |(_, command)| ParsedLine::Command(command, ""));
    };
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.contains('/') || trimmed.contains('\n') && find(name).is_none() {
        return ParsedLine::Words(trimmed);
    }
    match find(&name.to_lowercase()) {
        Some(found) => ParsedLine::Command(found, arguments.trim()),
        None => ParsedLine::Unknown { name, nearest: nearest(&name.to_lowercase()) },
    }
}

fn find(name: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, command)| *command);
    alias.or_else(|| COMMANDS.iter().map(|command| command.name).find(|known| *known == name))
}

/// Returns the most similar command; `None` if none is similar.
fn nearest(name: &str) -> Option<&'static str> {
    let names = COMMANDS.iter().map(|command| command.name);
    let begins = names.clone().find(|known| !name.is_empty() && known.starts_with(name));
    let near = names
        .map(|known| (distance(name, known), known))
        // One edit in a short name, more in a long one: `init` is too far from `quit`. Swapped letters count as two edits.
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance);
    begins.or(near.map(|(_, known)| known))
}

/// The Levenshtein distance of two names.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut before = at;
        let mut left = at + 1;
        for (column, b) in two.iter().enumerate() {
            let above = row.get(column + 1).copied().unwrap_or(usize::MAX - 1);
            let next = (before + usize::from(a != *b)).min(above + 1).min(left + 1);
            if let Some(cell) = row.get_mut(column) {
                *cell = left;
            }
            before = above;
            left = next;
        }
        if let Some(cell) = row.last_mut() {
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The options of `/compress`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CompressOptions {
    /// The topic that gets most of the summary.
    pub(super) focus: Option<String>,
    /// The number of newest exchanges that stay unchanged.
    pub(super) keep_exchanges: Option<usize>,
    /// Whether only the plan is shown.
    pub(super) preview: bool,
}

/// The number of exchanges that `here` keeps by default.
const USUAL_EXCHANGES: usize = 2;
/// The largest accepted number of exchanges.
const MOST_EXCHANGES: usize = 100;

/// Parses the arguments of `/compress`, or returns an error message.
pub(super) fn parse_compress_options(arguments: &str) -> Result<CompressOptions, String> {
    let mut wish = CompressOptions::default();
    let mut words: Vec<&str> = Vec::new();
    let mut rest = arguments.split_whitespace();
    while let Some(word) = rest.next() {
        match word {
            "--preview" | "--dry-run" => wish.preview = true,
            "--keep" | "-k" => wish.keep_exchanges = Some(exchanges(word, rest.next())?),
            _ if word.starts_with("--keep=") => {
                wish.keep_exchanges = Some(exchanges("--keep", word.strip_prefix("--keep="))?);
            }
            _ if word.starts_with("--") => {
                return Err(format!("unknown option {word}: {COMPRESS_FORMS}"));
            }
            _ => words.push(word),
        }
    }
    match words.as_slice() {
        [] => {}
        ["here"] | ["up", "to", "here"] => {
            wish.keep_exchanges = Some(wish.keep_exchanges.unwrap_or(USUAL_EXCHANGES));
        }
        ["here", count] | ["up", "to", "here", count] => {
            wish.keep_exchanges = Some(exchanges("here", Some(count))?);
        }
        topic => wish.focus = Some(topic.join(" ")),
    }
    Ok(wish)
}

const COMPRESS_FORMS: &str = "/compress [TOPIC | here [N] | --keep N] [--preview]";

/// Parses a count of exchanges after a keyword.
fn exchanges(behind: &str, typed: Option<&str>) -> Result<usize, String> {
    let count = typed.and_then(|typed| typed.parse::<usize>().ok());
    count.filter(|count| (1..=MOST_EXCHANGES).contains(count)).ok_or_else(|| {
        let instead = typed.map_or_else(|| "nothing".to_owned(), |typed| format!("`{}`", on_one_line(typed)));
        format!(
            "{behind} takes the number of recent exchanges to keep unchanged, from 1 to {MOST_EXCHANGES}, not {instead}: \
             {COMPRESS_FORMS}"
        )
    })
}

#[cfg(test)]
#[path = "slash_tests.rs"]
mod tests;
