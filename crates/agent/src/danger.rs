//! What makes a command dangerous, by name. A person is asked about every command; these are asked about in plain words,
//! and never allowed for a whole session at once.
//!
//! Not a fence: commands can hide what they do. It is there so that nobody says yes to one of these in passing.

/// Why a command is dangerous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// Deletes folders or much at once.
    Deletes,
    /// Throws away work that git keeps, or history that others have.
    LosesHistory,
    /// Acts as another user or changes what the system allows.
    Privilege,
    /// Writes to devices or filesystems.
    Device,
    /// Runs what was just fetched from the network.
    RunsFetched,
    /// Stops the machine or many processes.
    Stops,
    /// Sends files or secrets away.
    Sends,
    /// Changes what git runs by itself later on.
    RunsLater,
}

impl Danger {
    /// In words, to stand after "this".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Deletes => "deletes files for good",
            Self::LosesHistory => "throws away work or history in git",
            Self::Privilege => "acts with other rights than yours",
            Self::Device => "writes to a device or a filesystem",
            Self::RunsFetched => "runs what it fetches from the network",
            Self::Stops => "stops the machine or processes",
            Self::Sends => "may send files or keys away",
            Self::RunsLater => "changes what git itself keeps, and may run something later on",
        }
    }
}

/// What makes a command dangerous, the worst first.
#[must_use]
pub fn danger_of(command: &str) -> Option<Danger> {
    let pieces: Vec<Vec<String>> = pieces(command);
    let pipes_to_shell = pieces.windows(2).any(|pair| {
        matches!(program(&pair[0]), "curl" | "wget") && is_shell(program(&pair[1])) && command.contains('|')
    });
    if pipes_to_shell {
        return Some(Danger::RunsFetched);
    }
    pieces.iter().find_map(|words| danger_of_piece(words))
}

fn danger_of_piece(words: &[String]) -> Option<Danger> {
    let name = program(words);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let flag = |letters: &[char]| {
        let short = |word: &&String| word.starts_with('-') && !word.starts_with("--");
        words.iter().filter(short).any(|word| word.contains(letters))
    };
    match name {
        "sudo" | "doas" | "su" | "pkexec" | "setcap" | "visudo" => Some(Danger::Privilege),
        "chmod" | "chown" if flag(&['R']) || has("--recursive") || has("777") => Some(Danger::Privilege),
        "rm" if flag(&['r', 'R', 'f']) || has("--recursive") || has("--force") => Some(Danger::Deletes),
        "find" if has("-delete") || has("-exec") => Some(Danger::Deletes),
        "rmdir" | "shred" | "truncate" | "unlink" => Some(Danger::Deletes),
        "git" => match words.get(1).map(String::as_str) {
            Some("reset") if has("--hard") => Some(Danger::LosesHistory),
            Some("clean") => Some(Danger::LosesHistory),
            Some("push") if flag(&['f']) || words.iter().any(|word| word.starts_with("--force")) => {
                Some(Danger::LosesHistory)
            }
            Some("checkout" | "restore") if has(".") => Some(Danger::LosesHistory),
            Some("branch") if flag(&['D']) => Some(Danger::LosesHistory),
            Some("stash") if has("drop") || has("clear") => Some(Danger::LosesHistory),
            _ => None,
        },
        "dd" | "mkfs" | "fdisk" | "parted" | "mount" | "umount" | "wipefs" => Some(Danger::Device),
        _ if name.starts_with("mkfs.") => Some(Danger::Device),
        _ if words.iter().any(|word| word.starts_with("/dev/sd") || word.starts_with("/dev/nvme")) => {
            Some(Danger::Device)
        }
        "shutdown" | "reboot" | "halt" | "poweroff" | "killall" | "pkill" => Some(Danger::Stops),
        "kill" if has("-1") => Some(Danger::Stops),
        "scp" | "rsync" | "ftp" | "sftp" | "nc" | "ncat" => Some(Danger::Sends),
        "curl" if ["-d", "--data", "-F", "-T", "--upload-file", "--data-binary"].iter().any(|o| has(o)) => {
            Some(Danger::Sends)
        }
        _ if is_shell(name) && has("-c") => {
            words.iter().skip_while(|word| *word != "-c").nth(1).and_then(|inner| danger_of(inner))
        }
        "xargs" | "env" | "nohup" | "time" | "nice" | "timeout" | "command" | "exec" => {
            let is_option = |word: &&String| {
                word.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                    || word.contains('=')
            };
            let inner: Vec<String> = words.iter().skip(1).skip_while(is_option).cloned().collect();
            if inner.is_empty() { None } else { danger_of_piece(&inner) }
        }
        _ => None,
    }
}

fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "zsh" | "dash" | "fish" | "python" | "python3" | "perl" | "ruby" | "node")
}

/// The name of the program, without its folder.
fn program(words: &[String]) -> &str {
    let first = words.iter().find(|word| !word.contains('=') || word.starts_with('/'));
    first.map_or("", |word| word.rsplit('/').next().unwrap_or(word))
}

/// The commands of a line, as words. Quotes are understood as far as it takes to see words; what stands in them is one.
fn pieces(command: &str) -> Vec<Vec<String>> {
    let mut pieces = vec![Vec::new()];
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut in_word = false;
    let mut characters = command.chars().peekable();
    let finish = |word: &mut String, in_word: &mut bool, pieces: &mut Vec<Vec<String>>| {
        if std::mem::take(in_word)
            && let Some(piece) = pieces.last_mut()
        {
            piece.push(std::mem::take(word));
        }
    };
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.push(c),
            (_, '\\') => {
                in_word = true;
                word.extend(characters.next());
            }
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => {
                quote = Some(character);
                in_word = true;
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '`' | '{' | '}') => {
                finish(&mut word, &mut in_word, &mut pieces);
                if pieces.last().is_some_and(|piece| !piece.is_empty()) {
                    pieces.push(Vec::new());
                }
            }
            (None, '$') if characters.peek() == Some(&'(') => {}
            (None, c) if c.is_whitespace() => finish(&mut word, &mut in_word, &mut pieces),
            (None, c) => {
                word.push(c);
                in_word = true;
            }
        }
    }
    finish(&mut word, &mut in_word, &mut pieces);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
#[path = "danger_tests.rs"]
mod tests;
