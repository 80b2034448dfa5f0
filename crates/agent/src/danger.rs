//! What makes a command dangerous, by name. A person is asked about every command; these are asked about in plain words,
//! and never allowed for a whole session at once.
//!
//! Not a fence: commands can hide what they do. It is there so that nobody says yes to one of these in passing.

use crate::shell::{Line, Piece};

/// Why a command is dangerous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// Deletes files.
    Deletes,
    /// Replaces what a file holds.
    Replaces,
    /// Throws away work that git keeps, or history that others have.
    LosesHistory,
    /// Deletes data or machines that are not files here.
    LosesData,
    /// Acts as another user or changes what the system allows.
    Privilege,
    /// Writes to devices or filesystems.
    Device,
    /// Runs what was just fetched from the network.
    RunsFetched,
    /// Stops the machine or processes.
    Stops,
    /// Starts processes without end.
    Floods,
    /// Sends files or secrets away, or acts on another machine.
    Sends,
    /// Gives something to the public.
    Publishes,
    /// Shows keys or passwords.
    ShowsSecrets,
    /// Changes what is run later on.
    RunsLater,
}

impl Danger {
    /// In words, to stand after "this".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Deletes => "deletes files for good",
            Self::Replaces => "replaces what a file holds",
            Self::LosesHistory => "throws away work or history in git",
            Self::LosesData => "deletes data, containers or machines for good",
            Self::Privilege => "acts with other rights than yours, or changes rights",
            Self::Device => "writes to a device or a filesystem",
            Self::RunsFetched => "runs what it fetches from the network",
            Self::Stops => "stops the machine or processes",
            Self::Floods => "starts processes without end",
            Self::Sends => "may send files or keys away, or act on another machine",
            Self::Publishes => "publishes something under your name",
            Self::ShowsSecrets => "shows keys or passwords to the model",
            Self::RunsLater => "changes what git or the system run later on",
        }
    }
}

/// What makes a command dangerous, the worst first. `holds_something` knows of a file named in it whether there is
/// anything in it to lose.
#[must_use]
pub fn danger_of(command: &str, holds_something: &dyn Fn(&str) -> bool) -> Option<Danger> {
    let line = Line::of(command);
    if is_fork_bomb(command) {
        return Some(Danger::Floods);
    }
    if runs_fetched(command, &line) {
        return Some(Danger::RunsFetched);
    }
    let in_pieces = line.pieces.iter().find_map(|piece| danger_of_words(&piece.words));
    let in_code = || line.pieces.iter().find_map(|piece| danger_of_code(&piece.words, command));
    let inside = || line.inner.iter().find_map(|inner| danger_of(inner, holds_something));
    let written = || line.pieces.iter().find_map(|piece| danger_of_writing(piece, holds_something));
    in_pieces.or_else(in_code).or_else(inside).or_else(written)
}

/// A function that calls itself twice and does not wait: `:(){ :|:& };:`.
fn is_fork_bomb(command: &str) -> bool {
    let bare: String = command.chars().filter(|c| !c.is_whitespace()).collect();
    bare.match_indices("(){").any(|(at, _)| {
        let before = bare.get(..at).unwrap_or_default();
        let start = before.rfind([';', '&', '|', '}']).map_or(0, |at| at + 1);
        let name = before.get(start..).unwrap_or_default().trim_start_matches("function");
        !name.is_empty() && bare.get(at..).is_some_and(|rest| rest.contains(&format!("{name}|{name}")))
    })
}

fn fetches(words: &[String]) -> bool {
    matches!(program(words), "curl" | "wget" | "fetch")
}

/// Something from the network goes to a shell: through a pipe, in `$(...)` or `<(...)`, or by way of a file.
fn runs_fetched(command: &str, line: &Line) -> bool {
    let runs = |words: &[String]| {
        is_interpreter(program(words)) || matches!(program(words), "eval" | "source" | ".")
    };
    let piped = command.contains('|')
        && line.pieces.windows(2).any(|pair| fetches(&pair[0].words) && runs(&pair[1].words));
    let fetched_inside = |text: &str| Line::of(text).pieces.iter().any(|piece| fetches(&piece.words));
    let handed = line.pieces.windows(2).any(|pair| {
        let at_once = pair[0].words.len() <= 2 || pair[0].words.iter().any(|word| word == "-c");
        runs(&pair[0].words)
            && at_once
            && fetches(&pair[1].words)
            && (command.contains("$(") || command.contains("<("))
    });
    let quoted = line.inner.iter().any(|inner| fetched_inside(inner))
        && line.pieces.iter().any(|piece| runs(&piece.words));
    let files: Vec<&str> =
        line.pieces.iter().filter(|piece| fetches(&piece.words)).flat_map(saved_as).collect();
    let run_later = line.pieces.iter().any(|piece| {
        let named = |word: &String| files.contains(&word.trim_start_matches("./"));
        let first = piece.words.first().is_some_and(named);
        first || runs(&piece.words) && piece.words.iter().any(named)
    });
    piped || handed || quoted || run_later
}

