//! Golden files: the recorded output of a program, compared byte for byte with its current output.
//!
//! [`check_golden`] compares one text with its file. With `INSTA_UPDATE=always`, as for `insta` snapshots, it writes the file instead.
//! `insta` itself is not used here: it ignores blanks at the end of a snapshot, and these files are about single bytes. [`json_lines`]
//! splits JSON into lines without losing a byte, so that a difference is readable.

use std::fs;
use std::path::Path;

/// The most characters of a line that are shown around its first difference.
const SHOWN_CHARS: usize = 160;

/// Whether files are written instead of compared.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the switch of all snapshots is a variable of the environment")]
pub fn updates_golden() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

/// Compares a text with its golden file, or writes the file if snapshots are updated.
///
/// # Panics
///
/// If they differ, with the first different line, or if the file cannot be read or written.
#[expect(clippy::panic, reason = "a difference has to fail its test")]
pub fn check_golden(path: &Path, found: &str) {
    let recorded = fs::read_to_string(path).ok();
    if recorded.as_deref() == Some(found) {
        return;
    }
    if updates_golden() {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, found));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        return;
    }
    let how = "INSTA_UPDATE=always writes it anew; read the difference first";
    match recorded {
        None => panic!("{} is missing or cannot be read; {how}", path.display()),
        Some(recorded) => panic!("{}\n{}\n{how}", path.display(), first_difference(&recorded, found)),
    }
}

/// Compares the names of the files in a folder with those that tests check, so that no file remains after its test was removed. Writes
/// nothing.
///
/// # Panics
///
/// If a file belongs to no test, or a test has no file.
#[expect(clippy::panic, reason = "a difference has to fail its test")]
pub fn check_golden_folder(folder: &Path, expected: &[&str]) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let mut expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "files in {} and the tests that check them", folder.display());
}

/// Splits JSON into a line for each member and element near its surface, and for each line of the texts in it. A break is inserted only
/// at fixed bytes, and a break of the original is shown as `␊`; so equal lines mean equal bytes.
#[must_use]
pub fn json_lines(json: &str) -> String {
    const DEEPEST: usize = 3;
    let mut out = String::with_capacity(json.len() + json.len() / 16);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for c in json.chars() {
        if c == '\n' {
            out.push('␊');
        }
        out.push(c);
        let ends_line = match c {
            _ if in_string && escaped => {
                escaped = false;
                c == 'n'
            }
            '\\' if in_string => {
                escaped = true;
                false
            }
            '"' => {
                in_string = !in_string;
                false
            }
            '{' | '[' if !in_string => {
                depth += 1;
                false
            }
            '}' | ']' if !in_string => {
                depth = depth.saturating_sub(1);
                false
            }
            ',' => !in_string && depth <= DEEPEST,
            _ => false,
        };
        if ends_line {
            out.push('\n');
        }
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// The first line in which two texts differ, with the text around the difference.
fn first_difference(recorded: &str, found: &str) -> String {
    let mut lines = (recorded.lines(), found.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (lines.0.next(), lines.1.next()) {
            (Some(one), Some(other)) if one == other => {}
            (None, None) => return "they differ in how lines end".to_owned(),
            (one, other) => {
                let at = shared_chars(one.unwrap_or_default(), other.unwrap_or_default());
                let shown = |line: Option<&str>| match line {
                    None => "(no such line)".to_owned(),
                    Some(line) => {
                        line.chars().skip(at.saturating_sub(SHOWN_CHARS / 4)).take(SHOWN_CHARS).collect()
                    }
                };
                return format!(
                    "line {number} differs at character {at}\n  recorded: {}\n  found:    {}",
                    shown(one),
                    shown(other)
                );
            }
        }
    }
}

fn shared_chars(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    //! Splitting JSON, and the description of differences.

    use super::*;

    #[test]
    fn json_lines_lose_no_byte() {
        let json = "{\"a\":[1,{\"b\":\"x\\ny, \\\"z\\\\\"}],\n \"c\":{\"d\":[[1,2],3]}}";
        let lines = json_lines(json);
        assert_eq!(lines, "{\"a\":[1,\n{\"b\":\"x\\n\ny, \\\"z\\\\\"}],\n␊\n \"c\":{\"d\":[[1,2],\n3]}}\n");
        // Breaks of the original are marked; all others were inserted.
        assert_eq!(lines.replace("␊\n", "␊").replace('\n', "").replace('␊', "\n"), json);
    }

    #[test]
    fn first_difference_names_line_and_place() {
        let told = first_difference("a\nbcd\n", "a\nbxd\n");
        assert!(told.starts_with("line 2 differs at character 1"), "{told}");
        assert!(first_difference("a\n", "a\nb\n").contains("(no such line)"));
        assert_eq!(first_difference("a\n", "a"), "they differ in how lines end");
    }
}
