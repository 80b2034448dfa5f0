//! Values next to names: `NAME=value`, JSON, YAML, TOML, INI, headers, flags, arguments, tags.
//!
//! A keyword hit is extended to the whole name, the name is classified, and only then is the value read. Most hits end at the first step,
//! because no separator follows.

use std::ops::Range;

use crate::boundary;
use crate::name::{self, NameWords, SecretName};
use crate::scan::SecretScan;
use crate::value::Setting;

/// The maximum length of a name on either side of the keyword.
const MAX_NAME_SIDE_BYTES: usize = 64;
/// The maximum gap between a name, its separator and the value.
const MAX_GAP_BYTES: usize = 24;
/// The maximum length of a value; no secret outside a key block is longer.
const MAX_VALUE_BYTES: usize = 8192;

/// A name with an assigned value.
#[derive(Debug)]
pub(crate) struct Assignment<'t> {
    /// The name, split into words.
    pub(crate) words: NameWords<'t>,
    /// The kind of secret that the name indicates.
    pub(crate) announces: SecretName,
    /// The range of the value, without quotes.
    pub(crate) value: Range<usize>,
    /// The context in which it is written.
    pub(crate) setting: Setting,
}

impl Assignment<'_> {
    /// Whether an argument repeats the name: `("authPass", "authPass")`.
    pub(crate) fn repeats_name(&self, value: &str) -> bool {
        let same = || NameWords::split(value).as_slice() == self.words.as_slice();
        self.setting == Setting::Argument && same()
    }
}

/// The separator between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Equals {
        spaced: bool,
    },
    Colon,
    /// `=>`, `:=`: only a quoted value counts.
    QuotedOnly,
    /// `==`, `!=`: only a quoted value counts.
    Comparison,
    /// `,` after a quoted name: only another quoted argument counts.
    Comma,
    /// `<name>`.
    Tag,
    /// A blank: a flag, or a quoted value as in SQL.
    Blank,
}

/// Reads the assignment around the keyword at `hit`, if there is one.
pub(crate) fn read<'t>(scan: &mut SecretScan<'t>, hit: Range<usize>) -> Option<Assignment<'t>> {
    let (text, bytes) = (scan.text, scan.bytes());
    let name_end = name_end(bytes, hit.end)?;
    if name_end == scan.last_name_end {
        return None;
    }
    scan.last_name_end = name_end;
    let (separator, quoted_name, mut value_at) =
        value_of_pair(bytes, name_end).or_else(|| separator_after(bytes, name_end))?;
    let name_start = name_start(bytes, hit.start);
    let opening = name_start.checked_sub(1).map_or(b'\n', |index| bytes[index]);
    let is_possible = match separator {
        Separator::Tag => opening == b'<',
        // A part of a colon-separated identifier: `arn:aws:...:secret:name`.
        Separator::Colon if !quoted_name => opening != b':',
        // `"password": "x"`, but not the branches of `kind ? "password" : "text"`.
        Separator::Colon => before_quote(bytes, name_start) != Some(b'?'),
        // The first argument of a call or the first of a pair, not any word of a list.
        Separator::Comma => matches!(opening, b'"' | b'\'') && before_quote(bytes, name_start) == Some(b'('),
        _ => true,
    };
    if !is_possible {
        return None;
    }
    let full_name = text.get(name_start..name_end)?;
    let is_flag = full_name.starts_with('-') && !quoted_name;
    let words = NameWords::split(full_name);
    let announces = match name::classify(&words)? {
        SecretName::OnlyNamed => {
            key_after_blank(text, name_start, full_name).unwrap_or(SecretName::OnlyNamed)
        }
        announces => announces,
    };
    if separator == Separator::Blank && !is_flag {
        // Only a typed declaration or a quoted value can follow: `var token string = "..."`, `PASSWORD '...'`.
        match typed_value(bytes, value_at) {
            Some(after_type) => value_at = after_type,
            None if matches!(announces, SecretName::Password | SecretName::Passphrase)
                && matches!(bytes.get(value_at), Some(b'\'' | b'"')) => {}
            None => return None,
        }
    } else if separator == Separator::Colon {
        value_at = typed_value(bytes, value_at).unwrap_or(value_at);
    }
    if let Some(value) = quoted_value(bytes, value_at, quoted_name) {
        let is_loose = matches!(separator, Separator::Comma | Separator::Comparison);
        let setting = if is_loose { Setting::Argument } else { Setting::Quoted };
        return Some(Assignment { words, announces, value, setting });
    }
    if matches!(separator, Separator::QuotedOnly | Separator::Comparison | Separator::Comma)
        || (quoted_name && separator == Separator::Colon)
    {
        // A JSON value without quotes is a number or a literal; masking it would also break the JSON.
        return None;
    }
    let setting = match separator {
        Separator::Blank => Setting::Flag,
        Separator::Equals { spaced: false } if matches!(opening, b'?' | b'&' | b';') => Setting::Parameter,
        Separator::Equals { spaced: false } if is_flag => Setting::Flag,
        Separator::Equals { spaced: false }
            if stands_alone(bytes, name_start) || is_upper_case(full_name) =>
        {
            Setting::Environment
        }
        // `POSTGRES_PASSWORD: postgres`, an environment written as YAML.
        Separator::Colon if is_upper_case(full_name) && stands_alone(bytes, name_start) => {
            Setting::Environment
        }
        _ => Setting::ConfigLine,
    };
    let value = bare_value(scan, value_at, setting)?;
    let setting = settle(bytes, &value, setting);
    Some(Assignment { words, announces, value, setting })
}

