//! Splits the text of an error into lexemes: words, numbers with their unit, and the few signs that carry meaning.
//!
//! Providers write the same number as `131072`, `131,072`, `131 072` or `128k`, next to numbers without meaning: dates in names of models,
//! ids, codes, rates. Numbers are recognised only here, so that the grammar above does not have to. Not for: the meaning of a number.

/// The limit of lexemes; the rest of a longer text is never the reason.
const MOST_LEXEMES: usize = 1_500;

/// What a number counts, according to the word after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Tokens, or no unit.
    TokensOrBare,
    /// Characters of text.
    Characters,
    /// Bytes; the value is in bytes even if the text used a larger unit.
    Bytes,
    /// Seconds, requests, images, rates: never a size of text.
    Other,
}

/// One lexeme.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lexeme {
    /// A word in lower case; identifiers are not split.
    Word(String),
    /// A whole number.
    Number(u64, Unit),
    /// A fractional number, such as a wait.
    Fraction(f64),
    /// A comparison, an operation, a bracket, or the end of a sentence.
    Sign(&'static str),
}

/// Splits a text. Quotes, backticks, parentheses, commas and colons are dropped, because otherwise equal wordings differ in them.
pub(crate) fn lexemes(text: &str) -> Vec<Lexeme> {
    let plain = plain(text);
    let chars: Vec<char> = plain.chars().collect();
    let mut found = Vec::new();
    // Whether each lexeme is separated from the one before only by spaces: `300000, request` is not 300000 requests.
    let mut adjoining = Vec::new();
    let (mut at, mut parted) = (0, false);
    while at < chars.len() && found.len() < MOST_LEXEMES {
        parted |= !matches!(chars[at], ' ' | '\t' | '/') && !chars[at].is_alphanumeric();
        at = next(&chars, at, &mut found);
        if found.len() > adjoining.len() {
            adjoining.resize(found.len(), !parted);
            parted = false;
        }
    }
    assign_units(&mut found, &adjoining);
    found
}

/// Converts to lower case, ASCII digits and one kind of apostrophe, so that full-width and typographic forms are equal.
fn plain(text: &str) -> String {
    let forms = text.chars().map(|c| match c {
        '０'..='９' => char::from_u32(c as u32 - '０' as u32 + '0' as u32).unwrap_or(c),
        '’' | '‘' | 'ʼ' => '\'',
        '，' => ',',
        '。' | '；' => '.',
        '：' => ':',
        '＞' => '>',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => '\u{202f}',
        _ => c,
    });
    forms.flat_map(char::to_lowercase).collect()
}

fn next(chars: &[char], at: usize, found: &mut Vec<Lexeme>) -> usize {
    let c = chars[at];
    if c.is_alphanumeric() || c == '_' {
        let end = run_end(chars, at);
        push_run(&chars[at..end], found);
        return end;
    }
    let two = chars.get(at + 1).is_some_and(|next| *next == '=');
    let (sign, used) = match (c, two) {
        ('>', true) => (">=", 2),
        ('<', true) => ("<=", 2),
        ('>', false) => (">", 1),
        ('<', false) => ("<", 1),
        ('≥', _) => (">=", 1),
        ('≤', _) => ("<=", 1),
        ('+', _) => ("+", 1),
        ('-' | '−', _) => ("-", 1),
        ('=', _) => ("=", 1),
        ('[', _) => ("[", 1),
        (']', _) => ("]", 1),
        ('.' | ';' | '!', _) => (".", 1),
        _ => return at + 1,
    };
    if found.last() != Some(&Lexeme::Sign(sign)) {
        found.push(Lexeme::Sign(sign));
    }
    at + used
}

/// Returns the end of a run of characters that belong together: a word, an identifier, a number with separators.
fn run_end(chars: &[char], start: usize) -> usize {
    let mut end = start;
    while let Some(&c) = chars.get(end) {
        let joins = match c {
            _ if c.is_alphanumeric() || c == '_' => true,
            // A separator joins the characters on both of its sides; dots join only numbers, thin spaces and commas only digits.
            '-' | '/' | '\'' => chars.get(end + 1).is_some_and(|next| next.is_alphanumeric()),
            '.' => chars.get(end + 1).is_some_and(char::is_ascii_digit),
            ',' | '\u{202f}' => joins_digits(chars, end),
            _ => false,
        };
        if !joins {
            break;
        }
        end += 1;
    }
    end
}

/// Whether a comma or thin space is between a digit and two or three digits, as in `131,072` but not in `1, 2`.
fn joins_digits(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|index| chars.get(index)).is_some_and(char::is_ascii_digit);
    let after = chars.iter().skip(at + 1).take_while(|c| c.is_ascii_digit()).count();
    before && matches!(after, 2 | 3)
}

