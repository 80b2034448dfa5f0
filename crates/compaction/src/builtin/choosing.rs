//! The words by which somebody chooses: which sentences of the person and of the agent are decisions, and how sure that is.
//!
//! Not for: which of them stand under Key Decisions (`decisions`).

use crate::state::{begins_word, is_question, weigh};

/// Words that choose one way and not another.
const CHOICES: &[&str] = &[
    "instead of",
    "rather than",
    "i'll use",
    "we'll use",
    "let me use",
    "let's use",
    "chose",
    "decided",
    "opted",
    "fall back",
    "falls back",
    "fallback",
    "no longer",
    "simplest",
    "cleanest",
    "prefer",
    "recommend",
    "replace",
    "go with",
    "going with",
    "new plan",
    "final answer",
    "verdict",
    "defaults to",
    "now uses",
    "now use ",
    "stays",
    "the fix is",
    "the fix was",
    "the fix:",
    "the fix —",
    "approve ",
    "merge both",
    "but we can ",
    "statt",
    "sondern",
    "plutôt",
    "en vez",
    "вместо",
    "而不是",
    "代わりに",
];

/// Words that may choose, and describe as often: one alone is not enough.
const LEANINGS: &[&str] = &[
    "instead",
    "keeps ",
    "use ",
    "uses ",
    "using ",
    "should ",
    "option",
    "approach",
    "skip",
    "leave ",
    "we'll ",
    "i'll ",
    "let's ",
    "always ",
    "only ",
    "need to ",
    "needs to ",
    "falls ",
    "so we ",
    "keep ",
    "kept ",
];

/// The same words choose where a sentence or a part of it begins with them.
const IMPERATIVES: &[&str] = &["keep ", "kept "];

/// Marks and words of a result: what passed or was ticked off was not chosen by that.
pub(super) const RESULTS: &[&str] = &[
    "✅",
    "❌",
    "✔",
    "☑",
    "tests pass",
    "tests still pass",
    "tests continue",
    "continue to pass",
    "all tests",
];

/// Headings under which decisions stand.
const DECIDING_LEADS: &[&str] = &[
    "decision",
    "approach",
    "recommend",
    "solution",
    "verdict",
    "resolution",
    "choice",
    "entscheidung",
    "lösung",
    "décision",
    "decisión",
    "решение",
    "决定",
    "方案",
];

/// Words that describe what is wrong: what is wrong is no choice.
pub(super) const TROUBLES: &[&str] = &[
    "fails",
    "failed",
    "failing",
    "bug",
    "broken",
    "incorrect",
    "wrong",
    "would ",
    "could ",
    "may ",
    "might ",
    "missing",
    "stale",
    "doesn't",
    "does not",
    "cannot",
    "can't",
];

/// Words that give a reason or draw a line. Alone they are in findings too.
const REASONS: &[&str] =
    &["because", "since ", "so that", "not ", "'t ", "both ", "weil", "porque", "потому", "因为"];

/// Words that give a reason: a sentence that only draws a line with `not` or `both` describes.
pub(super) const GIVEN_REASONS: &[&str] =
    &["because", "since ", "so that", "weil", "damit", "porque", "parce que", "потому", "因为"];

/// One word that chooses is enough.
pub(super) const LEAST_SCORE: f32 = 0.7;

/// How the items of a plan begin that say what is to be done.
pub(super) const ORDERS: &[&str] = &[
    "add ",
    "use ",
    "remove ",
    "document ",
    "extract ",
    "update ",
    "fix ",
    "rename ",
    "replace ",
    "move ",
    "keep ",
    "create ",
    "drop ",
    "change ",
    "skip ",
    "return ",
    "split ",
    "merge ",
    "write ",
    "introduce ",
    "implement ",
];

/// How the agent asks for a choice, and not for a fact.
pub(super) const OFFERS: &[&str] = &[
    "want me to",
    "do you want",
    "would you like",
    "would you prefer",
    "do you prefer",
    "should i",
    "should we",
    "shall i",
    "shall we",
    "which one",
    "which of",
    "which approach",
    "which option",
    "which way",
    "which method",
    "which do you",
    "or ",
    "may i",
    "can i ",
    "is it ok",
    "is that ok",
    "does that",
    "sound",
    "proceed",
    "go ahead",
    "okay to",
    "ok to",
    "soll ich",
    "sollen wir",
    "möchtest du",
    "welche",
    "quieres",
    "debo",
    "veux-tu",
    "voulez-vous",
    "dois-je",
    "хотите",
    "要不要",
    "是否",
    "ましょうか",
];

/// Whether a sentence tells how something ended.
pub(super) fn is_result(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    RESULTS.iter().any(|mark| lower.contains(mark))
}

/// Words with which a short request says how something is to be done.
const STEERING: &[&str] = &[
    "instead", "rather", "should", "don't", "do not", "only ", "keep ", "let's", "must", "prefer", "without",
    "use ", "wrap", "rename", "not ", "all ", "both ", "option ", "nicht", "statt", "nur ", "pas ", "plutôt",
    "sin ", "не ", "不",
];

