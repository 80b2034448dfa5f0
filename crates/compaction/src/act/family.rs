//! Families of tools by what they do, under whatever name an agent has them.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolFamily {
    /// Runs a command or code.
    Run,
    /// Reads a file or picture.
    Read,
    /// Writes a whole file.
    Write,
    /// Changes part of a file.
    Edit,
    /// Looks for names or content.
    Search,
    /// Fetches from or searches the web, or drives a browser.
    Web,
    /// Hands work to another agent.
    Delegate,
    /// Keeps a list of things to do.
    Plan,
    /// Asks the person.
    Ask,
    /// Anything else.
    Other,
}

/// Names used by Hermes, Claude Code, Codex, opencode, aider-like editors and common MCP servers, in lower case without
/// separators, so that `read_file`, `ReadFile` and `read-file` are one.
const NAMES: &[(ToolFamily, &[&str])] = &[
    (
        ToolFamily::Run,
        &[
            "terminal",
            "bash",
            "shell",
            "execcommand",
            "localshell",
            "localshellcall",
            "runcommand",
            "executecommand",
            "executecode",
            "runshellcommand",
            "containerexec",
            "process",
            "bashoutput",
            "writestdin",
            "execute",
            "python",
            "runterminalcmd",
            "powershell",
            "shellcall",
            "sh",
            "runtests",
        ],
    ),
    (
        ToolFamily::Read,
        &[
            "readfile",
            "read",
            "view",
            "viewfile",
            "cat",
            "notebookread",
            "openfile",
            "open",
            "viewimage",
            "readtextfile",
            "readmanyfiles",
            "readmultiplefiles",
            "getfilecontents",
        ],
    ),
    (ToolFamily::Write, &["writefile", "write", "createfile", "create", "savefile", "writetofile"]),
    (
        ToolFamily::Edit,
        &[
            "patch",
            "edit",
            "multiedit",
            "notebookedit",
            "applypatch",
            "strreplace",
            "strreplaceeditor",
            "editfile",
            "updatefile",
            "replace",
            "replaceinfile",
            "insert",
            "searchreplace",
            "applydiff",
            "strreplacebasededittool",
            "applypatchcall",
        ],
    ),
    (
        ToolFamily::Search,
        &[
            "searchfiles",
            "grep",
            "glob",
            "find",
            "ls",
            "listdir",
            "listdirectory",
            "listfiles",
            "rg",
            "ripgrep",
            "codebasesearch",
            "search",
            "findfiles",
            "filesearch",
            "grepsearch",
            "searchdir",
            "searchfile",
            "findfile",
            "toolsearch",
        ],
    ),
    (
        ToolFamily::Web,
        &[
            "websearch",
            "webfetch",
            "webextract",
            "fetch",
            "fetchurl",
            "browse",
            "httprequest",
            "websearchcall",
        ],
    ),
    (ToolFamily::Delegate, &["task", "agent", "delegatetask", "dispatchagent", "spawnagent", "taskoutput"]),
    (
        ToolFamily::Plan,
        &[
            "todowrite",
            "todo",
            "updateplan",
            "todoread",
            "taskcreate",
            "taskupdate",
            "tasklist",
            "enterplanmode",
            "exitplanmode",
        ],
    ),
    (ToolFamily::Ask, &["askuserquestion", "clarify", "askuser", "requestuserinput", "askfollowupquestion"]),
];

static BY_NAME: LazyLock<FxHashMap<&'static str, ToolFamily>> = LazyLock::new(|| {
    NAMES.iter().flat_map(|(family, names)| names.iter().map(|name| (*name, *family))).collect()
});

impl ToolFamily {
    /// The family of a tool by its name.
    #[must_use]
    pub fn of(tool: &str) -> Self {
        // MCP tools are named `mcp__server__tool`; the last piece says what it does.
        let own_name = tool.rsplit("__").next().unwrap_or(tool);
        let key: String =
            own_name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        if key.starts_with("browser") {
            return Self::Web;
        }
        BY_NAME.get(key.as_str()).copied().unwrap_or(Self::Other)
    }
}
