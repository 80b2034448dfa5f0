//! The kinds of danger, with their descriptions for users, and the kinds of paths a command may touch.

/// The reason why a command is dangerous, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    /// It contains characters that are invisible or change the display of others.
    Hidden,
    /// It runs code from the network.
    RunsFetched,
    /// It starts processes without limit.
    Floods,
    /// It acts as another user or changes permissions of the system.
    Privilege,
    /// It writes to devices or file systems.
    Device,
    /// It deletes files.
    Deletes,
    /// It deletes data or machines elsewhere.
    LosesData,
    /// It discards uncommitted work, or history that others use.
    LosesHistory,
    /// It replaces the contents of a file.
    Replaces,
    /// It sends files or secrets away, or acts on another machine.
    Sends,
    /// It publishes something.
    Publishes,
    /// It shows keys or passwords.
    ShowsSecrets,
    /// It changes what is run later.
    RunsLater,
    /// It stops the machine or processes.
    Stops,
    /// It cannot be parsed, or runs code that is composed at run time.
    Unclear,
}

impl Danger {
    /// A description that follows "this".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Hidden => {
                "contains characters that are invisible or change how text looks (written out above)"
            }
            Self::RunsFetched => "runs what it fetches from the network",
            Self::Floods => "starts processes without limit",
            Self::Privilege => "runs with other permissions than yours, or changes permissions",
            Self::Device => "writes to a device or a filesystem",
            Self::Deletes => "deletes files for good",
            Self::LosesData => "deletes data, containers or machines for good",
            Self::LosesHistory => "discards work or history in git",
            Self::Replaces => "replaces the contents of a file",
            Self::Sends => "may send files or keys away, or act on another machine",
            Self::Publishes => "publishes something under your name",
            Self::ShowsSecrets => "shows keys or passwords to the model",
            Self::RunsLater => "changes what git or the system runs later",
            Self::Stops => "stops the machine or processes",
            Self::Unclear => "cannot be analysed: it may do more than can be seen here",
        }
    }
}

/// The kind of file at a path that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Nothing, or a file without content.
    Nothing,
    /// A file with content.
    File,
    /// A folder.
    Folder,
}