/// Words that choose among what was proposed.
const SELECTING: &[&str] =
    &["all ", "both ", "option ", "instead", "rather", "only ", "without", "don't", "not "];

/// How the person proposes another way in the form of a question.
const PROPOSALS: &[&str] = &[
    "for now",
    "can we just",
    "can we simply",
    "couldn't we",
    "could we not",
    "can't we",
    "shouldn't we",
    "why not ",
    "why don't we",
    "how about ",
];

/// Whether a short request says how, and not only what.
pub(super) fn steers(words: &str) -> bool {
    let mut lower = words.trim().to_lowercase();
    if lower.contains('\u{2019}') {
        lower = lower.replace('\u{2019}', "'");
    }
    // Some cues end with the space behind their word.
    lower.push(' ');
    if is_question(words) {
        return PROPOSALS.iter().any(|cue| begins_word(&lower, cue));
    }
    // `Can you use the new tool` asks for work; `can you fix both` chooses.
    let is_polite = ["can you ", "could you ", "please "].iter().any(|opening| lower.starts_with(opening));
    let cues = if is_polite { SELECTING } else { STEERING };
    !words.starts_with('<') && cues.iter().any(|cue| begins_word(&lower, cue))
}

/// Whether an announcement sets one way against another or says why.
pub(super) fn gives_way_and_reason(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    // What is looked at next decides nothing.
    if ["check", "look", "verify", "trace", "see", "find", "read", "re-fetch", "re-read"].iter().any(|verb| {
        ["let me ", "let me also ", "now let me ", "i'll ", "first, i need to "]
            .iter()
            .any(|opening| lower.strip_prefix(opening).is_some_and(|rest| rest.starts_with(verb)))
    }) {
        return false;
    }
    let has = |cues: &[&str]| cues.iter().any(|cue| begins_word(&lower, cue));
    // The next step of several needs no reason that lasts: `Now remove the variable since it is not used`.
    let is_step = ["now ", "let me ", "next"].iter().any(|opening| lower.starts_with(opening))
        && !["i'll ", "we'll ", "we need "].iter().any(|cue| begins_word(&lower, cue));
    has(&["instead", "rather than", "statt"])
        || !is_step && has(&["because", "since ", "so that", "weil", "porque", "потому", "因为"])
}

/// Whether a report says what was changed and to what end.
pub(super) fn tells_change(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let openings = ["i've ", "i have ", "we ", "i "];
    let lower = openings.iter().find_map(|opening| lower.strip_prefix(opening)).unwrap_or(&lower);
    let changes = [
        "fixed", "added", "removed", "changed", "replaced", "moved", "renamed", "updated", "rewrote",
        "switched",
    ];
    let ends = [" to ", " so ", " with ", " by ", " from ", " now "];
    // A test that was added checks what was chosen.
    let is_test = lower.starts_with("added") && lower.contains("test");
    !is_test && changes.iter().any(|cue| lower.starts_with(cue)) && ends.iter().any(|end| lower.contains(end))
}

/// Words with which somebody tells what they found.
pub(super) const FINDING: &[&str] = &[
    "cause",
    "issue",
    "problem",
    "found",
    "confirmed",
    "turns out",
    "ursache",
    "problème",
    "причина",
    "原因",
];

/// How much a sentence chooses: contrasts and reasons, with names to hold on to. Reasons alone choose nothing.
pub(super) fn contrast(sentence: &str) -> f32 {
    contrast_under(sentence, "")
}

/// The same for a sentence under a heading.
pub(super) fn contrast_under(sentence: &str, lead: &str) -> f32 {
    let lower = sentence.to_lowercase();
    let has = |cues: &[&str]| cues.iter().filter(|cue| begins_word(&lower, cue)).count();
    let (chooses, leans) = (has(CHOICES), has(LEANINGS));
    let lead = lead.to_lowercase();
    let is_under = !lead.is_empty() && DECIDING_LEADS.iter().any(|cue| begins_word(&lead, cue));
    let mut score = 0.7 * chooses.min(3) as f32 + 0.35 * leans.min(2) as f32;
    let begins = |cue: &str| {
        lower.match_indices(cue).any(|(at, _)| {
            let before = lower.get(..at).unwrap_or_default();
            before.is_empty() || [": ", "- ", "— ", "just "].iter().any(|end| before.ends_with(end))
        })
    };
    if IMPERATIVES.iter().any(|cue| begins(cue)) {
        score += 0.35;
    }
    // Under such a heading also stands what only describes.
    let orders = || ORDERS.iter().any(|verb| lower.starts_with(verb));
    let finds = FINDING.iter().any(|cue| begins_word(&lower, cue));
    if is_under && !finds && (chooses + leans > 0 || lower.contains("not ") || orders()) {
        score += 0.7;
    }
    if score < LEAST_SCORE {
        return 0.0;
    }
    // `The comparison would always fail` is no choice, unless it is set against another way.
    if chooses == 0 && has(TROUBLES) > 0 {
        return 0.0;
    }
    let weight = weigh(sentence);
    score + 0.35 * has(REASONS).min(2) as f32 + 0.3 * weight.names.min(4) as f32
}
