//! Programs that run another one: `sudo`, `env`, `xargs`, `find -exec`, and shells with `-c`.

use super::program::{is_shell, name};
use crate::shell::Word;

/// The program or command line that a wrapper runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inner<'a> {
    /// A program with its arguments.
    Words(&'a [Word]),
    /// A command line.
    Script(String),
}

/// Returns what a wrapper such as `sudo` runs; `None` if the program is not a wrapper.
pub(super) fn inner(words: &[Word]) -> Option<Inner<'_>> {
    let program = name(words);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let script = |text: &str| Some(Inner::Script(text.to_owned()));
    match program {
        _ if is_shell(program) => command_string(&texts).map(|text| Inner::Script(text.to_owned())),
        "eval" => Some(Inner::Script(texts.get(1..).unwrap_or_default().join(" "))),
        "su" | "script" | "runuser" => after_option(&texts, &["-c", "--command"]).and_then(script),
        "env" => match after_option(&texts, &["-S", "--split-string"]) {
            Some(text) => script(text),
            None => rest(words).map(Inner::Words),
        },
        "trap" => texts.get(1).copied().filter(|text| !text.starts_with('-')).and_then(script),
        "alias" => {
            let values = texts.iter().skip(1).filter_map(|text| text.split_once('=')).map(|(_, value)| value);
            Some(Inner::Script(values.collect::<Vec<_>>().join("\n"))).filter(|_| texts.len() > 1)
        }
        "find" => behind(words, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => behind(words, &["-x", "-X", "--exec", "--exec-batch"]),
        // Only looks up a program.
        "command" if texts.get(1).is_some_and(|text| matches!(*text, "-v" | "-V")) => None,
        "git" => git_inner(&texts),
        "xargs" => xargs(words),
        _ => rest(words).map(Inner::Words),
    }
}

/// Returns the words from the effective program on, which reads the pipe, without wrappers such as `sudo` or `env`.
pub(super) fn effective(words: &[Word]) -> &[Word] {
    let mut words = words;
    while !matches!(name(words), "xargs" | "find" | "fd" | "fdfind" | "parallel" | "git") {
        match inner(words) {
            Some(Inner::Words(rest)) => words = rest,
            Some(Inner::Script(_)) | None => break,
        }
    }
    words
}

/// The command line after `-c`, also combined with other options: `-lc`, `-xc`.
fn command_string<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let mut runs_string = false;
    let mut rest = texts.iter().skip(1).copied();
    while let Some(text) = rest.next() {
        match text {
            "--" => return rest.next().filter(|_| runs_string),
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                rest.next();
            }
            "--command" => return rest.next(),
            _ if text.starts_with("--") && text.len() > 2 => {}
            _ if (text.starts_with('-') || text.starts_with('+')) && text.len() > 1 => {
                runs_string |= text.starts_with('-') && text.contains('c');
                if text.ends_with('o') {
                    rest.next();
                }
            }
            _ => return runs_string.then_some(text),
        }
    }
    // The command line itself comes from elsewhere, as in `xargs sh -c`.
    runs_string.then_some(crate::shell::UNKNOWN)
}

fn after_option<'a>(texts: &[&'a str], options: &[&str]) -> Option<&'a str> {
    let at = texts.iter().position(|text| options.contains(text))?;
    texts.get(at + 1).copied()
}

/// The command in the argument of one of these options.
fn behind<'a>(words: &'a [Word], options: &[&str]) -> Option<Inner<'a>> {
    let at = words.iter().position(|word| options.contains(&word.text.as_str()))?;
    words.get(at + 1..).filter(|rest| !rest.is_empty()).map(Inner::Words)
}

