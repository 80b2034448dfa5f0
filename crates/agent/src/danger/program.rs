//! The effects of single programs, judged by their names and arguments.

use super::kind::{Danger, FileKind};
use super::places::{self, Use};
use super::{Analysis, code};
use crate::shell::{Script, Word};

/// The language in which a program reads its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Other,
}

/// The name of the program, without its folder.
pub(super) fn name(words: &[Word]) -> &str {
    words.first().map_or("", |word| word.text.rsplit('/').next().unwrap_or(&word.text))
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "zsh" | "dash" | "fish" | "ksh" | "ash" | "mksh" | "csh" | "tcsh" | "rbash"
    )
}

/// Whether a program runs code of another language.
fn is_language(name: &str) -> bool {
    let language = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        language,
        "python"
            | "pypy"
            | "perl"
            | "ruby"
            | "node"
            | "nodejs"
            | "php"
            | "deno"
            | "bun"
            | "lua"
            | "osascript"
    )
}

/// Whether a program downloads from the network.
pub(super) fn fetches(words: &[Word]) -> bool {
    matches!(name(words), "curl" | "wget" | "fetch" | "aria2c" | "http" | "https" | "xh")
}

/// Whether a program runs the files in its arguments.
pub(super) fn runs_file(words: &[Word]) -> bool {
    let name = name(words);
    is_shell(name) || is_language(name) || matches!(name, "source" | ".")
}

/// The language of a program's input, if the program runs its input.
pub(super) fn runs_input(words: &[Word]) -> Option<Language> {
    let program = name(words);
    let arguments: Vec<&str> = words.iter().skip(1).map(|word| word.text.as_str()).collect();
    let short = |letters: &[char]| {
        arguments.iter().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(letters))
    };
    let operand = arguments.iter().find(|a| !a.starts_with('-') && !a.starts_with('+'));
    let is_input = |operand: &&str| matches!(*operand, "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0");
    let reads = operand.is_none_or(is_input);
    if is_shell(program) {
        return (!short(&['c']) && (reads || short(&['s']))).then_some(Language::Shell);
    }
    if matches!(program, "source" | ".") {
        return operand.filter(|operand| is_input(operand)).map(|_| Language::Shell);
    }
    if program == "parallel" && arguments.iter().all(|argument| argument.starts_with('-')) {
        return Some(Language::Shell);
    }
    let has_code = short(&['c', 'e', 'E', 'm', 'n', 'p', 'r', 'V', 'v', 'h'])
        || arguments.iter().any(|argument| argument.starts_with("--"));
    (is_language(program) && reads && !has_code).then_some(Language::Other)
}

/// The files to which a download is saved.
pub(super) fn saved_as(words: &[Word]) -> Vec<String> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let mut files: Vec<String> = Vec::new();
    for (option, file) in texts.iter().zip(texts.iter().skip(1)) {
        let names_file = matches!(*option, "-o" | "-O" | "--output" | "--output-document")
            || option.starts_with('-') && !option.starts_with("--") && option.ends_with('o');
        if names_file {
            files.push((*file).to_owned());
        }
    }
    // `wget URL` and `curl -O URL` use the last part of the address as the file name.
    let addresses = texts.iter().skip(1).filter(|text| !text.starts_with('-'));
    files.extend(addresses.filter_map(|text| text.rsplit('/').next()).map(str::to_owned));
    files
}

/// A program with its arguments.
struct ProgramCall<'a> {
    words: &'a [Word],
    name: &'a str,
}

impl<'a> ProgramCall<'a> {
    fn texts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    fn has(&self, wanted: &str) -> bool {
        self.texts().any(|text| text == wanted)
    }

    fn any(&self, wanted: &[&str]) -> bool {
        wanted.iter().any(|one| self.has(one))
    }

    fn begins(&self, start: &str) -> bool {
        self.texts().any(|text| text.starts_with(start))
    }

    /// Whether the short options include one of these letters.
    fn flag(&self, letters: &[char]) -> bool {
        self.texts().any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letters))
    }

    /// The arguments that are not options.
    fn operands(&self) -> Vec<&'a str> {
        self.texts().filter(|text| !text.starts_with('-') || *text == "-").collect()
    }

    fn second(&self) -> &'a str {
        self.operands().first().copied().unwrap_or_default()
    }
}

