//! Splits texts into the tokens of a static model, from `tokenizer.json` as written by Hugging Face's tokenizers, with the three kinds of
//! vocabularies that such models use (WordPiece, BPE, Unigram).
//!
//! Implemented here rather than with the crate `tokenizers`, which has thirty dependencies: a vector is the mean of the vectors of its
//! tokens, so a rare difference in splitting gives nearly the same vector. Unicode normal forms other than case and accents are not
//! applied, and special tokens in a text are not recognised. Not for: counting tokens, which `throughline-tokens` does.

use std::collections::HashMap;

use serde_json::Value;

/// The start of a word in vocabularies made by SentencePiece.
const WORD_START: char = '\u{2581}';
/// Longer strings without a space are split: merging is quadratic in the length of a word.
const MAX_WORD_CHARS: usize = 64;

/// A tokenizer.
#[derive(Debug)]
pub(super) struct Tokenizer {
    vocabulary: Vocabulary,
    words: WordForm,
    lowercase: bool,
    strip_accents: bool,
}

#[derive(Debug)]
enum Vocabulary {
    WordPiece { ids: HashMap<String, u32>, prefix: String },
    Bpe { ids: HashMap<String, u32>, merges: Merges },
    Unigram { pieces: HashMap<String, (u32, f64)>, longest: usize },
}

/// How a text is split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordForm {
    /// By white space and punctuation.
    Plain,
    /// The space before a word is a character of it.
    Metaspace,
    /// As `Metaspace`, and every byte is written as a printable character.
    Bytes,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    pub(super) fn read(json: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|error| format!("not JSON: {error}"))?;
        let (normalizer, pre_tokenizer) = (&value["normalizer"], &value["pre_tokenizer"]);
        let model = &value["model"];
        let words = if holds_type(pre_tokenizer, "ByteLevel") || holds_type(normalizer, "ByteLevel") {
            WordForm::Bytes
        } else if holds_type(pre_tokenizer, "Metaspace") || holds_type(normalizer, "Prepend") {
            WordForm::Metaspace
        } else {
            WordForm::Plain
        };
        let lowercase = holds_type(normalizer, "Lowercase") || holds_flag(normalizer, "lowercase");
        let bert = holds_type(normalizer, "BertNormalizer");
        let kind =
            model["type"].as_str().unwrap_or(if model["merges"].is_array() { "BPE" } else { "WordPiece" });
        let vocabulary = match kind {
            "WordPiece" => Vocabulary::WordPiece {
                ids: ids_of(&model["vocab"])?,
                prefix: model["continuing_subword_prefix"].as_str().unwrap_or("##").to_owned(),
            },
            "BPE" => {
                let ids = ids_of(&model["vocab"])?;
                let merges = merges_of(&model["merges"], &ids)?;
                Vocabulary::Bpe { ids, merges }
            }
            "Unigram" => {
                let list = model["vocab"].as_array().ok_or("it has no list of pieces")?;
                let pieces: HashMap<String, (u32, f64)> = list
                    .iter()
                    .zip(0..)
                    .filter_map(|(piece, id)| {
                        Some((piece.get(0)?.as_str()?.to_owned(), (id, piece.get(1)?.as_f64()?)))
                    })
                    .collect();
                let longest = pieces.keys().map(|piece| piece.chars().count()).max().unwrap_or(1);
                Vocabulary::Unigram { pieces, longest }
            }
            other => return Err(format!("models of the type `{other}` are not supported")),
        };
        Ok(Self {
            vocabulary,
            words,
            lowercase,
            strip_accents: holds_type(normalizer, "StripAccents")
                || holds_flag(normalizer, "strip_accents")
                || (bert && lowercase),
        })
    }

    /// Returns the known tokens of a text.
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(text.len() / 3);
        let mut normal = String::with_capacity(text.len());
        for c in text.chars() {
            match self.lowercase {
                true => c.to_lowercase().for_each(|c| self.push_normal(c, &mut normal)),
                false => self.push_normal(c, &mut normal),
            }
        }
        match self.words {
            WordForm::Plain => plain_words(&normal, |word| self.encode_word(word, &mut tokens)),
            WordForm::Metaspace => {
                let marked = format!("{WORD_START}{}", normal.replace(' ', "\u{2581}"));
                each_word(&marked, WORD_START, |word| self.encode_word(word, &mut tokens));
            }
            WordForm::Bytes => {
                let shown: String = normal.bytes().map(byte_char).collect();
                each_word(&shown, byte_char(b' '), |word| self.encode_word(word, &mut tokens));
            }
        }
        tokens
    }

    fn push_normal(&self, c: char, normal: &mut String) {
        if !self.strip_accents {
            return normal.push(c);
        }
        // The accents of Latin letters; combining marks are removed.
        match c {
            '\u{300}'..='\u{36f}' => {}
            'à'..='å' => normal.push('a'),
            'ç' => normal.push('c'),
            'è'..='ë' => normal.push('e'),
            'ì'..='ï' => normal.push('i'),
            'ñ' => normal.push('n'),
            'ò'..='ö' => normal.push('o'),
            'ù'..='ü' => normal.push('u'),
            'ý' | 'ÿ' => normal.push('y'),
            other => normal.push(other),
        }
    }

    fn encode_word(&self, word: &str, tokens: &mut Vec<u32>) {
        let characters: Vec<&str> = word.split_inclusive(|_: char| true).collect();
        for characters in characters.chunks(MAX_WORD_CHARS) {
            match &self.vocabulary {
                Vocabulary::WordPiece { ids, prefix } => word_pieces(characters, ids, prefix, tokens),
                Vocabulary::Bpe { ids, merges } => merge(characters, ids, merges, tokens),
                Vocabulary::Unigram { pieces, longest } => best_pieces(characters, pieces, *longest, tokens),
            }
        }
    }
}

