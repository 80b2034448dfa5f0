//! Where the person speaks besides their own messages: in refusals of tool calls, in answers to questions, and by commands
//! of the client.

use throughline_transcript::{Message, Part};

/// How a result begins when the person refused the call. Nothing else that a tool prints is the person's.
const REFUSALS: &[&str] = &[
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action",
    "The user denied this operation",
    "User rejected",
    "The tool use was rejected",
];
/// What stands before the person's words in a refusal.
const WORDS_FOLLOW: &[&str] = &["the user said:", "with the following feedback:", "<feedback>"];
/// Words that the client itself puts where the person's would stand.
const WRITTEN_BY_CLIENT: &[&str] = &["The user wants to clarify these questions."];
/// The beginning of a result that is searched for a refusal.
const REFUSAL_BYTES: usize = 700;

/// What the person answered in the result of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// They refused and said why, or what to do instead.
    Words(String),
    /// They refused.
    Silent,
}

/// Reads a refusal; `None` for every other result.
pub(super) fn refusal(result: &str) -> Option<Refusal> {
    let text = result.trim_start();
    if !REFUSALS.iter().any(|opening| text.starts_with(opening)) {
        return None;
    }
    let start = crate::act::slice_start(text, REFUSAL_BYTES).to_ascii_lowercase();
    let words = WORDS_FOLLOW.iter().find_map(|mark| {
        let at = start.find(mark)?;
        text.get(at + mark.len()..)
    });
    let words = words.map(|words| {
        let words = words.split("</feedback>").next().unwrap_or_default();
        // What the client adds behind the person's words.
        words.split("\n\nNote: ").next().unwrap_or_default().trim()
    });
    match words {
        Some(words) if !words.is_empty() && !WRITTEN_BY_CLIENT.iter().any(|own| words.starts_with(own)) => {
            Some(Refusal::Words(words.to_owned()))
        }
        _ => Some(Refusal::Silent),
    }
}

/// The questions and answers in the result of a tool that asks the person.
pub(super) fn answers(question: &str, result: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = result;
    // "Which one?"="The first". Quotes inside either are kept: the pair is split where both quotes meet.
    while let Some(at) = rest.find("\"=\"") {
        let before = rest.get(..at).unwrap_or_default();
        let after = rest.get(at + 3..).unwrap_or_default();
        let asked = before.rsplit_once(": \"").or_else(|| before.rsplit_once(", \"")).map(|(_, asked)| asked);
        let asked = asked.unwrap_or_else(|| before.trim_start_matches('"'));
        let end = after.find("\", \"").or_else(|| after.find("\". ")).or_else(|| after.rfind('"'));
        let end = end.unwrap_or(after.len());
        let choice = after.get(..end).unwrap_or_default();
        pairs.push((asked.trim().to_owned(), choice.trim().to_owned()));
        rest = after.get(end..).unwrap_or_default();
    }
    if pairs.is_empty() && !result.trim().is_empty() && result.len() < 2_000 {
        pairs.push((question.trim().to_owned(), result.trim().to_owned()));
    }
    pairs
}

/// A command of the client in a message (`<command-name>/review</command-name>`), as it stands, with its arguments.
pub(super) fn client_command(message: &Message) -> Option<String> {
    let mut found = None;
    for part in message.parts() {
        let Part::Text(string) = part else { continue };
        let text = message.str(*string);
        let Some(name) = between(&text, "<command-name>", "</command-name>") else { continue };
        let arguments = between(&text, "<command-args>", "</command-args>").unwrap_or_default();
        let mut words = format!("<command-name>{}</command-name>", name.trim());
        if !arguments.trim().is_empty() {
            words.push(' ');
            words.push_str(arguments.trim());
        }
        found = Some(words);
    }
    found
}

/// Whether a message only carries what a command of the client printed.
pub(super) fn is_command_output(message: &Message) -> bool {
    message.text().trim_start().starts_with("<local-command")
}

/// Whether the client notes that the person stopped the agent.
pub(super) fn is_interruption(text: &str) -> bool {
    text.trim_start().starts_with("[Request interrupted by user")
}

/// Whether the client says that a hook kept a prompt from the agent: nobody waits for that.
pub(super) fn is_stopped(words: &str) -> bool {
    words.trim_start().starts_with("Operation stopped by hook")
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}