/// Returns the byte before the quote that opens a name, ignoring blanks.
fn before_quote(bytes: &[u8], name_start: usize) -> Option<u8> {
    let quote = name_start.checked_sub(1)?;
    bytes[..quote].iter().rev().take(MAX_GAP_BYTES).copied().find(|byte| !is_blank(*byte) && *byte != b'\\')
}

/// Returns the end of the name, or `None` if it is too long.
fn name_end(bytes: &[u8], from: usize) -> Option<usize> {
    let run = bytes[from..].iter().take(MAX_NAME_SIDE_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    let mut end = from + run;
    while end > from && bytes[end - 1] == b'-' {
        end -= 1;
    }
    (run < MAX_NAME_SIDE_BYTES).then_some(end)
}

/// Returns the start of the name, without an escape before it.
fn name_start(bytes: &[u8], from: usize) -> usize {
    let run = bytes[..from]
        .iter()
        .rev()
        .take(MAX_NAME_SIDE_BYTES)
        .take_while(|byte| is_name_byte(**byte) || **byte == b'.')
        .count();
    let start = from - run;
    let after_escape =
        start > 0 && start < from && bytes[start - 1] == b'\\' && matches!(bytes[start], b'n' | b'r' | b't');
    if after_escape { start + 1 } else { start }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Skips blanks, up to a limit.
fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    from + bytes[from.min(bytes.len())..]
        .iter()
        .take(MAX_GAP_BYTES)
        .take_while(|byte| is_blank(**byte))
        .count()
}

/// Returns the quote at `at`, with the number of backslashes before it.
fn quote_at(bytes: &[u8], at: usize) -> Option<(usize, u8)> {
    let escapes = bytes[at.min(bytes.len())..].iter().take(8).take_while(|byte| **byte == b'\\').count();
    match bytes.get(at + escapes) {
        // Pairs of backslashes escape each other, and the quote closes the surrounding string.
        Some(_) if escapes > 0 && escapes.is_multiple_of(2) => None,
        Some(quote @ (b'"' | b'\'' | b'`')) => Some((escapes, *quote)),
        _ => None,
    }
}

/// Returns what follows a name: the separator, whether the name itself was quoted, and where the value may start.
fn separator_after(bytes: &[u8], name_end: usize) -> Option<(Separator, bool, usize)> {
    let mut at = name_end;
    let mut quoted_name = false;
    if let Some((escapes, _)) = quote_at(bytes, at) {
        quoted_name = true;
        at += escapes + 1;
    }
    while matches!(bytes.get(at), Some(b']' | b'[' | b'*')) && at < name_end + 8 {
        at += 1;
    }
    let after_blanks = skip_blanks(bytes, at);
    let spaced = after_blanks > at;
    let next = |offset: usize| bytes.get(after_blanks + offset).copied();
    let (separator, width) = match (next(0)?, next(1)) {
        (b'=', Some(b'>')) | (b':', Some(b'=')) | (b'?', Some(b'=')) | (b'+', Some(b'=')) => {
            (Separator::QuotedOnly, 2)
        }
        (b'=' | b'!', Some(b'=')) => (Separator::Comparison, if next(2) == Some(b'=') { 3 } else { 2 }),
        (b'=', Some(b'~')) | (b':', Some(b':')) => return None,
        (b'=', _) => (Separator::Equals { spaced }, 1),
        (b'?' | b'!', Some(b':')) => (Separator::Colon, 2),
        (b':', _) => (Separator::Colon, 1),
        (b'|', Some(b'|')) if next(2) == Some(b'=') => (Separator::QuotedOnly, 3),
        (b',', _) if quoted_name => return argument_after(bytes, after_blanks + 1),
        (b'>', _) if !quoted_name && !spaced => (Separator::Tag, 1),
        // The fullwidth colon and equals sign of East Asian text.
        (0xEF, Some(0xBC)) if matches!(next(2), Some(0x9A | 0x9D)) => (Separator::Colon, 3),
        _ if spaced => (Separator::Blank, 0),
        _ => return None,
    };
    let value_at = skip_blanks(bytes, after_blanks + width);
    let separator = match separator {
        Separator::Equals { spaced: false } if value_at > after_blanks + width => {
            Separator::Equals { spaced: true }
        }
        other => other,
    };
    Some((separator, quoted_name, value_at))
}

/// Returns the next argument after a quoted name and a comma, or the `value` of a name/value pair.
fn argument_after(bytes: &[u8], from: usize) -> Option<(Separator, bool, usize)> {
    let at = from + bytes[from..].iter().take(48).take_while(|byte| byte.is_ascii_whitespace()).count();
    let (escapes, quote) = quote_at(bytes, at)?;
    let inner = at + escapes + 1;
    let is_value = bytes.get(inner..inner + 5).is_some_and(|word| word.eq_ignore_ascii_case(b"value"));
    if is_value {
        let close = inner + 5;
        let (more, closing) = quote_at(bytes, close)?;
        if closing == quote {
            let colon = skip_blanks(bytes, close + more + 1);
            if bytes.get(colon) == Some(&b':') {
                return Some((Separator::QuotedOnly, true, skip_blanks(bytes, colon + 1)));
            }
        }
    }
    Some((Separator::Comma, true, at))
}

/// Returns the other half of a pair: `name: X` with `value: ...` on the next line, or `key="X" value="..."`.
fn value_of_pair(bytes: &[u8], name_end: usize) -> Option<(Separator, bool, usize)> {
    let quoted = quote_at(bytes, name_end).map_or(0, |(escapes, _)| escapes + 1);
    let mut at = skip_blanks(bytes, name_end + quoted);
    if quoted == 0 && !matches!(bytes.get(at), Some(b'\r' | b'\n')) {
        return None;
    }
    if bytes.get(at) == Some(&b'\r') {
        at += 1;
    }
    if bytes.get(at) == Some(&b'\n') {
        at = skip_blanks(bytes, at + 1);
    }
    if !bytes.get(at..at + 5)?.eq_ignore_ascii_case(b"value") {
        return None;
    }
    let separator = skip_blanks(bytes, at + 5);
    matches!(bytes.get(separator), Some(b':' | b'='))
        .then(|| (Separator::Equals { spaced: true }, false, skip_blanks(bytes, separator + 1)))
}

/// Returns the start of the value after a type annotation (`: str = "x"`, ` string = "x"`).
fn typed_value(bytes: &[u8], from: usize) -> Option<usize> {
    const MAX_TYPE_BYTES: usize = 48;
    let is_type_byte = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'_' | b'<' | b'>' | b'[' | b']' | b'&' | b'\'' | b'|' | b'?' | b'.' | b'*' | b' ' | b':'
            )
    };
    let first = *bytes.get(from)?;
    if !(first.is_ascii_alphabetic() || matches!(first, b'&' | b'*' | b'[')) {
        return None;
    }
    let run = bytes[from..].iter().take(MAX_TYPE_BYTES).take_while(|byte| is_type_byte(**byte)).count();
    let equals = from + run;
    let assigns =
        bytes.get(equals) == Some(&b'=') && !matches!(bytes.get(equals + 1), Some(b'=' | b'>' | b'~'));
    (assigns && bytes[equals - 1] == b' ').then(|| skip_blanks(bytes, equals + 1))
}

