//! Search requests and their results.

use throughline_search::meaning::MeaningReport;
use throughline_search::{MatchedWords, SearchMode, Snippet};
use throughline_transcript::Role;

use crate::artifacts::artifact::ArtifactId;
use crate::ids::{Millis, SessionId};

/// A question to the search. Any text is safe.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// What to look for.
    pub text: String,
    /// How the words of the query are matched.
    pub mode: SearchMode,
    /// Only in the conversation this session belongs to.
    pub session: Option<SessionId>,
    /// Only messages of this role. Results of tools are the tool's, also where a wire sends them in the user's name.
    pub role: Option<Role>,
    /// Only messages that call this tool or hold its results.
    pub tool: Option<String>,
    /// Only conversations of this project: its folder, or the last parts of its path.
    pub project: Option<String>,
    /// Only messages that name this file, by its path or the last parts of it.
    pub file: Option<String>,
    /// Only what was said at or after this time.
    pub since_ms: Option<Millis>,
    /// Only what was said before this time.
    pub until_ms: Option<Millis>,
    /// At most so many hits; 20 when zero.
    pub limit: usize,
    /// How many messages before and after a hit to show.
    pub neighbours: usize,
    /// By words alone, where passages that mean the same in other words would be found too.
    pub words_only: bool,
}

/// Hits when no limit is given.
const DEFAULT_LIMIT: usize = 20;

impl SearchQuery {
    /// Whether a message passes the filters that are about it alone. Case makes no difference to the names of tools.
    pub(crate) fn admits(&self, role: Role, tools: &[String], at_ms: Millis) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.since_ms.is_none_or(|since| at_ms >= since)
            && self.until_ms.is_none_or(|until| at_ms < until)
            && self.tool.as_ref().is_none_or(|wanted| {
                let wanted = wanted.to_lowercase();
                tools.iter().any(|tool| tool.to_lowercase() == wanted)
            })
    }

    /// Whether a project passes the filter.
    pub(crate) fn admits_project(&self, project: Option<&str>) -> bool {
        self.project.as_deref().is_none_or(|wanted| {
            let wanted = wanted.trim_end_matches('/');
            project.is_some_and(|project| {
                project == wanted || project.strip_suffix(wanted).is_some_and(|before| before.ends_with('/'))
            })
        })
    }

    /// Whether a text passes the filter of files.
    pub(crate) fn admits_text(&self, text: &str) -> bool {
        self.file.as_deref().is_none_or(|file| text.contains(file))
    }

    /// Whether it is about messages of any kind and time.
    pub(crate) fn has_no_filters(&self) -> bool {
        self.role.is_none()
            && self.tool.is_none()
            && self.file.is_none()
            && self.since_ms.is_none()
            && self.until_ms.is_none()
    }

    /// How many hits to show.
    pub(crate) fn limit(&self) -> usize {
        if self.limit == 0 { DEFAULT_LIMIT } else { self.limit }
    }
}

/// A message beside a hit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Neighbour {
    /// Its place in the conversation.
    pub seq: u64,
    /// Who speaks.
    pub role: &'static str,
    /// Its beginning, on one line.
    pub text: String,
}

/// Where an artifact was hit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ArtifactLocation {
    /// The artifact.
    pub id: ArtifactId,
    /// The line of the hit, counted from one.
    pub line: u64,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Hit {
    /// The session the message was appended to.
    pub session: SessionId,
    /// Title of its conversation.
    pub title: Option<String>,
    /// Its place in the conversation.
    pub seq: u64,
    /// The number of the message.
    pub message: u64,
    /// Who speaks.
    pub role: &'static str,
    /// Tools it calls or answers for.
    pub tools: Vec<String>,
    /// When it was said.
    pub at_ms: Millis,
    /// How well it fits; larger is better.
    pub score: f64,
    /// How many words of the question it holds; `None` for a substring.
    pub matched: Option<MatchedWords>,
    /// How near its meaning is to the question's, where that was compared: 1 for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// The passage.
    pub snippet: Snippet,
    /// The artifact, if the words stand in one.
    pub artifact: Option<ArtifactLocation>,
    /// Other messages with the very same content that were left out.
    pub repeats: u64,
    /// What was said before it.
    pub before: Vec<Neighbour>,
    /// What was said after it.
    pub after: Vec<Neighbour>,
}

/// What the search answers.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct SearchAnswer {
    /// The best hits first.
    pub hits: Vec<Hit>,
    /// More fits than was looked at: only the newest so many were ranked.
    pub ranked_newest: Option<u64>,
    /// Words did not fit anywhere; these hits hold the question as a substring.
    pub as_substring: bool,
    /// What vectors added; `None` where none are configured or the question needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<MeaningReport>,
    /// Messages that would have been looked at and cannot be read, or are not in the index: at most twenty of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<UnseenMessage>,
}

/// A message that a search cannot see; `throughline doctor` says what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UnseenMessage {
    /// The session it was appended to.
    pub session: SessionId,
    /// Its place in the conversation.
    pub seq: u64,
}
