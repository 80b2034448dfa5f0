//! Key Decisions and Constraints & Preferences: what was chosen and why, and what the person demands for good.

use crate::act::one_line;
use crate::state::{Via, announces, begins_word, is_question, plain_sentences, weigh};

use super::draft::{Line, Price, Said, choose, choose_for};
use super::story::Scope;

/// Words that set one way against another, or give the reason for one.
const CONTRASTS: &[&str] = &[
    "instead of",
    "rather than",
    "instead",
    "because",
    "since ",
    "so that",
    "not ",
    "'t ",
    "keep ",
    "use ",
    "should ",
    "chose",
    "decided",
    "option",
    "approach",
    "fall back",
    "fallback",
    "no longer",
    "only ",
    "both ",
    "skip",
    "simplest",
    "prefer",
    "recommend",
    "leave ",
    "statt",
    "sondern",
    "weil",
    "plutôt",
    "porque",
    "en vez",
    "вместо",
    "потому",
    "因为",
    "而不是",
    "代わりに",
];

/// One word that chooses is enough; an announcement needs one and two names, or two.
const LEAST_SCORE: f32 = 0.7;
const ANNOUNCED_SCORE: f32 = 1.3;

/// Decisions: answers to the agent's questions, the person's replies and refusals, and sentences of either that choose.
pub(super) fn decisions(scope: &Scope<'_>, budget: u64, price: Price, said: &mut Said) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let state = scope.state;
    for choice in state.choices.iter().filter(|choice| scope.has(choice.message)) {
        lines.push(Line { message: choice.message, text: choice.to_line(), value: 12.0 });
    }
    for request in state.requests.iter().filter(|request| scope.has(request.message)) {
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
            lines.push(Line { message: request.message, text, value: 8.0 });
        } else if request.words.chars().count() <= 90
            && !is_question(&request.words)
            && let Some(question) = asked()
        {
            let text = format!("{} -> \"{}\"", one_line(&question, 200), one_line(&request.words, 90));
            lines.push(Line { message: request.message, text, value: 9.0 });
        } else {
            for sentence in plain_sentences(&request.words).filter(|s| (20..320).contains(&s.chars().count()))
            {
                let score = contrast(sentence);
                // A line of a specification describes; it chooses nothing.
                let describes = sentence.starts_with(['`', '*']) || sentence.ends_with(':');
                if score > 0.0 && !is_question(sentence) && !describes {
                    let value = 2.2 + score + scope.recency(request.message) * 0.3;
                    lines.push(Line { message: request.message, text: format!("\"{sentence}\""), value });
                }
            }
        }
    }
    // Later requests that tell what to do steer the work; the first one is the goal.
    let turns =
        state.requests.iter().filter(|request| request.begins_turn() && scope.has(request.message)).skip(1);
    for request in turns.filter(|request| (10..=200).contains(&request.words.chars().count())) {
        if !is_question(&request.words) && !request.words.starts_with('<') {
            let text = format!("\"{}\"", one_line(&request.words, 200));
            lines.push(Line { message: request.message, text, value: 3.4 });
        }
    }
    let mut agent: Vec<Line> = Vec::new();
    for statement in state.statements.iter().filter(|s| scope.has(s.message) && s.overturned_by.is_none()) {
        for sentence in plain_sentences(&statement.text).filter(|s| (30..340).contains(&s.chars().count())) {
            let score = contrast(sentence);
            // An announcement is a decision where it sets one way against another.
            let chooses = score >= if announces(sentence) { ANNOUNCED_SCORE } else { LEAST_SCORE };
            if chooses && !is_question(sentence) && !sentence.ends_with(':') {
                let value = 1.8 + score + 0.4 * scope.recency(statement.message) + scope.bonus(sentence);
                agent.push(Line { message: statement.message, text: sentence.replace("**", ""), value });
            }
        }
    }
    agent.retain(|line| !said.has(&line.text));
    lines.extend(agent);
    lines.sort_by_key(|line| line.message);
    let mut seen = Said::default();
    lines.retain(|line| seen.add(&line.text));
    let (chosen, _) = choose_for(scope, lines, budget, price);
    for line in &chosen {
        said.add(&line.text);
    }
    chosen
}

/// How much a sentence chooses: contrasts and reasons, with names to hold on to.
fn contrast(sentence: &str) -> f32 {
    let lower = sentence.to_lowercase();
    let found = CONTRASTS.iter().filter(|cue| begins_word(&lower, cue)).count();
    if found == 0 {
        return 0.0;
    }
    let weight = weigh(sentence);
    0.7 * found.min(3) as f32 + 0.3 * weight.names.min(4) as f32
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