/// For `api key: ...` in prose: classifies by the word before the blank.
fn key_after_blank(text: &str, name_start: usize, full_name: &str) -> Option<SecretName> {
    if !full_name.eq_ignore_ascii_case("key") || !text[..name_start].ends_with(' ') {
        return None;
    }
    let bytes = text.as_bytes();
    let before_end = name_start - 1;
    let before_start = before_end
        - bytes[..before_end].iter().rev().take(16).take_while(|b| b.is_ascii_alphabetic()).count();
    name::is_key_qualifier(&text[before_start..before_end]).then_some(SecretName::Key)
}

/// Returns the inside of a quoted string that starts at `from` and ends on the same line.
fn quoted_value(bytes: &[u8], from: usize, quoted_name: bool) -> Option<Range<usize>> {
    let mut at = from;
    // String prefixes: b"", r'', f"", u"", @"", L"", &""; a call such as String::from( is not one.
    let prefix = bytes[at.min(bytes.len())..]
        .iter()
        .take(2)
        .take_while(|byte| {
            matches!(byte, b'b' | b'r' | b'f' | b'u' | b'B' | b'R' | b'F' | b'U' | b'@' | b'L' | b'&' | b'#')
        })
        .count();
    if prefix > 0 && quote_at(bytes, at + prefix).is_some() {
        at += prefix;
    }
    let (escapes, quote) = quote_at(bytes, at)?;
    let mut start = at + escapes + 1;
    let triple = escapes == 0 && bytes.get(start) == Some(&quote) && bytes.get(start + 1) == Some(&quote);
    if triple {
        start += 2;
    }
    let end = closing_quote(bytes, start, escapes, quote)?;
    // A quote that closes a string which ends in a name: `"Password:") + f("`.
    let is_between_strings = matches!(bytes[start], b')' | b'+' | b',' | b';' | b'}' | b']' | b'.')
        && bytes[start..end].iter().any(|byte| matches!(byte, b'(' | b'{' | b'['));
    (end > start && (quoted_name || !is_between_strings)).then_some(start..end)
}

