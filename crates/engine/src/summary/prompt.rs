//! The instructions of a summary request, composed from the files in `prompts/`.
//!
//! Not for: which model is called, what is quoted, or parsing the answer.

use throughline_compaction::{Detail, Reach, Section, SummaryKind};

use super::quote_mark::QuoteMark;

const APART: &str = include_str!("prompts/apart.md");
const RIDING: &str = include_str!("prompts/riding.md");
const RULES: &str = include_str!("prompts/rules.md");
const SECTIONS: &str = include_str!("prompts/sections.md");
const UPDATE: &str = include_str!("prompts/update.md");
const FOCUS: &str = include_str!("prompts/focus.md");
const MEMORY: &str = include_str!("prompts/memory.md");
const NEXT: &str = include_str!("prompts/next.md");
const NOW: &str = include_str!("prompts/now.md");
const AGAIN: &str = include_str!("prompts/again.md");
const MINUTES: &str = include_str!("prompts/minutes.md");
const HOURS: &str = include_str!("prompts/hours.md");
const DAYS: &str = include_str!("prompts/days.md");
const SMALL: &str = include_str!("prompts/small.md");
const TERSE: &str = include_str!("prompts/terse.md");

/// Words per token, in hundredths. A rough figure, because languages differ.
const WORDS_PERCENT: u64 = 60;

/// The parameters of a summary request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummaryBrief<'a> {
    /// The mark of our own lines.
    pub(crate) mark: &'a QuoteMark,
    /// The token budget of the notes.
    pub(crate) budget_tokens: u64,
    /// The date, as year-month-day.
    pub(crate) today: &'a str,
    /// The subject that the notes should focus on.
    pub(crate) focus: Option<&'a str>,
    /// The kind of notes.
    pub(crate) manner: SummaryKind,
    /// What a memory plugin contributes.
    pub(crate) memory: Option<&'a str>,
    /// Why an earlier answer could not be used.
    pub(crate) problem: Option<&'a str>,
}