fn push_run(run: &[char], found: &mut Vec<Lexeme>) {
    let text: String = run.iter().collect();
    if let Some(number) = whole_number(&text) {
        found.push(Lexeme::Number(number, Unit::TokensOrBare));
        return;
    }
    if let Some((number, unit)) = number_with_suffix(&text) {
        found.push(Lexeme::Number(number, unit));
        return;
    }
    if let Some(fraction) = fraction(&text) {
        found.push(Lexeme::Fraction(fraction));
        return;
    }
    // `131072-65537` without spaces; the parts of a date such as `2026-02-01` are too short for that.
    let parts: Vec<&str> = text.split('-').collect();
    let sizes = parts.iter().all(|part| part.len() >= 4 && part.bytes().all(|b| b.is_ascii_digit()));
    if parts.len() > 1 && sizes {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                found.push(Lexeme::Sign("-"));
            }
            found.extend(part.parse().ok().map(|number| Lexeme::Number(number, Unit::TokensOrBare)));
        }
        return;
    }
    // `tokens/min` is three words; `anthropic/claude-x` and `claude-x-20250514` are names.
    if text.contains('/') && text.split('/').all(|part| part.chars().all(char::is_alphabetic)) {
        for part in text.split('/') {
            found.push(Lexeme::Word(part.to_owned()));
        }
        return;
    }
    found.push(Lexeme::Word(text));
}

/// Parses digits, or groups of digits with the same separator throughout.
fn whole_number(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok();
    }
    for separator in [',', '\u{202f}', '\'', '_', '.'] {
        let groups: Vec<&str> = text.split(separator).collect();
        let [first, middle @ .., last] = groups.as_slice() else { continue };
        let digits =
            groups.iter().all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
        // Groups of two are the Indian notation; the last group always has three.
        let grouped = first.len() <= 3
            && last.len() == 3
            && (middle.iter().all(|group| group.len() == 3) || middle.iter().all(|group| group.len() == 2));
        // A single dot may be a decimal point: `131.072` is ambiguous.
        let certain = separator != '.' || groups.len() > 2;
        if digits && grouped && certain {
            return groups.concat().parse().ok();
        }
    }
    None
}

/// Parses `128k`, `1m`, `5mb`, `20s`. A `k` is a thousand: if 1,024 was meant, the smaller value is safe.
fn number_with_suffix(text: &str) -> Option<(u64, Unit)> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, suffix) = text.split_at(at);
    let value: f64 = match whole_number(number) {
        Some(whole) => whole as f64,
        None => fraction(number)?,
    };
    let (factor, unit) = match suffix {
        "k" => (1e3, Unit::TokensOrBare),
        "m" => (1e6, Unit::TokensOrBare),
        "b" | "bytes" => (1.0, Unit::Bytes),
        "kb" | "kib" => (1024.0, Unit::Bytes),
        "mb" | "mib" => (1_048_576.0, Unit::Bytes),
        "gb" | "gib" => (1_073_741_824.0, Unit::Bytes),
        "px" => (1.0, Unit::Other),
        _ => return None,
    };
    let product = value * factor;
    (product.fract() == 0.0 && product < 1e15).then_some((product as u64, unit))
}

fn fraction(text: &str) -> Option<f64> {
    let (whole, rest) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if digits(whole) && digits(rest) { text.parse().ok() } else { None }
}

/// Assigns each number the unit given by the words right after it.
fn assign_units(found: &mut [Lexeme], adjoining: &[bool]) {
    for index in 0..found.len() {
        let Lexeme::Number(value, Unit::TokensOrBare) = found[index] else { continue };
        let after: Vec<&str> = found
            .iter()
            .zip(adjoining)
            .skip(index + 1)
            .take(5)
            .map_while(|(lexeme, adjoins)| match lexeme {
                Lexeme::Word(word) if *adjoins => Some(word.as_str()),
                _ => None,
            })
            .collect();
        let (value, unit) = unit_of(value, &after);
        found[index] = Lexeme::Number(value, unit);
    }
}

fn unit_of(value: u64, after: &[&str]) -> (u64, Unit) {
    match after {
        ["byte" | "bytes", ..] => (value, Unit::Bytes),
        ["kb" | "kib", ..] => (value.saturating_mul(1_024), Unit::Bytes),
        ["mb" | "mib", ..] => (value.saturating_mul(1_048_576), Unit::Bytes),
        ["gb" | "gib", ..] => (value.saturating_mul(1_073_741_824), Unit::Bytes),
        ["character" | "characters" | "chars", ..] => (value, Unit::Characters),
        [
            "s" | "sec" | "second" | "seconds" | "ms" | "milliseconds" | "minute" | "minutes" | "hour"
            | "hours" | "day" | "days" | "px" | "pixel" | "pixels" | "image" | "images" | "request"
            | "requests" | "rpm" | "tpm" | "tpd" | "rpd" | "messages" | "tools" | "times" | "retries"
            | "percent",
            ..,
        ] => (value, Unit::Other),
        // `60000 tokens per minute`, `30000 input tokens / min`.
        words if is_rate(words) => (value, Unit::Other),
        _ => (value, Unit::TokensOrBare),
    }
}

fn is_rate(words: &[&str]) -> bool {
    let near = words.iter().take(5);
    near.zip(words.iter().skip(1)).any(|(word, next)| {
        matches!(*next, "minute" | "min" | "hour" | "day" | "second" | "month")
            && matches!(*word, "per" | "a" | "tokens" | "token")
    })
}

#[cfg(test)]
#[path = "lexemes_tests.rs"]
mod tests;