/// Returns the end of the string that began with `escapes` backslashes and `quote`.
fn closing_quote(bytes: &[u8], from: usize, escapes: usize, quote: u8) -> Option<usize> {
    let limit = bytes.len().min(from + MAX_VALUE_BYTES);
    let mut at = from;
    while at < limit {
        match bytes[at] {
            b'\n' | b'\r' => return None,
            b'\\' => {
                let run = bytes[at..limit].iter().take_while(|byte| **byte == b'\\').count();
                let after = bytes.get(at + run).copied();
                if after == Some(quote) && escapes > 0 {
                    if run.is_multiple_of(2) {
                        // Pairs of backslashes: the quote is not escaped and ends the surrounding string.
                        return Some(at + run);
                    }
                    if run <= escapes {
                        return Some(at);
                    }
                }
                // Escaped line breaks end a line as real ones do, one level of quoting deeper.
                if escapes > 0 && run <= escapes && matches!(after, Some(b'n' | b'r')) {
                    return None;
                }
                at += if escapes == 0 { run + usize::from(run % 2 == 1) } else { run + 1 };
            }
            // After an escaped opening quote, a plain quote closes the surrounding string.
            byte if byte == quote => return Some(at),
            b'"' if closes_json_string(bytes, at) => return None,
            _ => at += 1,
        }
    }
    None
}

/// Whether the double quote at `at`, inside other quotes, closes a JSON string rather than being content.
fn closes_json_string(bytes: &[u8], at: usize) -> bool {
    let next = skip_blanks(bytes, at + 1);
    matches!(bytes.get(next), None | Some(b',' | b':' | b'}' | b']' | b'\n' | b'\r'))
}

