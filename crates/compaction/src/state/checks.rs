//! What a command checks: tests, builds and linters, and what of the project they cover.

/// Words in a command that say what it checks.
const CHECKS: &[&str] = &[
    "test",
    "tests",
    "build",
    "lint",
    "clippy",
    "check",
    "tsc",
    "pytest",
    "vet",
    "fmt",
    "compile",
    "typecheck",
];

/// What a command checks, if it checks anything.
pub(crate) fn check_of(command: &str) -> Option<&'static str> {
    checks_of(command).next()
}

/// Everything a command checks.
fn checks_of(command: &str) -> impl Iterator<Item = &'static str> {
    // A path in the arguments of git names no check.
    let command =
        if matches!(program_of(command), "git" | "gh") && !command.contains("&&") { "" } else { command };
    let words = command.split(|c: char| !c.is_ascii_alphanumeric());
    let found = words.filter_map(|word| CHECKS.iter().find(|check| **check == word).copied());
    found.map(|word| if word == "tests" || word == "pytest" { "test" } else { word })
}

/// Whether a run of the first command checks what the second one checked: the same kind of check, of everything or of
/// something that both name.
pub(crate) fn share_check(first: &str, second: &str) -> bool {
    let is_same_kind = checks_of(first).any(|check| checks_of(second).any(|other| other == check));
    if !is_same_kind {
        return false;
    }
    let (wide, narrow) = (scope_of(first), scope_of(second));
    let covers = |target: &str| wide.iter().any(|known| is_within(target, known));
    wide.is_empty() || narrow.iter().any(|target| covers(target))
}

/// Whether a target lies within another: `./cmd/app` within `./cmd/...`.
fn is_within(target: &str, whole: &str) -> bool {
    bare(target).starts_with(bare(whole))
}

/// A target without the marks around its path.
fn bare(target: &str) -> &str {
    target.trim_start_matches("./").trim_end_matches("...").trim_end_matches('/')
}

/// What a check is limited to: packages, files and names among its arguments.
fn scope_of(command: &str) -> Vec<&str> {
    let part = command.split("&&").find(|part| checks_of(part).next().is_some()).unwrap_or(command);
    let part = part.split('|').next().unwrap_or(part);
    let mut out: Vec<&str> = Vec::new();
    let mut words = part.split_whitespace().skip(1).peekable();
    while let Some(word) = words.next() {
        let names = ["-run", "-k", "--test", "-p", "--package", "-t", "--grep"].contains(&word);
        if names {
            out.extend(words.next().map(|name| name.trim_matches(['"', '\''])));
        } else if word.contains('/') && !word.contains('>') && !word.starts_with('-') || is_source_file(word)
        {
            out.push(word);
        }
    }
    out
}

fn is_source_file(word: &str) -> bool {
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending.split(':').next().unwrap_or(ending));
    ["rs", "go", "py", "ts", "tsx", "js", "jsx", "java", "rb", "c", "cpp"].contains(&ending)
}

/// The program a command runs, after any change of folder.
pub(super) fn program_of(command: &str) -> &str {
    let last = command
        .split("&&")
        .map(str::trim)
        .find(|part| !part.starts_with("cd ") && !part.starts_with("export "));
    last.unwrap_or(command).split_whitespace().next().unwrap_or_default()
}