/// The command that git runs: `rebase --exec`, `bisect run`, `submodule foreach`.
fn git_inner<'a>(texts: &[&str]) -> Option<Inner<'a>> {
    let at = |wanted: &str| texts.iter().position(|text| *text == wanted);
    let from = |start: usize| texts.get(start..).map(|rest| Inner::Script(rest.join(" ")));
    if at("rebase").is_some() {
        return after_option(texts, &["-x", "--exec"]).map(|text| Inner::Script(text.to_owned()));
    }
    if let (Some(_), Some(run)) = (at("bisect"), at("run")) {
        return from(run + 1);
    }
    match (at("submodule"), at("foreach")) {
        (Some(_), Some(foreach)) => from(foreach + 1),
        _ => None,
    }
}

/// The command that `xargs` runs. Words that replace its placeholder are unknown.
fn xargs(words: &[Word]) -> Option<Inner<'_>> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let mark = texts.iter().enumerate().find_map(|(at, text)| match text.strip_prefix("-I") {
        Some("") => texts.get(at + 1).copied(),
        Some(mark) => Some(mark),
        None => text.strip_prefix("--replace=").or((*text == "-i").then_some("{}")),
    });
    let rest = rest(words)?;
    let inner_texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    let script =
        if is_shell(name(rest)) { command_string(&inner_texts) } else { inner_texts.first().copied() };
    match (mark, script) {
        (Some(mark), Some(script)) if !mark.is_empty() && script.contains(mark) => {
            Some(Inner::Script(script.replace(mark, crate::shell::UNKNOWN)))
        }
        _ => Some(Inner::Words(rest)),
    }
}

/// The words after a program and its own options.
fn rest(words: &[Word]) -> Option<&[Word]> {
    // Options that take a value, and the number of words before the program.
    let (with_value, before): (&[&str], usize) = match name(words) {
        "sudo" | "doas" => {
            (&["-u", "-g", "-p", "-C", "-h", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"], 0)
        }
        "xargs" => {
            (&["-I", "-n", "-L", "-P", "-s", "-d", "-E", "-a", "--max-args", "--max-procs", "--delimiter"], 0)
        }
        "nice" | "ionice" => (&["-n", "-c", "-p"], 0),
        "timeout" | "gtimeout" => (&["-s", "-k", "--signal", "--kill-after"], 1),
        "env" => (&["-u", "-C", "--unset", "--chdir"], 0),
        "watch" => (&["-n", "--interval"], 0),
        "time" => (&["-o", "-f"], 0),
        "strace" | "ltrace" => (&["-o", "-e", "-p", "-s", "-u"], 0),
        "flock" => (&["-w", "--timeout", "-E"], 1),
        "chroot" => (&["--userspec", "--groups"], 1),
        "taskset" | "chrt" => (&[], 1),
        "stdbuf" => (&["-i", "-o", "-e"], 0),
        "systemd-run" => (&["-p", "-u", "--unit", "-M"], 0),
        "exec" => (&["-a"], 0),
        "nohup" | "command" | "builtin" | "setsid" | "parallel" | "busybox" | "toybox" | "unbuffer"
        | "coproc" | "caffeinate" | "unshare" | "nsenter" | "dbus-run-session" | "proot" | "torsocks"
        | "proxychains" | "proxychains4" | "valgrind" | "firejail" | "faketime" | "winpty" | "rlwrap"
        | "then" | "do" | "else" | "!" => (&[], 0),
        _ => return None,
    };
    let mut rest = words.get(1..)?;
    let mut options = true;
    let mut skipped = 0;
    while let Some(first) = rest.first() {
        let text = first.text.as_str();
        if options && text == "--" {
            options = false;
            rest = rest.get(1..)?;
        } else if options && with_value.contains(&text) {
            rest = rest.get(2..)?;
        } else if options && text.starts_with('-') && text.len() > 1 || is_assignment(text) {
            rest = rest.get(1..)?;
        } else if skipped < before {
            skipped += 1;
            rest = rest.get(1..)?;
        } else {
            break;
        }
    }
    (!rest.is_empty()).then_some(rest)
}

/// Whether a word has the form `NAME=value`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