impl Analysis<'_> {
    /// Checks a program, but not the programs that it runs.
    pub(super) fn program(&mut self, script: &Script, words: &[Word]) {
        let call = ProgramCall { words, name: name(words) };
        let found: Vec<Danger> = call.texts().filter_map(|text| places::danger(text, Use::Reads)).collect();
        self.found.extend(found);
        self.found.extend(by_name(&call));
        if call.name == "git" {
            let danger = git(&call, &|path| (self.files)(path));
            self.found.extend(danger);
        }
        self.writes(&call);
        self.secrets(&call);
        self.network(script, &call);
        self.runs(script, &call);
    }

    /// Checks for files that a program overwrites.
    fn writes(&mut self, call: &ProgramCall<'_>) {
        let operands = call.operands();
        let appends = call.any(&["-a", "--append"]);
        let targets: Vec<&str> = match call.name {
            "tee" | "sponge" => operands,
            "cp" | "mv" | "install" | "ln" | "rsync" => {
                operands.last().filter(|_| operands.len() > 1).into_iter().copied().collect()
            }
            "dd" => operands.iter().filter_map(|operand| operand.strip_prefix("of=")).collect(),
            "curl" | "wget" => {
                let texts: Vec<&str> = call.texts().collect();
                let named = texts.iter().zip(texts.iter().skip(1));
                named
                    .filter(|(option, _)| matches!(**option, "-o" | "-O" | "--output"))
                    .map(|(_, file)| *file)
                    .collect()
            }
            "sed" | "gsed" if edits_in_place(call) => {
                self.add(Danger::Replaces);
                operands
            }
            "perl" | "ruby" if edits_in_place(call) => {
                self.add(Danger::Replaces);
                operands
            }
            "awk" | "gawk" if call.has("inplace") => {
                self.add(Danger::Replaces);
                operands
            }
            "sort" if call.flag(&['o']) => operands,
            "touch" | "chmod" | "chown" => operands,
            _ => Vec::new(),
        };
        let keeps = appends
            || call.any(&["-n", "--no-clobber"])
            || matches!(call.name, "touch" | "chmod" | "chown" | "sed");
        for target in targets {
            self.found.extend(places::danger(target, Use::Writes));
            if !keeps && self.file(target) == FileKind::File {
                self.add(Danger::Replaces);
            }
        }
    }

    /// Checks for keys and passwords that a program prints.
    fn secrets(&mut self, call: &ProgramCall<'_>) {
        let operands = call.operands();
        let no_name = operands.is_empty();
        let names_secret = |call: &ProgramCall<'_>| {
            call.words.iter().flat_map(|word| &word.variables).any(|name| places::is_secret_name(name))
        };
        let shows = match call.name {
            "printenv" => no_name || operands.iter().any(|name| places::is_secret_name(name)),
            "env" => operands.iter().all(|operand| operand.contains('=')),
            "set" => call.words.len() == 1,
            "export" | "declare" | "typeset" | "readonly" => no_name,
            "compgen" => call.flag(&['e', 'v']),
            "echo" | "printf" => names_secret(call),
            "cat" | "less" | "more" | "head" | "tail" | "grep" | "rg" | "bat" | "strings" | "xxd" | "od"
            | "base64" | "nl" | "sed" | "awk" | "tac" => {
                operands.iter().any(|file| places::is_settings_with_keys(file))
            }
            "gh" => call.has("auth") && call.has("token"),
            "gcloud" => call.begins("print-access-token") || call.begins("print-identity-token"),
            "kubectl" | "oc" => call.has("get") && (call.begins("secret")),
            "security" => call.begins("find-"),
            "pass" | "op" | "vault" => true,
            _ => false,
        };
        if shows {
            self.add(Danger::ShowsSecrets);
        }
    }

    /// Checks whether a program sends data to the network.
    fn network(&mut self, script: &Script, call: &ProgramCall<'_>) {
        let talks = fetches(call.words)
            || matches!(
                call.name,
                "dig" | "nslookup" | "host" | "drill" | "ping" | "ping6" | "traceroute" | "lynx" | "w3m"
            );
        if !talks {
            return;
        }
        let is_made =
            |word: &Word| word.made_by.iter().any(|steps| script.steps.get(steps.clone()).is_some());
        let tells =
            |word: &Word| is_made(word) || word.variables.iter().any(|name| places::is_secret_name(name));
        if call.words.iter().skip(1).any(tells) {
            self.add(Danger::Sends);
        }
    }

    /// Checks for programs in the arguments.
    fn runs(&mut self, script: &Script, call: &ProgramCall<'_>) {
        let fetched = |word: &Word| {
            let steps = word.made_by.iter().filter_map(|steps| script.steps.get(steps.clone())).flatten();
            steps.into_iter().any(|step| fetches(super::wrapper::effective(&step.words)))
        };
        let arguments = call.words.get(1..).unwrap_or_default();
        let runs_arguments = runs_file(call.words) || call.name == "eval";
        if runs_arguments && arguments.iter().any(fetched) {
            self.add(Danger::RunsFetched);
        } else if runs_arguments && arguments.iter().any(|word| !word.made_by.is_empty()) {
            self.add(Danger::Unclear);
        }
        if is_language(call.name) {
            let text: Vec<&str> = call.texts().collect();
            if call.flag(&['c', 'e', 'E', 'r', 'p', 'n']) || call.any(&["--eval", "--print"]) {
                self.found.extend(code::dangers(&text.join(" ")));
            }
        }
        if matches!(call.name, "awk" | "gawk" | "mawk" | "nawk") {
            let text: Vec<&str> = call.texts().collect();
            let text = text.join(" ");
            if text.contains("system(") || text.contains("| \"") || text.contains("|\"") {
                self.add(Danger::Unclear);
            }
        }
    }
}

