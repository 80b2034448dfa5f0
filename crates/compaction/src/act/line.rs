//! One informative line for a call and its result, which replaces an old tool result.

use super::call::Act;
use super::family::ToolFamily;
use super::result::ActOutcome;
use super::status::CallStatus;
use super::text::{counted, thousands};

/// What stands in for a result about which nothing better is known.
pub(crate) const CLEARED: &str = "[Old tool output cleared to save context space]";

impl Act {
    /// `[terminal] ran cargo test -> exit 1, 3000 lines` and alike for every family.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("[{}] {}", self.tool, self.phrase());
        if let Some(outcome) = &self.outcome {
            let result = self.outcome_words(outcome);
            if !result.is_empty() {
                line.push_str(" -> ");
                line.push_str(&result);
            }
        }
        line
    }

    /// What was done, without the tool's name.
    #[must_use]
    pub fn phrase(&self) -> String {
        let verb = match self.family {
            ToolFamily::Run => "ran",
            ToolFamily::Read => "read",
            ToolFamily::Write => "wrote",
            ToolFamily::Edit => "edited",
            ToolFamily::Search => "searched",
            ToolFamily::Web => "fetched",
            ToolFamily::Delegate => "delegated",
            ToolFamily::Plan => "updated the plan",
            ToolFamily::Ask => "asked",
            ToolFamily::Other => "called",
        };
        let mut phrase = verb.to_owned();
        match self.family {
            ToolFamily::Search if !self.target.is_empty() => {
                phrase.push_str(&format!(" {:?}", self.target));
                if !self.detail.is_empty() {
                    phrase.push_str(&format!(" in {}", self.detail));
                }
                return phrase;
            }
            ToolFamily::Run if !self.target.is_empty() => {
                phrase.push_str(&format!(" `{}`", self.target));
                return phrase;
            }
            _ => {}
        }
        for piece in [&self.target, &self.detail] {
            if !piece.is_empty() {
                let parenthesised = std::ptr::eq(piece, &self.detail) && !self.target.is_empty();
                phrase.push_str(&if parenthesised { format!(" ({piece})") } else { format!(" {piece}") });
            }
        }
        if !self.more_files.is_empty() {
            phrase.push_str(&format!(" and {}", self.more_files.join(", ")));
        }
        phrase
    }

    /// How it ended, in a few words.
    #[must_use]
    pub fn outcome_words(&self, outcome: &ActOutcome) -> String {
        let mut words = Vec::new();
        match (self.family, outcome.exit) {
            _ if outcome.not_run => return "not run".to_owned(),
            (_, Some(code)) => {
                // Zero is the status of the last command of a line; the output may say more.
                let words_before = match outcome.status {
                    CallStatus::Failed if code == 0 => "failed, ",
                    CallStatus::Unknown => "unknown, ",
                    CallStatus::Ok | CallStatus::Failed => "",
                };
                words.push(format!("{words_before}exit {code}"));
            }
            (_, None) if outcome.failed() => words.push("failed".to_owned()),
            (ToolFamily::Run, None) if outcome.status == CallStatus::Ok => words.push("ok".to_owned()),
            (ToolFamily::Run, None) => words.push("unknown".to_owned()),
            _ => {}
        }
        match self.family {
            ToolFamily::Write | ToolFamily::Edit | ToolFamily::Plan if !outcome.failed() => {}
            ToolFamily::Search => words.push(match outcome.hits {
                Some(1) => "1 match".to_owned(),
                Some(hits) => format!("{} matches", thousands(u64::from(hits))),
                None => counted(outcome.lines, "line"),
            }),
            ToolFamily::Run => words.push(counted(outcome.lines, "line")),
            _ => words.push(counted(outcome.chars, "char")),
        }
        words.join(", ")
    }
}
