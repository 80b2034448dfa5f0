//! Key Decisions and Constraints & Preferences: what was chosen and why, and what the person demands for good.

use crate::act::one_line;
use crate::state::{
    Request, State, Unit, Via, announces, begins_word, is_question, plain_sentences, takes_something_back,
    units, weigh, without_number,
};

use super::draft::{Line, Price, Said, choose, choose_for};
use super::story::Scope;

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
    "keep ",
    "kept ",
    "stays",
    "the fix",
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
    "instead", "keeps ", "use ", "uses ", "using ", "should ", "option", "approach", "skip", "leave ",
    "we'll ", "i'll ", "let's ", "always ", "only ",
];

/// Headings under which decisions stand.
const DECIDING_LEADS: &[&str] = &[
    "decision",
    "approach",
    "recommend",
    "solution",
    "verdict",
    "resolution",
    "strategy",
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
const TROUBLES: &[&str] = &[
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

/// One word that chooses is enough.
const LEAST_SCORE: f32 = 0.7;

/// What decisions are worth, by how sure it is that they are one.
const CHOSEN: f32 = 12.0;
const REPLIED: f32 = 9.0;
const REFUSED: f32 = 8.0;
const CHANGED_COURSE: f32 = 7.0;
const BY_PERSON: f32 = 3.0;
const STEERED: f32 = 3.4;
const BY_AGENT: f32 = 1.8;
const DESCRIBED: f32 = 1.5;
const PLANNED: f32 = 2.6;
/// Before a step of a plan of the person.
const OF_PLAN: &str = "By the plan: ";
/// Longer words that change the course are told by their sentences.
const COURSE_CHARS: usize = 260;

/// What a decision of earlier notes is worth, by its form.
fn carried_value(text: &str) -> f32 {
    if text.contains(" -> chosen: ") {
        CHOSEN
    } else if text.contains(" -> \"") {
        REPLIED
    } else if text.contains(" was rejected: \"") {
        REFUSED
    } else if text.starts_with(OF_PLAN) {
        PLANNED
    } else if let Some(words) = text.strip_prefix('"') {
        let score = contrast(words);
        let changes = takes_something_back(words.trim_end_matches('"'));
        if changes { CHANGED_COURSE } else { (BY_PERSON + score).max(STEERED) }
    } else {
        BY_AGENT + contrast(text)
    }
}

/// Decisions: those of earlier notes, answers to the agent's questions, the person's replies and refusals, and sentences
/// of either that choose.
pub(super) fn decisions(
    scope: &Scope<'_>,
    carried: Vec<String>,
    budget: u64,
    price: Price,
    said: &mut Said,
) -> Vec<Line> {
    let state = scope.state;
    let mut lines: Vec<Line> =
        carried.into_iter().map(|text| Line { message: 0, value: carried_value(&text), text }).collect();
    for choice in state.choices.iter().filter(|choice| scope.has(choice.message)) {
        lines.push(Line { message: choice.message, text: choice.to_line(), value: CHOSEN });
    }
    let mut perhaps: Vec<Line> = Vec::new();
    let mut rules = Said::default();
    for rule in &state.constraints {
        rules.add(&rule.text);
    }
    let decides = |request: &&Request| request.via != Via::Reminder && scope.has(request.message);
    for request in state.requests.iter().filter(decides) {
        let asked = || {
            let before =
                state.statements.iter().rev().find(|statement| statement.message < request.message)?;
            let question = plain_sentences(&before.text).filter(|sentence| is_question(sentence)).last()?;
            before.closes.then(|| question.to_owned())
        };
        if request.via == Via::Refusal {
            let refused = state.runs.iter().rev().find(|run| run.result == request.message);
            let what = refused
                .map(|run| format!("`{}`", one_line(&run.command, 34)))
                .unwrap_or_else(|| "the proposed step".to_owned());
            let text = format!("{what} was rejected: \"{}\"", one_line(&request.words, 240));
            lines.push(Line { message: request.message, text, value: REFUSED });
        } else if request.words.chars().count() <= 90
            && !is_question(&request.words)
            && let Some(question) = asked()
        {
            let about = proposed_before(state, request.message, &question);
            let text = format!("{}{about} -> \"{}\"", one_line(&question, 200), one_line(&request.words, 90));
            lines.push(Line { message: request.message, text, value: REPLIED });
        } else if request.words.chars().count() <= COURSE_CHARS
            && plain_sentences(&request.words).count() > 1
            && takes_something_back(&request.words)
        {
            let text = format!("\"{}\"", one_line(&request.words, COURSE_CHARS));
            lines.push(Line { message: request.message, text, value: CHANGED_COURSE });
        } else {
            let is_document = request.words.len() > DOCUMENT_BYTES;
            let mut step = String::new();
            for unit in units(&request.words) {
                // The steps of a plan are what the person wants done, and how.
                let is_part = !step.is_empty() && unit.lead.starts_with(step.as_str());
                if is_document && !is_part {
                    step.clone_from(&unit.lead);
                    let text = without_number(&step);
                    if text.len() < step.len() && weigh(text).names > 0 {
                        let text = format!("{OF_PLAN}\"{text}\"");
                        lines.push(Line { message: request.message, text, value: PLANNED });
                    }
                }
                for sentence in plain_sentences(&unit.text).filter(|s| (20..320).contains(&s.chars().count()))
                {
                    let score = contrast_under(sentence, if is_document { &unit.lead } else { "" });
                    // A standing rule has its own section.
                    let is_other = rules.has(sentence) || sentence.ends_with(':') || is_question(sentence);
                    if score <= 0.0 || is_other {
                        continue;
                    }
                    // A line of a specification describes more than it chooses.
                    let described =
                        if is_document || sentence.starts_with(['`', '*']) { DESCRIBED } else { 0.0 };
                    let value = BY_PERSON + score - described + scope.recency(request.message) * 0.3;
                    lines.push(Line { message: request.message, text: format!("\"{sentence}\""), value });
                }
            }
        }
    }
    // Later requests that say how, not only what, steer the work; the first one is the goal.
    let turns =
        state.requests.iter().filter(|request| request.begins_turn() && scope.has(request.message)).skip(1);
    for request in turns.filter(|request| (10..=200).contains(&request.words.chars().count())) {
        let is_told = rules.has(&request.words) || lines.iter().any(|line| line.message == request.message);
        if !is_told && steers(&request.words) {
            let text = format!("\"{}\"", one_line(&request.words, 200));
            lines.push(Line { message: request.message, text, value: STEERED });
        }
    }
    let mut agent: Vec<Line> = Vec::new();
    for statement in state.statements.iter().filter(|s| scope.has(s.message) && s.overturned_by.is_none()) {
        for unit in units(&statement.text).into_iter().filter(|unit| !is_listing(&unit.text)) {
            for sentence in plain_sentences(&unit.text).filter(|s| (30..340).contains(&s.chars().count())) {
                let score = contrast_under(sentence, &unit.lead);
                let sentence = sentence.trim_end_matches(':');
                // An announcement is a decision where it sets one way against another, or gives a reason for its own.
                let chooses =
                    if announces(sentence) { gives_way_and_reason(sentence) } else { score >= LEAST_SCORE };
                if is_question(sentence) {
                    continue;
                }
                if chooses {
                    let value = BY_AGENT
                        + score.max(LEAST_SCORE)
                        + 0.4 * scope.recency(statement.message)
                        + scope.bonus(sentence);
                    agent.push(Line { message: statement.message, text: sentence.replace("**", ""), value });
                } else if !announces(sentence) && (tells_change(sentence) || statement.closes) {
                    perhaps.extend(perhaps_chosen(sentence, statement.message));
                }
            }
        }
    }
    agent.retain(|line| !said.has(&line.text));
    lines.extend(agent);
    lines.sort_by_key(|line| line.message);
    let mut seen = Said::default();
    lines.retain(|line| seen.add(&line.text));
    let (mut chosen, used) = choose_for(scope, lines, budget, price);
    // A change that a report tells may be a decision: fewer of those than of the others.
    perhaps.retain(|line| !said.has(&line.text) && seen.add(&line.text));
    perhaps.sort_by(|a, b| b.value.total_cmp(&a.value).then(b.message.cmp(&a.message)));
    perhaps.truncate(chosen.len().max(LEAST_PERHAPS));
    chosen.extend(choose_for(scope, perhaps, budget.saturating_sub(used), price).0);
    chosen.sort_by_key(|line| line.message);
    for line in &chosen {
        said.add(&line.text);
    }
    chosen
}

/// Whether a line is code or the row of a table: it describes.
fn is_listing(line: &str) -> bool {
    line.contains(" | ") || line.starts_with('`') && line.trim_end_matches([',', '.']).ends_with('`')
}

/// So many changes are listed where little was chosen in words.
const LEAST_PERHAPS: usize = 4;
/// Longer words of the person are a document: its lines describe.
const DOCUMENT_BYTES: usize = 1_500;

/// Words with which a short request says how something is to be done.
const STEERING: &[&str] = &[
    "instead", "rather", "should", "don't", "do not", "only ", "keep ", "let's", "must", "prefer", "without",
    "use ", "wrap", "rename", "not ", "nicht", "statt", "nur ", "pas ", "plutôt", "sin ", "не ", "不",
];

/// Whether a short request says how, and not only what.
fn steers(words: &str) -> bool {
    let lower = words.to_lowercase().replace('\u{2019}', "'");
    !is_question(words) && !words.starts_with('<') && STEERING.iter().any(|cue| begins_word(&lower, cue))
}

/// What a question that names nothing was about: the line of the message before it that recommends something, or else the
/// one that names most.
fn proposed_before(state: &State, message: u32, question: &str) -> String {
    if weigh(question).names > 0 {
        return String::new();
    }
    let before = state.statements.iter().rev().find(|statement| statement.message < message);
    let Some(before) = before else { return String::new() };
    let worth = |unit: &Unit| {
        let weight = weigh(&unit.text);
        contrast_under(&unit.text, &unit.lead) + 0.5 * weight.names.min(4) as f32
    };
    let told = units(&before.text).into_iter().filter(|unit| {
        (20..300).contains(&unit.text.chars().count())
            && !unit.text.contains(question)
            && !is_question(&unit.text)
    });
    let best = told.map(|unit| (worth(&unit), unit)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(worth, _)| *worth >= 1.0)
        .map(|(_, unit)| format!(" ({})", one_line(&unit.text, 180)))
        .unwrap_or_default()
}

/// Whether an announcement sets one way against another or says why.
fn gives_way_and_reason(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    // What is looked at next decides nothing.
    if ["check", "look", "verify", "trace", "see", "find", "read", "re-fetch", "re-read"].iter().any(|verb| {
        ["let me ", "let me also ", "now let me ", "i'll ", "first, i need to "]
            .iter()
            .any(|opening| lower.strip_prefix(opening).is_some_and(|rest| rest.starts_with(verb)))
    }) {
        return false;
    }
    let contrasts = [
        "instead",
        "rather than",
        "because",
        "since ",
        "so that",
        "statt",
        "weil",
        "porque",
        "потому",
        "因为",
    ];
    contrasts.iter().any(|cue| begins_word(&lower, cue))
}

/// Whether a report says what was changed and to what end.
fn tells_change(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let changes = [
        "fixed", "added", "removed", "changed", "replaced", "moved", "renamed", "updated", "rewrote",
        "switched",
    ];
    let ends = [" to ", " so ", " with ", " by ", " from ", " now "];
    changes.iter().any(|cue| lower.starts_with(cue)) && ends.iter().any(|end| lower.contains(end))
}

/// Words with which somebody tells what they found.
const FINDING: &[&str] = &[
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

/// A sentence that tells a change and names something, as a line.
fn perhaps_chosen(sentence: &str, message: u32) -> Option<Line> {
    let lower = sentence.to_lowercase();
    let reasons = REASONS.iter().filter(|cue| begins_word(&lower, cue)).count();
    let names = weigh(sentence).names;
    let changes = tells_change(sentence);
    // What was found, and why it is so, was not chosen.
    let finds = TROUBLES.iter().chain(FINDING).any(|cue| begins_word(&lower, cue));
    let value = 0.5 * reasons.min(2) as f32 + 0.3 * names.min(4) as f32 + if changes { 1.0 } else { 0.0 };
    (names > 0 && (changes || (reasons > 0 && !finds))).then(|| Line {
        message,
        text: sentence.replace("**", ""),
        value,
    })
}

/// How much a sentence chooses: contrasts and reasons, with names to hold on to. Reasons alone choose nothing.
pub(super) fn contrast(sentence: &str) -> f32 {
    contrast_under(sentence, "")
}

/// The same for a sentence under a heading.
fn contrast_under(sentence: &str, lead: &str) -> f32 {
    let lower = sentence.to_lowercase();
    let has = |cues: &[&str]| cues.iter().filter(|cue| begins_word(&lower, cue)).count();
    let (chooses, leans) = (has(CHOICES), has(LEANINGS));
    let lead = lead.to_lowercase();
    let is_under = !lead.is_empty() && DECIDING_LEADS.iter().any(|cue| begins_word(&lead, cue));
    let mut score = 0.7 * chooses.min(3) as f32 + 0.35 * leans.min(2) as f32;
    if is_under {
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

/// Standing instructions, strongest first where not all fit, in the order they were given.
pub(super) fn constraints(scope: &Scope<'_>, budget: u64, price: Price) -> Vec<Line> {
    let rules = scope.state.constraints.iter().filter(|rule| scope.has(rule.message));
    let lines: Vec<Line> = rules
        .map(|rule| {
            let strength = f32::from(rule.strength);
            let short = 60.0 / (rule.text.len() as f32).max(60.0);
            Line { message: rule.message, text: rule.text.clone(), value: strength + short }
        })
        .collect();
    choose(lines, budget, price).0
}