/// The danger of a program, judged by its name and first arguments.
fn by_name(call: &ProgramCall<'_>) -> Option<Danger> {
    let second = call.second();
    match call.name {
        "sudo" | "doas" | "su" | "pkexec" | "setcap" | "visudo" | "passwd" | "chsh" | "useradd"
        | "userdel" | "usermod" | "adduser" | "deluser" | "iptables" | "nft" | "ufw" | "setfacl"
        | "chroot" | "nsenter" | "runuser" | "sysctl" | "insmod" | "modprobe" | "setenforce" => {
            Some(Danger::Privilege)
        }
        "chmod" | "chown" | "chgrp"
            if call.flag(&['R'])
                || call.has("--recursive")
                || call
                    .any(&["777", "0777", "a+rwx", "ugo+rwx", "+s", "u+s", "g+s", "4755", "a+w", "o+w"]) =>
        {
            Some(Danger::Privilege)
        }
        "rm" | "rmdir" | "shred" | "truncate" | "unlink" | "srm" | "trash" => Some(Danger::Deletes),
        "find" if call.has("-delete") => Some(Danger::Deletes),
        "find" if call.begins("-fprint") || call.begins("-fls") => Some(Danger::Replaces),
        "rsync" if call.begins("--delete") || call.begins("--remove-source") => Some(Danger::Deletes),
        "dd" | "mkfs" | "fdisk" | "sfdisk" | "parted" | "mount" | "umount" | "wipefs" | "blkdiscard"
        | "mkswap" | "losetup" | "cryptsetup" => Some(Danger::Device),
        name if name.starts_with("mkfs.") => Some(Danger::Device),
        "shutdown" | "reboot" | "halt" | "poweroff" | "init" | "killall" | "pkill" | "xkill" | "telinit" => {
            Some(Danger::Stops)
        }
        "kill" if !call.any(&["-0", "-l", "-L", "--list"]) => Some(Danger::Stops),
        "systemctl" | "service" if call.any(&["stop", "restart", "kill", "poweroff", "reboot", "halt"]) => {
            Some(Danger::Stops)
        }
        "systemctl" if call.any(&["enable", "disable", "mask", "edit", "link"]) => Some(Danger::RunsLater),
        "crontab" if !call.has("-l") => Some(Danger::RunsLater),
        "at" | "batch" | "launchctl" | "update-rc.d" | "chkconfig" => Some(Danger::RunsLater),
        "scp" | "rsync" | "ftp" | "sftp" | "nc" | "ncat" | "netcat" | "socat" | "telnet" | "ssh"
        | "rclone" | "ssh-copy-id" | "mail" | "sendmail" | "mutt" => Some(Danger::Sends),
        "openssl" if second == "s_client" => Some(Danger::Sends),
        "curl" if sends_with_curl(call) => Some(Danger::Sends),
        "wget" if call.begins("--post") || call.begins("--body") || call.begins("--method=P") => {
            Some(Danger::Sends)
        }
        name if is_language(name) && call.has("http.server") => Some(Danger::Sends),
        "npm" | "yarn" | "pnpm" | "cargo" | "poetry" | "uv" | "flit" if second == "publish" => {
            Some(Danger::Publishes)
        }
        "twine" if second == "upload" => Some(Danger::Publishes),
        "gem" | "docker" | "podman" | "helm" if second == "push" => Some(Danger::Publishes),
        "gh" if call.has("release") && call.has("create") || call.has("gist") && call.has("create") => {
            Some(Danger::Publishes)
        }
        "docker" | "podman"
            if call.has("--privileged") || call.begins("/:/") || call.begins("--volume=/:") =>
        {
            Some(Danger::Privilege)
        }
        "docker" | "podman" | "docker-compose"
            if call.any(&["prune", "rm", "rmi", "kill"]) || call.has("down") && call.flag(&['v']) =>
        {
            Some(Danger::LosesData)
        }
        "kubectl" | "oc" | "helm" if call.any(&["delete", "uninstall", "drain"]) => Some(Danger::LosesData),
        "terraform" | "tofu" | "pulumi" if call.any(&["destroy", "apply"]) => Some(Danger::LosesData),
        "dropdb" | "dropuser" => Some(Danger::LosesData),
        "redis-cli" if call.texts().any(|text| text.to_lowercase().starts_with("flush")) => {
            Some(Danger::LosesData)
        }
        "psql" | "mysql" | "mariadb" | "sqlite3" | "mongosh" if deletes_rows(call) => Some(Danger::LosesData),
        "aws" | "gcloud" | "gsutil" | "az" | "gh" if cloud_deletes(call) => Some(Danger::LosesData),
        "history" if call.has("-c") => Some(Danger::Deletes),
        _ => None,
    }
}