fn holds_type(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get("type").is_some_and(|kind| kind == wanted)
                || members.values().any(|member| holds_type(member, wanted))
        }
        Value::Array(values) => values.iter().any(|value| holds_type(value, wanted)),
        _ => false,
    }
}

fn holds_flag(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get(name).is_some_and(|flag| flag == true)
                || members.values().any(|member| holds_flag(member, name))
        }
        Value::Array(values) => values.iter().any(|value| holds_flag(value, name)),
        _ => false,
    }
}

fn ids_of(vocabulary: &Value) -> Result<HashMap<String, u32>, String> {
    let members = vocabulary.as_object().ok_or("it has no vocabulary")?;
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    members
        .iter()
        .map(|(token, value)| {
            Ok((token.clone(), id(value).ok_or_else(|| format!("`{token}` has no number"))?))
        })
        .collect()
}

/// Two adjacent tokens, with their merge rank and the resulting token.
type Merges = HashMap<(u32, u32), (u32, u32)>;

fn merges_of(merges: &Value, ids: &HashMap<String, u32>) -> Result<Merges, String> {
    let list = merges.as_array().ok_or("it has no merges")?;
    let mut found = HashMap::with_capacity(list.len());
    for (merge, rank) in list.iter().zip(0_u32..) {
        let (first, second) = match merge {
            Value::String(pair) => pair.split_once(' ').unwrap_or_default(),
            pair => (pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default()),
        };
        let whole = format!("{first}{second}");
        if let (Some(first), Some(second), Some(whole)) = (ids.get(first), ids.get(second), ids.get(&whole)) {
            found.entry((*first, *second)).or_insert((rank, *whole));
        }
    }
    Ok(found)
}

/// Splits into words as BERT does: at white space, with every punctuation sign and every ideograph as a word.
fn plain_words(text: &str, mut each: impl FnMut(&str)) {
    for run in text.split_whitespace() {
        let mut from = 0;
        for (at, c) in run.char_indices() {
            let is_ideograph =
                matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
            let is_sign = !c.is_alphanumeric() && !matches!(c, '\u{300}'..='\u{36f}');
            if is_ideograph || is_sign {
                if from < at {
                    each(run.get(from..at).unwrap_or_default());
                }
                each(run.get(at..at + c.len_utf8()).unwrap_or_default());
                from = at + c.len_utf8();
            }
        }
        if from < run.len() {
            each(run.get(from..).unwrap_or_default());
        }
    }
}