impl SummaryBrief<'_> {
    /// Returns the system prompt of a standalone request.
    pub(crate) fn apart_system(&self) -> String {
        let intro = APART.trim_end().replace("{mark}", &self.mark.to_string());
        format!("{intro}\n\n{}", self.how())
    }

    /// Returns the system prompt for a small model, which writes one section at a time.
    pub(crate) fn small_system(&self) -> String {
        SMALL.trim_end().replace("{mark}", &self.mark.to_string())
    }

    /// Returns the prompt for a small model: the quoted messages and one section. Only the end differs between sections, so that the server
    /// processes the messages once.
    pub(crate) fn small_request(&self, transcript: &str, section: Section) -> String {
        let mut parts = vec![self.mark.quote("messages", transcript)];
        if let Some(focus) = self.focus {
            parts.push(FOCUS.trim_end().replace("{mark}", &self.mark.to_string()));
            parts.push(self.mark.quote("focus", focus));
        }
        let words = self.budget_tokens.saturating_mul(WORDS_PERCENT) / 100;
        let wanted = small_guidance(section);
        parts.push(format!("{wanted} At most {words} words."));
        parts.join("\n\n")
    }

    /// Returns the prompt with the quoted messages and the request. `next` is the user's message after the quoted part.
    pub(crate) fn apart_request(
        &self,
        earlier: Option<&str>,
        transcript: &str,
        next: Option<&str>,
    ) -> String {
        let mut parts = Vec::new();
        if let Some(earlier) = earlier {
            parts.push(self.quoted_notes(earlier));
        }
        self.memory_and(&mut parts);
        parts.push(self.mark.quote("messages", transcript));
        if let Some(next) = next {
            parts.push(NEXT.trim_end().to_owned());
            parts.push(self.mark.quote("what comes next", next));
        }
        self.focus_and_request(&mut parts);
        parts.join("\n\n")
    }

    /// Returns the message that is appended to the conversation for its own model.
    pub(crate) fn riding_request(&self, kept: usize, first_kept: &str, has_notes: HasNotes) -> String {
        let (kept, first_kept) = match kept {
            0 => ("Messages that are still to come will stay".to_owned(), "the next one"),
            1 => ("The newest message stays".to_owned(), first_kept),
            kept => (format!("The newest {kept} messages stay"), first_kept),
        };
        let intro = RIDING.trim_end().replace("{kept}", &kept).replace("{first_kept}", first_kept);
        let mut parts = vec![intro, self.how()];
        if has_notes == HasNotes::Yes {
            parts.push(update(
                " near the top of this conversation, in the message that begins with [CONTEXT COMPACTION",
            ));
        }
        self.memory_and(&mut parts);
        self.focus_and_request(&mut parts);
        parts.join("\n\n")
    }

    /// Quotes the notes that are to be updated.
    pub(crate) fn quoted_notes(&self, earlier: &str) -> String {
        let update = update(", between the next two lines with the mark");
        format!("{update}\n\n{}", self.mark.quote("notes so far", earlier))
    }

    fn how(&self) -> String {
        let rules = RULES
            .trim_end()
            .replace("{today}", self.today)
            .replace("{budget}", &self.budget_tokens.to_string())
            .replace("{words}", &(self.budget_tokens.saturating_mul(WORDS_PERCENT) / 100).to_string());
        let mut parts = vec![rules];
        parts.extend(manner_words(self.manner).map(str::to_owned));
        parts.push(format!("The sections:\n\n{}", SECTIONS.trim_end()));
        parts.join("\n\n")
    }

    fn memory_and(&self, parts: &mut Vec<String>) {
        if let Some(memory) = self.memory {
            parts.push(MEMORY.trim_end().replace("{mark}", &self.mark.to_string()));
            parts.push(self.mark.quote("memory", memory));
        }
    }

    /// Adds the focus and the request, which models weigh most at the end.
    fn focus_and_request(&self, parts: &mut Vec<String>) {
        if let Some(focus) = self.focus {
            parts.push(FOCUS.trim_end().replace("{mark}", &self.mark.to_string()));
            parts.push(self.mark.quote("focus", focus));
        }
        match self.problem {
            Some(problem) => parts.push(AGAIN.trim_end().replace("{problem}", problem)),
            None => parts.push(NOW.trim_end().to_owned()),
        }
    }
}

/// The part of the prompt about the kind of notes.
fn manner_words(manner: SummaryKind) -> impl Iterator<Item = &'static str> {
    let reach = match manner.reach {
        Reach::Everything => None,
        Reach::Minutes => Some(MINUTES),
        Reach::Hours => Some(HOURS),
        Reach::Days => Some(DAYS),
    };
    let detail = match manner.detail {
        Detail::Detailed => None,
        Detail::Terse => Some(TERSE),
    };
    reach.into_iter().chain(detail).map(str::trim_end)
}

/// Whether a conversation contains notes of an earlier compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HasNotes {
    /// It does.
    Yes,
    /// It does not.
    No,
}

fn update(place: &str) -> String {
    UPDATE.trim_end().replace("{where}", place)
}

/// Returns the instructions for a section for a small model.
fn small_guidance(section: Section) -> &'static str {
    match section {
        Section::Goal => "Write what the person wants to achieve.",
        Section::CompletedActions => {
            "Write what was done and found, oldest first: for each request the result, not the steps."
        }
        Section::KeyDecisions => "Write what was decided, each with its reason.",
        Section::InProgress => "Write the next step: which file, function or command, and what to change.",
        other => guidance(other),
    }
}

/// Returns the prompt's description of a section: an answer that only repeats it is empty.
pub(crate) fn guidance(section: Section) -> &'static str {
    let heading = section.heading();
    let after = SECTIONS
        .split("## ")
        .find_map(|part| part.strip_prefix(heading)?.strip_prefix('\n'))
        .unwrap_or_default();
    after.trim().trim_start_matches("1. ")
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
