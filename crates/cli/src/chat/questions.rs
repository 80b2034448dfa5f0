//! What a person is asked before a tool does something, and what counts as an answer.

use owo_colors::OwoColorize as _;
use throughline_agent::{Answer, Question};

use super::highlight::difference_line;
use crate::text::{on_one_line, printable, shorten};

/// What a person typed as an answer; Enter alone is no, and whatever is none is asked again.
pub(super) fn answer_of(typed: &str, for_session: bool) -> Option<Answer> {
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Once),
        "s" | "session" if for_session => Some(Answer::Session),
        "" | "n" | "no" => Some(Answer::Deny),
        _ => None,
    }
}

/// What is said to something that is no answer.
pub(super) fn not_an_answer(typed: &str, for_session: bool) -> String {
    let session = if for_session { "s for this session, " } else { "" };
    let typed = shorten(&on_one_line(typed.trim()), 40);
    format!(
        "`{typed}` is no answer, and nothing was done: y allows it this once, {session}n or Enter does not"
    )
}

/// A question as a person reads it: what exactly will happen, and what is dangerous about it.
pub(super) fn question_words(question: &Question) -> String {
    let mut out = format!("{} {}\n", "?".yellow().bold(), printable(&question.title).bold());
    for detail in &question.details {
        for line in printable(detail).lines() {
            out.push_str(&format!("  {}\n", difference_line(line)));
        }
    }
    for danger in &question.dangers {
        out.push_str(&format!("  {} this {}\n", "dangerous:".red().bold(), danger.words()));
    }
    out
}