fn git(call: &ProgramCall<'_>, files: &dyn Fn(&str) -> FileKind) -> Option<Danger> {
    let mut rest: Vec<&str> = call.texts().collect();
    let mut settings: Vec<&str> = Vec::new();
    while let Some(first) = rest.first().copied().filter(|word| word.starts_with('-')) {
        let takes_value = matches!(first, "-C" | "-c" | "--git-dir" | "--work-tree" | "--config-env");
        if first == "-c" {
            settings.extend(rest.get(1));
        }
        rest = rest.get(if takes_value { 2 } else { 1 }..).unwrap_or_default().to_vec();
    }
    // Settings whose value is a command.
    const RUNNING: [&str; 11] = [
        "alias.",
        "core.sshcommand",
        "core.pager",
        "core.editor",
        "core.hookspath",
        "core.fsmonitor",
        "core.askpass",
        "diff.external",
        "credential.helper",
        "filter.",
        "gpg.program",
    ];
    let runs = |setting: &str| RUNNING.iter().any(|start| setting.to_lowercase().starts_with(start));
    if settings.iter().any(|setting| runs(setting) && !setting.ends_with("=cat")) {
        return Some(Danger::Unclear);
    }
    let has = |wanted: &str| rest.contains(&wanted);
    let begins = |start: &str| rest.iter().any(|word| word.starts_with(start));
    let flag = |letter: char| {
        rest.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let operands: Vec<&str> = rest.iter().skip(1).copied().filter(|word| !word.starts_with('-')).collect();
    let loses = match rest.first().copied().unwrap_or_default() {
        "config" if operands.len() > 1 && operands.iter().any(|name| runs(name)) => {
            return Some(Danger::RunsLater);
        }
        "rm" if !has("--cached") => return Some(Danger::Deletes),
        "reset" => has("--hard") || has("--merge") || has("--keep"),
        "clean" => !flag('n') && !has("--dry-run"),
        "push" => {
            flag('f')
                || flag('d')
                || has("--delete")
                || has("--mirror")
                || has("--prune")
                || begins("--force")
                || begins(":")
                || begins("+")
        }
        "checkout" => checkout_loses(&rest, &operands, files),
        "restore" => !has("--staged") || has("--worktree"),
        "switch" => flag('f') || flag('C') || has("--discard-changes") || has("--force"),
        "branch" => flag('D') || has("--delete") || flag('f') || has("--force"),
        "tag" => flag('d') || has("--delete") || flag('f'),
        "stash" => has("drop") || has("clear"),
        "worktree" => has("remove") || has("prune"),
        "reflog" => has("expire") || has("delete"),
        "update-ref" => has("-d"),
        "gc" => begins("--prune"),
        "filter-branch" | "filter-repo" => true,
        _ => false,
    };
    loses.then_some(Danger::LosesHistory)
}

/// Whether `git checkout` replaces files: it does if its arguments include files. Branches and files are written alike.
fn checkout_loses(rest: &[&str], operands: &[&str], files: &dyn Fn(&str) -> FileKind) -> bool {
    let has = |wanted: &str| rest.contains(&wanted);
    if has("--") || has("--force") || has("-f") || has(".") || has("-B") || has("--ours") || has("--theirs") {
        return true;
    }
    if has("-b") || has("--orphan") || has("-t") || has("--track") {
        return false;
    }
    let has_extension = |name: &str| {
        let extension = name.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
        extension.is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=5).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphabetic())
        })
    };
    operands.len() > 1
        || operands.iter().any(|name| {
            name.starts_with("./")
                || name.ends_with('/')
                || name.contains('*')
                || has_extension(name)
                || files(name) != FileKind::Nothing
        })
}

