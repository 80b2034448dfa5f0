//! Sentences that must not be softened: what the person demands or corrects, and what was decided.

use std::sync::LazyLock;

/// Words by which people, in several languages, state a rule. Matched in lower case with word edges where the script
/// has them.
const RULE_CUES: &[&str] = &[
    "don't",
    "do not",
    "dont",
    "never",
    "always",
    "must ",
    "mustn't",
    "should not",
    "shouldn't",
    "only use",
    "only the",
    "make sure",
    "ensure",
    "avoid",
    "without ",
    "prefer",
    "instead of",
    "rather than",
    "keep ",
    "stick to",
    "no need to",
    "please use",
    "let's use",
    "use the ",
    "from now on",
    "not allowed",
    "at most",
    "at least",
    "leave ",
    "required",
    "constraint",
    "requirement",
    "important",
    "stop ",
    "only ",
    "nur ",
    "nicht ",
    "niemals",
    "immer ",
    "bitte ",
    "muss ",
    "ne pas",
    "jamais",
    "toujours",
    "nunca",
    "siempre",
    "debe ",
    "nunca",
    "sempre",
    "не ",
    "никогда",
    "всегда",
    "нужно",
    "不要",
    "必须",
    "别",
    "总是",
    "只能",
    "请用",
    "不能",
    "しないで",
    "必ず",
    "ないでください",
    "だけ",
    "하지 마",
    "반드시",
    "항상",
];

/// Words by which people correct what was done.
const CORRECTION_CUES: &[&str] = &[
    "no,",
    "no.",
    "wrong",
    "incorrect",
    "not what i",
    "actually",
    "revert",
    "undo",
    "that's not",
    "thats not",
    "you forgot",
    "you missed",
    "still ",
    "again",
    "instead",
    "i meant",
    "i said",
    "doesn't work",
    "does not work",
    "broken",
    "shouldn't",
    "falsch",
    "doch ",
    "faux",
    "mal ",
    "неправильно",
    "错",
    "不对",
    "違う",
    "틀렸",
];

/// Words by which a model states what it decided or found out.
const DECISION_CUES: &[&str] = &[
    "i'll use",
    "i will use",
    "decided",
    "decision",
    "the fix is",
    "fixed by",
    "root cause",
    "the issue is",
    "the problem is",
    "the bug",
    "because",
    "turns out",
    "chose",
    "instead of",
    "so that",
    "the cause",
    "this means",
    "approach",
    "trade-off",
    "the solution",
    "we should",
    "needs to",
    "should be",
    "therefore",
    "which is why",
    "confirmed",
    "found the",
];

/// Sentences of a text: by line, then by closing punctuation followed by space; list marks removed.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(split_line)
        .map(|s| s.trim().trim_start_matches(['-', '*', '•', '>', '#', ' ']).trim())
}

fn split_line(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut marks = line.char_indices().peekable();
    while let Some((at, c)) = marks.next() {
        let ends = match c {
            '.' | '!' | '?' => marks.peek().is_none_or(|(_, next)| next.is_whitespace()),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            pieces.push(line.get(start..end).unwrap_or_default());
            start = end;
        }
    }
    pieces.push(line.get(start..).unwrap_or_default());
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

/// Cues sorted by their first byte, so that each word of a sentence is held against the few that could match.
struct Cues {
    at_words: [Vec<&'static [u8]>; 256],
    anywhere: Vec<&'static str>,
}

impl Cues {
    fn new(cues: &'static [&'static str]) -> Self {
        let mut at_words = std::array::from_fn(|_| Vec::new());
        let mut anywhere = Vec::new();
        for cue in cues {
            match cue.bytes().next() {
                Some(first) if cue.is_ascii() => at_words[usize::from(first)].push(cue.as_bytes()),
                // Scripts without spaces have no word edges to look for.
                _ => anywhere.push(*cue),
            }
        }
        Self { at_words, anywhere }
    }

    fn stand_in(&self, sentence: &str) -> bool {
        let bytes = sentence.as_bytes();
        let mut inside_word = false;
        for (at, byte) in bytes.iter().enumerate() {
            let is_word = byte.is_ascii_alphanumeric() || !byte.is_ascii();
            if is_word && !inside_word {
                let rest = bytes.get(at..).unwrap_or_default();
                let begins =
                    |cue: &&[u8]| rest.get(..cue.len()).is_some_and(|here| here.eq_ignore_ascii_case(cue));
                if self.at_words[usize::from(byte.to_ascii_lowercase())].iter().any(begins) {
                    return true;
                }
            }
            inside_word = is_word;
        }
        if sentence.is_ascii() || self.anywhere.is_empty() {
            return false;
        }
        let lower = sentence.to_lowercase();
        self.anywhere.iter().any(|cue| lower.contains(cue))
    }
}

static RULES: LazyLock<Cues> = LazyLock::new(|| Cues::new(RULE_CUES));
static CORRECTIONS: LazyLock<Cues> = LazyLock::new(|| Cues::new(CORRECTION_CUES));
static DECISIONS: LazyLock<Cues> = LazyLock::new(|| Cues::new(DECISION_CUES));

/// Whether a person's sentence states a rule or a correction.
pub(crate) fn is_rule(sentence: &str) -> bool {
    RULES.stand_in(sentence)
}

/// Whether a person's sentence corrects what was done.
pub(crate) fn is_correction(sentence: &str) -> bool {
    CORRECTIONS.stand_in(sentence)
}

/// Whether a model's sentence states a decision or finding.
pub(crate) fn is_decision(sentence: &str) -> bool {
    DECISIONS.stand_in(sentence)
}

/// Whether a sentence asks something.
pub(crate) fn is_question(sentence: &str) -> bool {
    sentence.trim_end().ends_with(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_split_and_rules_found_in_several_languages() {
        let all: Vec<_> =
            sentences("Add a cache. Do not touch v1.2 of the API!\n- use 3.5 s\n完成。不要改数据库。")
                .collect();
        assert_eq!(
            all,
            ["Add a cache.", "Do not touch v1.2 of the API!", "use 3.5 s", "完成。", "不要改数据库。"]
        );
        assert!(
            is_rule("Do not touch v1.2 of the API!")
                && is_rule("不要改数据库。")
                && is_rule("Bitte nicht ändern")
        );
        assert!(!is_rule("Add a cache.") && !is_rule("the mustard is here"));
        assert!(is_correction("No, that's wrong") && !is_correction("nice work"));
        assert!(is_question("Which one? ".trim()) && !is_question("This one."));
    }
}
