//! Key Decisions and Constraints & Preferences: what was chosen and why, and what the person demands for good.

use crate::act::one_line;
use crate::state::{
    Request, State, Unit, Via, WITHIN, announces, begins_word, comment_of, is_question, plain_sentences,
    takes_something_back, units, weigh, without_number,
};

use super::choosing::{
    FINDING, GIVEN_REASONS, LEAST_SCORE, OFFERS, ORDERS, RESULTS, TROUBLES, contrast, contrast_under,
    gives_way_and_reason, is_result, steers, tells_change,
};
use super::draft::{Line, Price, Said, choose, choose_for, short_path};
use super::story::Scope;

/// Columns of a table whose cells say what was chosen.
const DECIDING_COLUMNS: &[&str] =
    &["fix", "change", "decision", "resolution", "solution", "approach", "action", "choice", "lösung"];

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
/// Beside changes that a report tells, whose worth is 1 to 3.
const COMMENTED: f32 = 2.0;
const IN_ROW: f32 = 1.4;
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
    told_rules: &[String],
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
    let mut rules = Said::default();
    for rule in state.constraints.iter().map(|rule| &rule.text).chain(told_rules) {
        rules.add(rule);
    }
    lines.retain(|line| !rules.has(&line.text));
    let decides = |request: &&Request| request.via != Via::Reminder && scope.has(request.message);
    for request in state.requests.iter().filter(decides) {
        let asked = || {
            let before =
                state.statements.iter().rev().find(|statement| statement.message < request.message)?;
            let question = plain_sentences(&before.text).filter(|sentence| is_question(sentence)).last()?;
            let lower = question.to_lowercase();
            OFFERS.iter().any(|cue| begins_word(&lower, cue)).then_some(())?;
            before.closes.then(|| question.to_owned())
        };
        if request.via == Via::Refusal {
            let refused =
                state.runs.iter().rev().find(|run| run.result == request.message && !run.is_by_person());
            let what = refused
                .map(|run| format!("`{}`", one_line(&run.command, 34)))
                .unwrap_or_else(|| "the proposed step".to_owned());
            // A standing rule has its own section.
            let words = without_rules(&request.words, &rules);
            if !words.is_empty() {
                let text = format!("{what} was rejected: \"{}\"", one_line(&words, 240));
                lines.push(Line { message: request.message, text, value: REFUSED });
            }
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
            let words = without_rules(&request.words, &rules);
            if !words.is_empty() {
                let text = format!("\"{}\"", one_line(&words, COURSE_CHARS));
                lines.push(Line { message: request.message, text, value: CHANGED_COURSE });
            }
        } else {
            let is_document = request.words.len() > DOCUMENT_BYTES;
            let mut step = String::new();
            for unit in units(&request.words) {
                // The steps of a plan are what the person wants done, and how.
                let is_part = !step.is_empty() && unit.lead.starts_with(step.as_str());
                if is_document && !is_part {
                    step.clone_from(&unit.lead);
                    lines.extend(plan_step(&step, &lines, request.message));
                }
                // `2. Title - document the reason`.
                let what = unit.text.split_once(" - ").filter(|_| is_document);
                let what = what.map(|(_, what)| what.to_lowercase());
                if what.is_some_and(|what| ORDERS.iter().any(|verb| what.starts_with(verb))) {
                    lines.extend(plan_step(&unit.text, &lines, request.message));
                }
                for sentence in plain_sentences(&unit.text).filter(|s| (20..320).contains(&s.chars().count()))
                {
                    let score = contrast_under(sentence, if is_document { &unit.lead } else { "" });
                    // A standing rule has its own section.
                    let is_decision = score > 0.0
                        && !rules.has(sentence)
                        && !sentence.ends_with(':')
                        && !is_question(sentence)
                        && !is_result(sentence);
                    if !is_decision {
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
    thin_plan(&mut lines);
    let mut agent: Vec<Line> = Vec::new();
    let mut perhaps: Vec<Line> = comments(scope);
    let mut rows: Vec<(String, String)> = Vec::new();
    for statement in state.statements.iter().filter(|s| scope.has(s.message) && s.overturned_by.is_none()) {
        for unit in units(&statement.text) {
            if let Some(text) = chosen_in_row(&unit) {
                let value = IN_ROW + 0.4 * scope.recency(statement.message) + scope.bonus(&text);
                let subject = |text: &str| text.split(": ").next().unwrap_or_default().to_owned();
                // A later table tells the newer state.
                perhaps.retain(|line| subject(&line.text) != subject(&text));
                perhaps.push(Line { message: statement.message, text: text.clone(), value });
                rows.push((text, unit.text.clone()));
            }
            if is_listing(&unit.text) {
                continue;
            }
            for sentence in plain_sentences(&unit.text).filter(|s| (30..340).contains(&s.chars().count())) {
                let score = contrast_under(sentence, &unit.lead);
                let sentence = sentence.trim_end_matches(':');
                // An announcement is a decision where it sets one way against another, or gives a reason for its own.
                let is_ahead = announces(sentence);
                let chooses = if is_ahead { gives_way_and_reason(sentence) } else { score >= LEAST_SCORE };
                let may_choose = !is_ahead && (statement.closes || tells_change(sentence));
                if !(chooses || may_choose) || is_question(sentence) || is_result(sentence) {
                    continue;
                }
                if chooses {
                    let value = BY_AGENT
                        + score.max(LEAST_SCORE)
                        + 0.4 * scope.recency(statement.message)
                        + scope.bonus(sentence);
                    agent.push(Line { message: statement.message, text: sentence.replace("**", ""), value });
                } else {
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
        // The row of a table, or the comment of an edit, that says the same.
        for (_, row) in rows.iter().filter(|(text, _)| *text == line.text) {
            said.add(row);
        }
        if let Some((_, comment)) = line.text.split_once(IN_COMMENT) {
            let lines = state.edits.iter().filter(|edit| edit.message == line.message);
            for own in lines.flat_map(|edit| &edit.new_lines).filter_map(|line| comment_of(line)) {
                if comment.contains(own.0) || own.0.contains(comment) {
                    said.add(own.0);
                }
            }
        }
    }
    chosen
}

/// Between a file and what a comment in it says.
const IN_COMMENT: &str = ", in a comment: ";

/// Comments of the agent's edits that say why something is as it is, each once.
fn comments(scope: &Scope<'_>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let mut seen = Said::default();
    for edit in scope.state.edits.iter().filter(|edit| edit.applied && scope.has(edit.message)) {
        // A comment that is in several functions counts once.
        let told =
            |reason: &str| reason.split_once(WITHIN).map_or(reason.to_owned(), |(_, told)| told.to_owned());
        for reason in edit.reasons.iter().filter(|reason| seen.add(&told(reason))) {
            let text = format!("`{}`{IN_COMMENT}{reason}", short_path(&edit.path));
            let value = COMMENTED + 0.4 * scope.recency(edit.message) + scope.bonus(&text);
            out.push(Line { message: edit.message, text, value });
        }
    }
    out
}

/// Steps of one plan that are listed, at most: the rest stands where the plan does.
const PLAN_STEPS: usize = 5;

/// Keeps the steps of plans that choose most.
fn thin_plan(lines: &mut Vec<Line>) {
    let steps = lines.iter().enumerate().filter(|(_, line)| line.text.starts_with(OF_PLAN));
    let worth = |text: &str| {
        let told = text.trim_start_matches(OF_PLAN).trim_matches('"');
        let how = [" - ", " — ", " to use ", "→", " instead"].iter().any(|mark| told.contains(mark));
        contrast(told) + if how { 1.0 } else { 0.0 }
    };
    let mut steps: Vec<(f32, usize)> = steps.map(|(at, line)| (worth(&line.text), at)).collect();
    steps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let gone: Vec<usize> = steps.into_iter().skip(PLAN_STEPS).map(|(_, at)| at).collect();
    let mut at = 0;
    lines.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// The step of a plan that a heading or an item with a number names, where no line has it yet.
fn plan_step(step: &str, lines: &[Line], message: u32) -> Option<Line> {
    let text = without_number(step);
    let text =
        RESULTS.iter().find_map(|mark| text.split_once(mark)).map_or(text, |(before, _)| before).trim();
    let is_told = lines.iter().any(|line| {
        let known = line.text.strip_prefix(OF_PLAN).map(|known| known.trim_matches('"'));
        known.is_some_and(|known| text.starts_with(known))
    });
    let says_what = weigh(text).names > 0 || text.contains(" - ");
    let is_step = without_number(step).len() < step.len() && says_what && !is_told;
    is_step.then(|| Line { message, text: format!("{OF_PLAN}\"{text}\""), value: PLANNED })
}

/// What a row of a table says was chosen, where a column is headed so: its first cells, and that one.
fn chosen_in_row(unit: &Unit) -> Option<String> {
    if !unit.text.contains(" | ") {
        return None;
    }
    let (_, columns) = unit.lead.rsplit_once(" (").unwrap_or(("", &unit.lead));
    let columns: Vec<String> = columns.trim_end_matches(')').split(" | ").map(str::to_lowercase).collect();
    let cells: Vec<&str> = unit.text.split(" | ").map(str::trim).collect();
    if columns.len() < 3 || columns.len() != cells.len() {
        return None;
    }
    let at = columns.iter().position(|column| DECIDING_COLUMNS.contains(&column.trim()))?;
    let named: Vec<&str> = cells
        .iter()
        .take(at)
        .copied()
        .filter(|cell| weigh(cell).names > 0 || cell.starts_with('`'))
        .take(2)
        .collect();
    let chosen = cells.get(at).filter(|cell| cell.chars().count() >= LEAST_CELL_CHARS)?;
    (!named.is_empty()).then(|| format!("{}: {chosen}", named.join(" ")))
}

/// A shorter cell says `done`, not what was done.
const LEAST_CELL_CHARS: usize = 16;

/// Words of the person without the sentences that are standing rules.
fn without_rules(words: &str, rules: &Said) -> String {
    let is_rule = |sentence: &&str| rules.has(sentence);
    if plain_sentences(words).any(|sentence| is_rule(&sentence)) {
        return plain_sentences(words).filter(|sentence| !is_rule(sentence)).collect::<Vec<_>>().join(" ");
    }
    words.trim().to_owned()
}

/// Whether a line is code or the row of a table: it describes.
fn is_listing(line: &str) -> bool {
    line.contains(" | ") || line.starts_with('`') && line.trim_end_matches([',', '.']).ends_with('`')
}

/// So many changes are listed where little was chosen in words.
const LEAST_PERHAPS: usize = 6;
/// Longer words of the person are a document: its lines describe.
const DOCUMENT_BYTES: usize = 1_500;

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
    let told: Vec<Unit> = units(&before.text)
        .into_iter()
        .take_while(|unit| !unit.text.contains(question))
        .filter(|unit| {
            (20..420).contains(&unit.text.chars().count())
                && !is_question(&unit.text)
                && !is_listing(&unit.text)
        })
        .collect();
    // What is proposed stands right before the question.
    let near = told.len().saturating_sub(NEAR_QUESTION);
    let weighed =
        told.iter().enumerate().map(|(at, unit)| (worth(unit) + if at >= near { 1.5 } else { 0.0 }, unit));
    let best = weighed.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(worth, _)| *worth >= 1.0)
        .map(|(_, unit)| {
            let lead = if unit.lead.is_empty() { String::new() } else { format!("{}: ", unit.lead) };
            format!(" ({})", one_line(&format!("{lead}{}", without_number(&unit.text)), 240))
        })
        .unwrap_or_default()
}

/// So many lines before a question may be what it asks about.
const NEAR_QUESTION: usize = 6;

/// A sentence that tells a change and names something, as a line.
fn perhaps_chosen(sentence: &str, message: u32) -> Option<Line> {
    let lower = sentence.to_lowercase();
    let reasons = GIVEN_REASONS.iter().filter(|cue| begins_word(&lower, cue)).count();
    let names = weigh(sentence).names;
    let changes = tells_change(sentence);
    // What was found, and why it is so, was not chosen.
    let finds = TROUBLES.iter().chain(FINDING).any(|cue| begins_word(&lower, cue));
    let value = 0.5 * reasons.min(2) as f32 + 0.3 * names.min(4) as f32 + if changes { 1.0 } else { 0.0 };
    // How a change was made chooses also where it names nothing exact.
    let says_how = changes
        && [" to use ", " instead", " rather than ", " so that "].iter().any(|cue| lower.contains(cue));
    ((names > 0 || says_how) && (changes || (reasons > 0 && !finds))).then(|| Line {
        message,
        text: sentence.replace("**", ""),
        value,
    })
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
