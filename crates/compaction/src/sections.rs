//! The thirteen sections of a summary.

/// A section, in the order of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Section {
    /// The latest request that is not fulfilled yet, word for word.
    ActiveTask,
    /// The user's overall goal.
    Goal,
    /// Rules and corrections from the user.
    Constraints,
    /// Numbered: tool, target, outcome.
    CompletedActions,
    /// The current state: working folder, changed files, state of tests.
    ActiveState,
    /// Work in progress.
    InProgress,
    /// Obstacles, with errors word for word.
    Blocked,
    /// Decisions and their reasons.
    KeyDecisions,
    /// Questions that were answered, with the answers.
    ResolvedQuestions,
    /// Open requests.
    PendingAsks,
    /// Files read and changed, with the changes and their contents.
    RelevantFiles,
    /// Remaining work.
    RemainingWork,
    /// Exact values that must be retained.
    CriticalContext,
}

impl Section {
    /// All of them, in order.
    pub const ALL: [Self; 13] = [
        Self::ActiveTask,
        Self::Goal,
        Self::Constraints,
        Self::CompletedActions,
        Self::ActiveState,
        Self::InProgress,
        Self::Blocked,
        Self::KeyDecisions,
        Self::ResolvedQuestions,
        Self::PendingAsks,
        Self::RelevantFiles,
        Self::RemainingWork,
        Self::CriticalContext,
    ];

    /// The heading.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::ActiveTask => "Active Task",
            Self::Goal => "Goal",
            Self::Constraints => "Constraints & Preferences",
            Self::CompletedActions => "Completed Actions",
            Self::ActiveState => "Active State",
            Self::InProgress => "In Progress",
            Self::Blocked => "Blocked",
            Self::KeyDecisions => "Key Decisions",
            Self::ResolvedQuestions => "Resolved Questions",
            Self::PendingAsks => "Pending User Asks",
            Self::RelevantFiles => "Relevant Files",
            Self::RemainingWork => "Remaining Work",
            Self::CriticalContext => "Critical Context",
        }
    }

    /// Parses a heading, our own or an equivalent one of another summariser.
    #[must_use]
    pub fn parse(heading: &str) -> Option<Self> {
        let letters: String =
            heading.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
        let key = letters.strip_prefix("historical").unwrap_or(&letters);
        let found = match key {
            "activetask" | "tasksnapshot" | "currenttask" | "currentwork" => Self::ActiveTask,
            "goal" | "goals" | "primaryrequestandintent" | "objective" => Self::Goal,
            "constraintspreferences" | "constraintsandpreferences" | "constraints" | "preferences" => {
                Self::Constraints
            }
            "completedactions" | "completed" | "done" => Self::CompletedActions,
            "activestate" | "currentstate" | "state" => Self::ActiveState,
            "inprogress" | "inprogressstate" => Self::InProgress,
            "blocked" | "blockers" | "errorsandfixes" | "errors" => Self::Blocked,
            "keydecisions" | "decisions" | "keytechnicalconcepts" => Self::KeyDecisions,
            "resolvedquestions" | "problemsolving" => Self::ResolvedQuestions,
            "pendinguserasks" | "pendingasks" | "pendingtasks" | "openquestions" => Self::PendingAsks,
            "relevantfiles" | "files" | "filesandcodesections" => Self::RelevantFiles,
            "remainingwork" | "nextsteps" | "optionalnextstep" | "todo" => Self::RemainingWork,
            "criticalcontext" | "context" => Self::CriticalContext,
            _ => return None,
        };
        Some(found)
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