/// Files that something fetched is written to.
fn saved_as(piece: &Piece) -> Vec<&str> {
    let after = piece.words.iter().zip(piece.words.iter().skip(1));
    let named = after.filter(|(option, _)| matches!(option.as_str(), "-o" | "-O" | "--output"));
    let named = named.map(|(_, file)| file.as_str());
    named.chain(piece.replaces.iter().map(String::as_str)).map(|file| file.trim_start_matches("./")).collect()
}

/// Words of a shell's own that stand before a command.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "coproc"];

fn danger_of_words(words: &[String]) -> Option<Danger> {
    let is_before = |word: &&String| KEYWORDS.contains(&word.as_str()) || is_assignment(word);
    let start = words.iter().take_while(is_before).count();
    let words = words.get(start..).unwrap_or_default();
    let name = program(words);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let any = |wanted: &[&str]| wanted.iter().any(|one| has(one));
    let begins = |start: &str| words.iter().any(|word| word.starts_with(start));
    let flag = |letters: &[char]| {
        let short = |word: &&String| word.starts_with('-') && !word.starts_with("--");
        words.iter().filter(short).any(|word| word.contains(letters))
    };
    let second =
        words.iter().skip(1).map(String::as_str).find(|word| !word.starts_with('-')).unwrap_or_default();
    if let Some(danger) = danger_of_paths(words) {
        return Some(danger);
    }
    match name {
        "sudo" | "doas" | "su" | "pkexec" | "setcap" | "visudo" | "passwd" | "chsh" | "useradd"
        | "userdel" | "usermod" | "adduser" | "deluser" | "iptables" | "nft" | "ufw" | "setfacl" => {
            Some(Danger::Privilege)
        }
        "chmod" | "chown" | "chgrp"
            if flag(&['R']) || has("--recursive") || any(&["777", "a+rwx", "+s", "u+s"]) =>
        {
            Some(Danger::Privilege)
        }
        "rm" | "rmdir" | "shred" | "truncate" | "unlink" | "srm" => Some(Danger::Deletes),
        "find" if has("-delete") => Some(Danger::Deletes),
        "find" => danger_after(words, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => danger_after(words, &["-x", "-X", "--exec", "--exec-batch"]),
        "rsync" if begins("--delete") => Some(Danger::Deletes),
        "git" => danger_of_git(words),
        "dd" | "mkfs" | "fdisk" | "sfdisk" | "parted" | "mount" | "umount" | "wipefs" | "blkdiscard"
        | "mkswap" => Some(Danger::Device),
        _ if name.starts_with("mkfs.") => Some(Danger::Device),
        "shutdown" | "reboot" | "halt" | "poweroff" | "init" | "killall" | "pkill" | "xkill" => {
            Some(Danger::Stops)
        }
        "kill" if !any(&["-0", "-l", "-L", "--list"]) => Some(Danger::Stops),
        "systemctl" | "service" if any(&["stop", "restart", "kill", "poweroff", "reboot", "halt"]) => {
            Some(Danger::Stops)
        }
        "systemctl" if any(&["enable", "disable", "mask", "edit", "link"]) => Some(Danger::RunsLater),
        "crontab" if !has("-l") => Some(Danger::RunsLater),
        "at" | "batch" | "launchctl" => Some(Danger::RunsLater),
        "scp" | "rsync" | "ftp" | "sftp" | "nc" | "ncat" | "socat" | "telnet" | "ssh" | "rclone" => {
            Some(Danger::Sends)
        }
        "curl" if sends_with_curl(words) => Some(Danger::Sends),
        "wget" if begins("--post") || begins("--body") => Some(Danger::Sends),
        "npm" | "yarn" | "pnpm" | "cargo" | "poetry" | "uv" if second == "publish" => Some(Danger::Publishes),
        "twine" if second == "upload" => Some(Danger::Publishes),
        "gem" | "docker" | "podman" if second == "push" => Some(Danger::Publishes),
        "gh" if has("release") && has("create") => Some(Danger::Publishes),
        "docker" | "podman" | "docker-compose"
            if any(&["prune", "rm", "rmi", "kill"]) || has("down") && flag(&['v']) =>
        {
            Some(Danger::LosesData)
        }
        "kubectl" | "oc" | "helm" if any(&["delete", "uninstall", "drain"]) => Some(Danger::LosesData),
        "terraform" | "tofu" | "pulumi" if any(&["destroy", "apply"]) => Some(Danger::LosesData),
        "dropdb" | "dropuser" => Some(Danger::LosesData),
        "redis-cli" if words.iter().any(|word| word.to_lowercase().starts_with("flush")) => {
            Some(Danger::LosesData)
        }
        "psql" | "mysql" | "mariadb" | "sqlite3" | "mongosh" if deletes_rows(words) => {
            Some(Danger::LosesData)
        }
        "aws" | "gcloud" | "gsutil" | "az" | "gh" if cloud_deletes(words) => Some(Danger::LosesData),
        "printenv" => Some(Danger::ShowsSecrets),
        "env" if words.len() == 1 => Some(Danger::ShowsSecrets),
        "eval" => danger_of(&words.get(1..).unwrap_or_default().join(" "), &|_| false),
        _ if is_shell(name) && has("-c") => {
            let inner = words.iter().skip_while(|word| *word != "-c").nth(1);
            inner.and_then(|inner| danger_of(inner, &|_| false))
        }
        _ => danger_of_words(wrapped(name, words)?),
    }
}

/// What a program runs that only stands before another.
fn wrapped<'a>(name: &str, words: &'a [String]) -> Option<&'a [String]> {
    // Options of it that take the next word.
    let with_value: &[&str] = match name {
        "xargs" => &["-I", "-n", "-L", "-P", "-s", "-d", "-E", "-a"],
        "nice" | "ionice" => &["-n", "-c"],
        "timeout" => &["-s", "-k"],
        "env" => &["-u", "-C"],
        "watch" => &["-n"],
        "nohup" | "time" | "command" | "exec" | "builtin" | "setsid" | "stdbuf" | "parallel" | "busybox"
        | "strace" | "unbuffer" => &[],
        _ => return None,
    };
    let mut rest = words.get(1..)?;
    while let Some(first) = rest.first() {
        let is_figure = first.starts_with(|c: char| c.is_ascii_digit());
        if with_value.contains(&first.as_str()) {
            rest = rest.get(2..)?;
        } else if first.starts_with('-') || is_figure || first.contains('=') {
            rest = rest.get(1..)?;
        } else {
            break;
        }
    }
    (!rest.is_empty()).then_some(rest)
}

