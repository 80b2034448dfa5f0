//! Key Decisions and Constraints & Preferences: what was chosen and why, and what the person demands for good.

use crate::act::one_line;
use crate::state::{
    Request, Via, announces, begins_word, is_question, plain_sentences, takes_something_back, weigh,
};

use super::draft::{Line, Price, Said, choose, choose_for};
use super::story::Scope;

/// Words that set one way against another.
const CHOICES: &[&str] = &[
    "instead of",
    "rather than",
    "instead",
    "keep ",
    "keeps ",
    "kept ",
    "stays",
    "use ",
    "using ",
    "should ",
    "chose",
    "decided",
    "option",
    "approach",
    "fall back",
    "falls back",
    "fallback",
    "no longer",
    "skip",
    "simplest",
    "prefer",
    "recommend",
    "leave ",
    "replace",
    "go with",
    "going with",
    "new plan",
    "final answer",
    "we'll ",
    "i'll ",
    "let's ",
    "always ",
    "verdict",
    "defaults to",
    "statt",
    "sondern",
    "plutôt",
    "en vez",
    "вместо",
    "而不是",
    "代わりに",
];

/// Words that give a reason or draw a line. Alone they are in findings too.
const REASONS: &[&str] =
    &["because", "since ", "so that", "not ", "'t ", "only ", "both ", "weil", "porque", "потому", "因为"];

/// One word that chooses is enough; an announcement needs one and two names, or two.
const LEAST_SCORE: f32 = 0.7;
const ANNOUNCED_SCORE: f32 = 1.3;

/// What decisions are worth, by how sure it is that they are one.
const CHOSEN: f32 = 12.0;
const REPLIED: f32 = 9.0;
const REFUSED: f32 = 8.0;
const CHANGED_COURSE: f32 = 7.0;
const BY_PERSON: f32 = 3.0;
const STEERED: f32 = 3.4;
const BY_AGENT: f32 = 1.8;
const DESCRIBED: f32 = 1.5;
/// Of longer words that change the course, only the sentences that do so are listed.
const COURSE_CHARS: usize = 260;

/// What a decision of earlier notes is worth, by its form.
fn carried_value(text: &str) -> f32 {
    if text.contains(" -> chosen: ") {
        CHOSEN
    } else if text.contains(" -> \"") {
        REPLIED
    } else if text.contains(" was rejected: \"") {
        REFUSED
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
            let text = format!("{} -> \"{}\"", one_line(&question, 200), one_line(&request.words, 90));
            lines.push(Line { message: request.message, text, value: REPLIED });
        } else if request.words.chars().count() <= COURSE_CHARS
            && plain_sentences(&request.words).count() > 1
            && takes_something_back(&request.words)
        {
            let text = format!("\"{}\"", one_line(&request.words, COURSE_CHARS));
            lines.push(Line { message: request.message, text, value: CHANGED_COURSE });
        } else {
            for sentence in plain_sentences(&request.words).filter(|s| (20..320).contains(&s.chars().count()))
            {
                let score = contrast(sentence);
                if score <= 0.0 {
                    let found = perhaps_chosen(sentence, request.message);
                    perhaps.extend(found.map(|line| Line { text: format!("\"{}\"", line.text), ..line }));
                }
                // A standing rule has its own section.
                let is_other = rules.has(sentence) || sentence.ends_with(':') || is_question(sentence);
                if score > 0.0 && !is_other {
                    // A line of a specification describes more than it chooses.
                    let described = if sentence.starts_with(['`', '*']) { DESCRIBED } else { 0.0 };
                    let value = BY_PERSON + score - described + scope.recency(request.message) * 0.3;
                    lines.push(Line { message: request.message, text: format!("\"{sentence}\""), value });
                }
            }
        }
    }
    // Later requests that tell what to do steer the work; the first one is the goal.
    let turns =
        state.requests.iter().filter(|request| request.begins_turn() && scope.has(request.message)).skip(1);
    for request in turns.filter(|request| (10..=200).contains(&request.words.chars().count())) {
        let is_told = rules.has(&request.words) || lines.iter().any(|line| line.message == request.message);
        if !is_told && !is_question(&request.words) && !request.words.starts_with('<') {
            let text = format!("\"{}\"", one_line(&request.words, 200));
            lines.push(Line { message: request.message, text, value: STEERED });
        }
    }
    let mut agent: Vec<Line> = Vec::new();
    for statement in state.statements.iter().filter(|s| scope.has(s.message) && s.overturned_by.is_none()) {
        for sentence in plain_sentences(&statement.text).filter(|s| (30..340).contains(&s.chars().count())) {
            let score = contrast(sentence);
            // An announcement is a decision where it sets one way against another.
            let chooses = score >= if announces(sentence) { ANNOUNCED_SCORE } else { LEAST_SCORE };
            if chooses && !is_question(sentence) && !sentence.ends_with(':') {
                let value = BY_AGENT + score + 0.4 * scope.recency(statement.message) + scope.bonus(sentence);
                agent.push(Line { message: statement.message, text: sentence.replace("**", ""), value });
            } else if statement.closes || chooses {
                perhaps.extend(perhaps_chosen(sentence, statement.message));
            }
        }
    }
    agent.retain(|line| !said.has(&line.text));
    lines.extend(agent);
    lines.sort_by_key(|line| line.message);
    let mut seen = Said::default();
    lines.retain(|line| seen.add(&line.text));
    let (mut chosen, used) = choose_for(scope, lines, budget, price);
    // What only gives a reason may be a decision: fewer of those than of the others.
    perhaps.retain(|line| !said.has(&line.text) && seen.add(&line.text));
    perhaps.sort_by(|a, b| b.value.total_cmp(&a.value).then(b.message.cmp(&a.message)));
    perhaps.truncate(chosen.len() * 2 / 3);
    chosen.extend(choose_for(scope, perhaps, budget.saturating_sub(used), price).0);
    chosen.sort_by_key(|line| line.message);
    for line in &chosen {
        said.add(&line.text);
    }
    chosen
}

/// A sentence that gives a reason and names something, as a line.
fn perhaps_chosen(sentence: &str, message: u32) -> Option<Line> {
    if is_question(sentence) || sentence.ends_with(':') || announces(sentence) {
        return None;
    }
    let lower = sentence.to_lowercase();
    let reasons = REASONS.iter().filter(|cue| begins_word(&lower, cue)).count();
    let names = weigh(sentence).names;
    let value = 0.5 * reasons.min(2) as f32 + 0.3 * names.min(4) as f32;
    (reasons > 0 && names > 0).then(|| Line { message, text: sentence.replace("**", ""), value })
}

/// How much a sentence chooses: contrasts and reasons, with names to hold on to. Reasons alone choose nothing.
fn contrast(sentence: &str) -> f32 {
    let lower = sentence.to_lowercase();
    let has = |cues: &[&str]| cues.iter().filter(|cue| begins_word(&lower, cue)).count();
    let found = has(CHOICES);
    if found == 0 {
        return 0.0;
    }
    let weight = weigh(sentence);
    0.7 * found.min(3) as f32 + 0.35 * has(REASONS).min(2) as f32 + 0.3 * weight.names.min(4) as f32
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