/// Splits into words that start with the sign of a space.
fn each_word(text: &str, space: char, mut each: impl FnMut(&str)) {
    let mut from = 0;
    let mut before = space;
    for (at, c) in text.char_indices() {
        if c == space && before != space {
            each(text.get(from..at).unwrap_or_default());
            from = at;
        }
        before = c;
    }
    if from < text.len() {
        each(text.get(from..).unwrap_or_default());
    }
}

/// The character that represents a byte in vocabularies of bytes.
fn byte_char(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=b' ' => char::from_u32(0x100 + u32::from(byte)).unwrap_or(' '),
        0x7f..=0xa0 => char::from_u32(0x121 + u32::from(byte) - 0x7f).unwrap_or(' '),
        0xad => '\u{143}',
    }
}

/// Adds the longest pieces, from the left. A word with a part that matches no piece has none.
fn word_pieces(characters: &[&str], ids: &HashMap<String, u32>, prefix: &str, tokens: &mut Vec<u32>) {
    let mut from = 0;
    let before = tokens.len();
    while from < characters.len() {
        let fitting = (from + 1..=characters.len()).rev().find_map(|to| {
            let piece = characters.get(from..to)?.concat();
            let piece = if from == 0 { piece } else { format!("{prefix}{piece}") };
            ids.get(&piece).map(|id| (*id, to))
        });
        let Some((id, to)) = fitting else {
            tokens.truncate(before);
            return;
        };
        tokens.push(id);
        from = to;
    }
}

/// Merges pairs in the order in which the vocabulary was built. Unknown characters are replaced by their bytes, if the vocabulary has them.
fn merge(characters: &[&str], ids: &HashMap<String, u32>, merges: &Merges, tokens: &mut Vec<u32>) {
    let mut parts: Vec<u32> = Vec::with_capacity(characters.len());
    for character in characters {
        match ids.get(*character) {
            Some(id) => parts.push(*id),
            None => parts
                .extend(character.bytes().filter_map(|byte| ids.get(&format!("<0x{byte:02X}>")).copied())),
        }
    }
    loop {
        let best = parts
            .windows(2)
            .enumerate()
            .filter_map(|(at, pair)| match pair {
                [first, second] => merges.get(&(*first, *second)).map(|(rank, whole)| (*rank, at, *whole)),
                _ => None,
            })
            .min();
        let Some((_, at, whole)) = best else { break };
        parts.remove(at);
        if let Some(part) = parts.get_mut(at) {
            *part = whole;
        }
    }
    tokens.extend(parts);
}

/// The cost of a character without a matching piece: more than any piece.
const UNKNOWN_COST: f64 = 30.0;

/// Adds the most probable sequence of pieces.
fn best_pieces(
    characters: &[&str],
    pieces: &HashMap<String, (u32, f64)>,
    longest: usize,
    tokens: &mut Vec<u32>,
) {
    // For every position the best path: its score, the start of the last piece, and that piece.
    let mut best: Vec<(f64, usize, Option<u32>)> = vec![(0.0, 0, None)];
    for end in 1..=characters.len() {
        let unknown = best.get(end - 1).map_or(0.0, |(score, ..)| *score) - UNKNOWN_COST;
        let mut found = (unknown, end - 1, None);
        for start in end.saturating_sub(longest)..end {
            let piece = characters.get(start..end).unwrap_or_default().concat();
            if let (Some((id, score)), Some((before, ..))) = (pieces.get(&piece), best.get(start))
                && before + score > found.0
            {
                found = (before + score, start, Some(*id));
            }
        }
        best.push(found);
    }
    let mut found = Vec::new();
    let mut at = characters.len();
    while at > 0 {
        let Some((_, start, id)) = best.get(at) else { break };
        found.extend(*id);
        at = *start;
    }
    tokens.extend(found.into_iter().rev());
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;
