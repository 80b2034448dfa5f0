//! What a command line shows of itself: whether it only looks at files, logs, lists or states, and whether its status is
//! that of what it runs.

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

/// Whether the status of a command line says nothing of what it runs: that of a line is the status of its last pipeline,
/// that of a pipeline the status of its last command, and `|| true` turns every status into zero. `pipefail` and
/// `PIPESTATUS` bring the status back.
pub(super) fn hides_status(command: &str) -> bool {
    if !command.contains('|') || command.contains("pipefail") || command.contains("PIPESTATUS") {
        return false;
    }
    let command = command.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    let (mut quote, mut previous, mut is_piped) = (None, b' ', false);
    let mut bytes = command.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        let after = command.get(at + 1..).unwrap_or_default();
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None | Some(b'"'), b'\\') => {
                bytes.next();
            }
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'|') if after.starts_with('|') => {
                if is_always_zero(after.trim_start_matches('|').trim_start()) {
                    return true;
                }
                is_piped = false;
                bytes.next();
            }
            // `>|` writes over a file.
            (None, b'|') if previous != b'>' => is_piped = true,
            // A new pipeline; `2>&1` and `|&` are part of one.
            (None, b';' | b'\n') => is_piped = false,
            (None, b'&') if after.starts_with('&') => is_piped = false,
            _ => {}
        }
        previous = byte;
    }
    is_piped
}

/// Whether a command does nothing and succeeds.
fn is_always_zero(command: &str) -> bool {
    matches!(
        command.split(|c: char| c.is_whitespace() || matches!(c, ';' | ')' | '&')).next(),
        Some("true" | ":")
    )
}
