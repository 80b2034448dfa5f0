//! The kinds of danger, with their descriptions for users, and the kinds of paths a command may touch.

/// Why a command is dangerous, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    /// Has characters that are invisible or change how others are displayed.
    Hidden,
    /// Runs something fetched from the network.
    RunsFetched,
    /// Starts processes without end.
    Floods,
    /// Acts as another user or changes permissions of the system.
    Privilege,
    /// Writes to devices or filesystems.
    Device,
    /// Deletes files.
    Deletes,
    /// Deletes data or machines that are not files here.
    LosesData,
    /// Discards uncommitted work, or history that others have.
    LosesHistory,
    /// Replaces the contents of a file.
    Replaces,
    /// Sends files or secrets away, or acts on another machine.
    Sends,
    /// Gives something to the public.
    Publishes,
    /// Shows keys or passwords.
    ShowsSecrets,
    /// Changes what is run later on.
    RunsLater,
    /// Stops the machine or processes.
    Stops,
    /// Cannot be read, or runs something that is only made while it runs.
    Unclear,
}

impl Danger {
    /// A description that follows "this".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Hidden => {
                "holds characters that are invisible or change how text looks (written out above)"
            }
            Self::RunsFetched => "runs what it fetches from the network",
            Self::Floods => "starts processes without end",
            Self::Privilege => "acts with other rights than yours, or changes rights",
            Self::Device => "writes to a device or a filesystem",
            Self::Deletes => "deletes files for good",
            Self::LosesData => "deletes data, containers or machines for good",
            Self::LosesHistory => "throws away work or history in git",
            Self::Replaces => "replaces what a file holds",
            Self::Sends => "may send files or keys away, or act on another machine",
            Self::Publishes => "publishes something under your name",
            Self::ShowsSecrets => "shows keys or passwords to the model",
            Self::RunsLater => "changes what git or the system run later on",
            Self::Stops => "stops the machine or processes",
            Self::Unclear => "cannot be analysed: it may do more than can be seen here",
        }
    }
}

/// What there is at a path that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Nothing, or nothing that could be lost.
    Nothing,
    /// A file with something in it.
    File,
    /// A folder.
    Folder,
}