/// Whether a program edits files in place: `-i`, also combined with other short options, but not within the value of one.
fn edits_in_place(call: &ProgramCall<'_>) -> bool {
    call.texts().any(|text| {
        if text.starts_with("--") {
            return text.starts_with("--in-place");
        }
        let Some(letters) = text.strip_prefix('-') else { return false };
        letters.chars().take_while(|c| !matches!(c, 'e' | 'f' | 'M' | 'I')).any(|c| c == 'i')
    })
}

fn sends_with_curl(call: &ProgramCall<'_>) -> bool {
    const SENDING: [&str; 5] = ["--data", "--form", "--upload-file", "--json", "--url-query"];
    let texts: Vec<&str> = call.texts().collect();
    let is_reading =
        |method: Option<&str>| method.is_some_and(|method| matches!(method, "GET" | "HEAD" | "OPTIONS"));
    texts.iter().enumerate().any(|(at, text)| {
        let next = texts.get(at + 1).copied();
        if let Some(method) = text.strip_prefix("--request") {
            return !is_reading(method.strip_prefix('=').or(next));
        }
        if text.starts_with("--") || !text.starts_with('-') {
            return SENDING.iter().any(|option| text.starts_with(option));
        }
        let letters = text.get(1..).unwrap_or_default();
        for (at, letter) in letters.char_indices() {
            match letter {
                'd' | 'F' | 'T' => return true,
                'X' => return !is_reading(letters.get(at + 1..).filter(|rest| !rest.is_empty()).or(next)),
                // The rest of the word is the option's value.
                'o' | 'H' | 'u' | 'A' | 'e' | 'b' | 'c' | 'm' | 'w' | 'x' | 'r' | 'C' | 'D' | 'y' | 'z'
                | 'E' | 'U' => return false,
                _ => {}
            }
        }
        false
    })
}

fn deletes_rows(call: &ProgramCall<'_>) -> bool {
    let text = call.texts().collect::<Vec<_>>().join(" ").to_lowercase();
    ["drop ", "truncate ", "delete from", "dropdatabase", ".drop("].iter().any(|word| text.contains(word))
}

fn cloud_deletes(call: &ProgramCall<'_>) -> bool {
    call.texts().any(|word| {
        matches!(word, "rm" | "rb" | "delete")
            || word.starts_with("delete-")
            || word.starts_with("terminate-")
    })
}