/// Returns the unquoted value at `from`.
fn bare_value(scan: &mut SecretScan<'_>, from: usize, setting: Setting) -> Option<Range<usize>> {
    let bytes = scan.bytes();
    // An unpaired quote is not part of the value.
    let start = from + usize::from(matches!(bytes.get(from), Some(b'"' | b'\'' | b'`')));
    let is_environment = setting == Setting::Environment;
    let memo = if is_environment { &mut scan.environment_run } else { &mut scan.value_run };
    let mut end = memo.end_of(start, |at| at + bare_run(&bytes[at.min(bytes.len())..], is_environment));
    end = end.min(start + MAX_VALUE_BYTES);
    if is_environment {
        end = connection_string_part(bytes, start, end);
    }
    while end > start && matches!(bytes[end - 1], b',' | b';' | b'.' | b':' | b')' | b']' | b'}') {
        // A closing bracket stays if it opened within the value.
        if matches!(bytes[end - 1], b')' | b']' | b'}')
            && bytes[start..end].contains(&opening_of(bytes[end - 1]))
        {
            break;
        }
        end -= 1;
    }
    (end > start).then_some(start..end)
}

/// Returns the end of the value if it is the first part of `Password=x;Database=y`, or else `end`.
fn connection_string_part(bytes: &[u8], start: usize, end: usize) -> usize {
    let Some(semicolon) = bytes[start..end].iter().take(128).position(|byte| *byte == b';') else {
        return end;
    };
    let next = start + semicolon + 1;
    let name =
        bytes[next..].iter().take(32).take_while(|byte| byte.is_ascii_alphabetic() || **byte == b' ').count();
    if name > 0 && bytes.get(next + name) == Some(&b'=') { start + semicolon } else { end }
}

fn opening_of(closing: u8) -> u8 {
    match closing {
        b')' => b'(',
        b']' => b'[',
        _ => b'{',
    }
}

/// Returns the length of the unquoted run at the start of `bytes`. In an environment file only blanks and quotes end it.
fn bare_run(bytes: &[u8], is_environment: bool) -> usize {
    let mut at = 0;
    while at < bytes.len() && at < MAX_VALUE_BYTES {
        match bytes[at] {
            0..=0x20 | 0x7f | b'"' | b'\'' | b'`' => break,
            b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'u')) => {
                break;
            }
            b',' | b';' | b'&' | b'|' | b'<' | b'>' if !is_environment => break,
            // Everything from U+2000 up (punctuation, ideographs, emoji) and the no-break space.
            0xE2..=0xFF => break,
            0xC2 if bytes.get(at + 1) == Some(&0xA0) => break,
            _ => at += 1,
        }
    }
    at
}

/// Whether only indentation, a list dash, a comment, a diff sign, `export` or a line number precedes the name.
fn stands_alone(bytes: &[u8], name_start: usize) -> bool {
    let line = boundary::line_start(bytes, name_start, 48);
    let before = &bytes[line..name_start];
    let decoration = |word: &[u8]| {
        matches!(
            word,
            b"export"
                | b"set"
                | b"setx"
                | b"ENV"
                | b"ARG"
                | b"-e"
                | b"--env"
                | b"env"
                | b"-"
                | b"+"
                | b"#"
                | b"//"
                | b"declare"
                | b"-x"
                | b"local"
                | b"let"
        ) || word.iter().all(|byte| !byte.is_ascii_alphabetic())
    };
    boundary::is_line_start(bytes, line)
        && before.split(|byte| is_blank(*byte)).all(|word| word.is_empty() || decoration(word))
}

fn is_upper_case(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase()) && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Decides what a bare value is once its end is known: code continues after it, configuration does not.
fn settle(bytes: &[u8], value: &Range<usize>, setting: Setting) -> Setting {
    if setting == Setting::ConfigLine && bytes.get(value.end) == Some(&b';') && bytes[value.start - 1] == b'='
    {
        // The first of `Password=x;Database=y`.
        return Setting::Parameter;
    }
    let goes_on_like_code = matches!(bytes.get(value.end), Some(b',' | b';' | b')' | b'(' | b'[' | b'{'));
    let follows_equals = bytes[value.start - 1] == b'=';
    let ends_line = || {
        let blanks =
            bytes[value.end..].iter().take(MAX_GAP_BYTES).take_while(|byte| is_blank(**byte)).count();
        let after = bytes.get(value.end + blanks);
        matches!(after, None | Some(b'\n' | b'\r' | b'#' | b'"' | b'\'' | b'\\' | b'<'))
    };
    match setting {
        Setting::Environment if matches!(bytes.get(value.end), Some(b',' | b')')) => Setting::Bare,
        Setting::ConfigLine if goes_on_like_code => Setting::Bare,
        Setting::Environment | Setting::ConfigLine if !follows_equals && !ends_line() => Setting::Bare,
        other => other,
    }
}