/// What stands behind one of these options is run.
fn danger_after(words: &[String], options: &[&str]) -> Option<Danger> {
    let at = words.iter().position(|word| options.contains(&word.as_str()))?;
    danger_of_words(words.get(at + 1..)?)
}

fn danger_of_git(words: &[String]) -> Option<Danger> {
    let mut rest = words.get(1..).unwrap_or_default();
    while let Some(first) = rest.first().filter(|word| word.starts_with('-')) {
        let takes_value = matches!(first.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree");
        rest = rest.get(if takes_value { 2 } else { 1 }..).unwrap_or_default();
    }
    let has = |wanted: &str| rest.iter().any(|word| word == wanted);
    let begins = |start: &str| rest.iter().any(|word| word.starts_with(start));
    let flag = |letter: char| {
        rest.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let loses = match rest.first().map_or("", String::as_str) {
        "reset" => has("--hard") || has("--merge"),
        "clean" => !flag('n') && !has("--dry-run"),
        "push" => {
            flag('f')
                || flag('d')
                || has("--delete")
                || has("--mirror")
                || begins("--force")
                || begins(":")
                || begins("+")
        }
        "checkout" => has(".") || has("--") || flag('f') || has("--force"),
        "restore" => !has("--staged") || has("--worktree"),
        "switch" => flag('f') || has("--discard-changes") || has("--force"),
        "branch" => flag('D') || has("--delete"),
        "tag" => flag('d') || has("--delete"),
        "stash" => has("drop") || has("clear"),
        "worktree" => has("remove"),
        "reflog" => has("expire") || has("delete"),
        "update-ref" => has("-d"),
        "filter-branch" | "filter-repo" => true,
        _ => false,
    };
    loses.then_some(Danger::LosesHistory)
}

fn sends_with_curl(words: &[String]) -> bool {
    const SENDING: [&str; 5] = ["--data", "--form", "--upload-file", "--json", "--request"];
    words.iter().skip(1).any(|word| {
        let short = word.starts_with('-') && !word.starts_with("--") && word.contains(['d', 'F', 'T', 'X']);
        short || SENDING.iter().any(|option| word.starts_with(option))
    })
}

fn deletes_rows(words: &[String]) -> bool {
    let text = words.join(" ").to_lowercase();
    ["drop ", "truncate ", "delete from", "dropdatabase", ".drop("].iter().any(|word| text.contains(word))
}

fn cloud_deletes(words: &[String]) -> bool {
    let deletes = |word: &String| {
        matches!(word.as_str(), "rm" | "rb" | "delete")
            || word.starts_with("delete-")
            || word.starts_with("terminate-")
    };
    words.iter().skip(1).any(deletes)
}

/// Places that are dangerous whoever reads or writes them.
fn danger_of_paths(words: &[String]) -> Option<Danger> {
    const DEVICES: [&str; 5] = ["/dev/sd", "/dev/nvme", "/dev/vd", "/dev/disk", "/dev/mmcblk"];
    const SECRETS: [&str; 8] = [
        "/.ssh/id_",
        ".aws/credentials",
        "/.netrc",
        "/.gnupg",
        "/etc/shadow",
        ".git-credentials",
        "/.kube/config",
        "/.docker/config.json",
    ];
    let mentions = |places: &[&str]| words.iter().any(|word| places.iter().any(|place| word.contains(place)));
    if mentions(&DEVICES) {
        return Some(Danger::Device);
    }
    mentions(&SECRETS).then_some(Danger::ShowsSecrets)
}

/// What code in another language does, as far as its words tell.
fn danger_of_code(words: &[String], command: &str) -> Option<Danger> {
    const DELETING: [&str; 12] = [
        "rmtree",
        "os.remove",
        "os.unlink",
        "os.rmdir",
        ".unlink(",
        "rmSync",
        "unlinkSync",
        "fs.rm",
        "fs.unlink",
        "FileUtils.rm",
        "File.delete",
        "unlink ",
    ];
    let is_code = is_interpreter(program(words)) && !is_shell(program(words));
    (is_code && DELETING.iter().any(|word| command.contains(word))).then_some(Danger::Deletes)
}

/// Files that are written over.
fn danger_of_writing(piece: &Piece, holds_something: &dyn Fn(&str) -> bool) -> Option<Danger> {
    const STARTS_LATER: [&str; 7] =
        [".bashrc", ".bash_profile", ".profile", ".zshrc", "authorized_keys", "/etc/cron", "/etc/systemd"];
    if let Some(danger) = danger_of_paths(&piece.replaces) {
        return Some(danger);
    }
    if piece.replaces.iter().any(|file| STARTS_LATER.iter().any(|place| file.contains(place))) {
        return Some(Danger::RunsLater);
    }
    let words = &piece.words;
    let option = |wanted: &str| words.iter().any(|word| word == wanted);
    let last = || words.iter().skip(2).next_back().filter(|word| !word.starts_with('-'));
    let named: Vec<&String> = match program(words) {
        "tee" if !option("-a") && !option("--append") => words.iter().skip(1).collect(),
        "cp" | "mv" | "install" | "ln" if !option("-n") && !option("--no-clobber") => {
            last().into_iter().collect()
        }
        _ => Vec::new(),
    };
    let lost = piece.replaces.iter().chain(named).any(|file| holds_something(file));
    lost.then_some(Danger::Replaces)
}

fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "zsh" | "dash" | "fish" | "ksh")
}

/// Whether a program runs what it is given.
fn is_interpreter(name: &str) -> bool {
    let language = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    is_shell(name) || matches!(language, "python" | "perl" | "ruby" | "node" | "php" | "deno" | "bun" | "lua")
}

/// `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The name of the program, without its folder.
fn program(words: &[String]) -> &str {
    let first = words.iter().find(|word| !is_assignment(word));
    first.map_or("", |word| word.rsplit('/').next().unwrap_or(word))
}

#[cfg(test)]
#[path = "danger_tests.rs"]
mod tests;
