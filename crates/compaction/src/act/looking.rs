//! Commands that only show something: files, logs, lists, states.

/// First words of commands that only look.
const LOOKING: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "grep",
    "rg",
    "find",
    "wc",
    "which",
    "pwd",
    "echo",
    "tree",
    "stat",
    "file",
    "du",
    "df",
    "env",
    "ps",
    "pgrep",
    "sed -n",
    "git status",
    "git log",
    "git diff",
    "git show",
    "git branch",
    "git blame",
    "gh pr view",
    "gh pr list",
    "gh api",
    "gh pr diff",
    "jq",
];

/// Whether a command only looks at things: its first word says so, after any change of folder.
pub(crate) fn only_looks(command: &str) -> bool {
    let mut rest = command.trim_start();
    while let Some(after) =
        rest.strip_prefix("cd ").and_then(|tail| tail.split_once("&&")).map(|(_, after)| after)
    {
        rest = after.trim_start();
    }
    let plain = rest
        .strip_prefix("git -C ")
        .and_then(|tail| tail.split_once(' '))
        .map(|(_, after)| format!("git {after}"));
    let rest = plain.as_deref().unwrap_or(rest);
    LOOKING.iter().any(|word| {
        rest.strip_prefix(word).is_some_and(|after| after.is_empty() || after.starts_with([' ', '|']))
    })
}
