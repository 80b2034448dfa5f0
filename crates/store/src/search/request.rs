//! Search requests and their results.

use throughline_search::meaning::MeaningReport;
use throughline_search::{MatchedWords, SearchMode, Snippet};
use throughline_transcript::Role;

use crate::artifacts::artifact::ArtifactId;
use crate::ids::{Millis, SessionId};

/// A search request. Any text is valid.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// The query text.
    pub text: String,
    /// How the words of the query are matched.
    pub mode: SearchMode,
    /// Only the conversation of this session.
    pub session: Option<SessionId>,
    /// Only messages of this role. Tool results count as the tool's, even if a wire format sends them with the user's role.
    pub role: Option<Role>,
    /// Only messages that call this tool or contain its results.
    pub tool: Option<String>,
    /// Only conversations of this project: its folder, or the last parts of its path.
    pub project: Option<String>,
    /// Only messages that name this file, by its path or the last parts of it.
    pub file: Option<String>,
    /// Only messages at or after this time.
    pub since_ms: Option<Millis>,
    /// Only messages before this time.
    pub until_ms: Option<Millis>,
    /// The maximum number of hits; 0 means 20.
    pub limit: usize,
    /// Number of messages to show before and after a hit.
    pub neighbours: usize,
    /// Search by words alone, without passages that have the same meaning in other words.
    pub words_only: bool,
}

/// The default limit of hits.
const DEFAULT_LIMIT: usize = 20;

impl SearchQuery {
    /// Whether a message matches the filters that concern it alone. The names of tools are compared ignoring case.
    pub(crate) fn admits(&self, role: Role, tools: &[String], at_ms: Millis) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.since_ms.is_none_or(|since| at_ms >= since)
            && self.until_ms.is_none_or(|until| at_ms < until)
            && self.tool.as_ref().is_none_or(|wanted| {
                let wanted = wanted.to_lowercase();
                tools.iter().any(|tool| tool.to_lowercase() == wanted)
            })
    }

    /// Whether a project matches the filter.
    pub(crate) fn admits_project(&self, project: Option<&str>) -> bool {
        self.project.as_deref().is_none_or(|wanted| {
            let wanted = wanted.trim_end_matches('/');
            project.is_some_and(|project| {
                project == wanted || project.strip_suffix(wanted).is_some_and(|before| before.ends_with('/'))
            })
        })
    }

    /// Whether a text matches the filter of files.
    pub(crate) fn admits_text(&self, text: &str) -> bool {
        self.file.as_deref().is_none_or(|file| text.contains(file))
    }

    /// Whether messages of any kind and time match.
    pub(crate) fn has_no_filters(&self) -> bool {
        self.role.is_none()
            && self.tool.is_none()
            && self.file.is_none()
            && self.since_ms.is_none()
            && self.until_ms.is_none()
    }

    /// Returns the maximum number of hits.
    pub(crate) fn limit(&self) -> usize {
        if self.limit == 0 { DEFAULT_LIMIT } else { self.limit }
    }
}

/// A message next to a hit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Neighbour {
    /// Its position in the conversation.
    pub seq: u64,
    /// The author.
    pub role: &'static str,
    /// Its beginning, on one line.
    pub text: String,
}

/// The location of a hit in an artifact.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ArtifactLocation {
    /// The artifact.
    pub id: ArtifactId,
    /// The line of the hit, counted from one.
    pub line: u64,
}

/// A search result.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Hit {
    /// The session the message was appended to.
    pub session: SessionId,
    /// Title of its conversation.
    pub title: Option<String>,
    /// Its position in the conversation.
    pub seq: u64,
    /// The number of the message.
    pub message: u64,
    /// The author.
    pub role: &'static str,
    /// The tools that it calls or whose results it has.
    pub tools: Vec<String>,
    /// Its time.
    pub at_ms: Millis,
    /// The score; larger is better.
    pub score: f64,
    /// How many words of the question it has; `None` for a substring.
    pub matched: Option<MatchedWords>,
    /// The similarity of its meaning to the question's, if compared: 1 is equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// The passage.
    pub snippet: Snippet,
    /// The artifact, if the words are in one.
    pub artifact: Option<ArtifactLocation>,
    /// Number of other messages with the same content that were left out.
    pub repeats: u64,
    /// The messages before it.
    pub before: Vec<Neighbour>,
    /// The messages after it.
    pub after: Vec<Neighbour>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct SearchAnswer {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// Set if there were more matches than were examined: the number of newest ones that were ranked.
    pub ranked_newest: Option<u64>,
    /// Whether no words matched, so that the hits contain the query as a substring.
    pub as_substring: bool,
    /// The contribution of vectors; `None` if none are configured or the query needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<MeaningReport>,
    /// Messages in the scope that cannot be read or are not indexed: at most twenty of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<UnseenMessage>,
}

/// A message that a search cannot read; `throughline doctor` describes the problem.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UnseenMessage {
    /// The session it was appended to.
    pub session: SessionId,
    /// Its position in the conversation.
    pub seq: u64,
}
