//! How much of a summary is about its focus, in conversations whose topics the generator knows.

use throughline_testkit::{TopicConversation, TopicOptions, TopicShape, topic_conversation};

use crate::harness::{Case, Setup};

fn talk(shape: TopicShape, seed: u64) -> TopicConversation {
    topic_conversation(TopicOptions { topics: 6, turns: 80, first_percent: 30, shape, seed })
}

/// Longer ones, of which the first topic is a smaller part: the words of the person alone would fill the notes.
fn long_talk(shape: TopicShape, turns: usize, first_percent: usize) -> TopicConversation {
    topic_conversation(TopicOptions { topics: 8, turns, first_percent, shape, seed: 1 })
}

/// The share of the summary that is about the first topic, without a focus and with it.
fn shares(talk: &TopicConversation) -> (f64, f64) {
    let case = Case::of(&talk.list);
    let plain = Setup::window(case.tokens() * 2);
    let focused = Setup { focus: talk.names.first().copied(), ..plain.clone() };
    let share = |setup: &Setup| {
        let attempt = case.compact(setup);
        talk.share(&attempt.summary.unwrap().to_markdown(), 0)
    };
    (share(&plain), share(&focused))
}

#[test]
fn focus_fills_two_thirds_of_the_summary_where_there_is_enough_to_say() {
    let mut shown = String::new();
    let mut wrong = 0;
    for shape in [TopicShape::Turns, TopicShape::OneTask] {
        for seed in 0..4 {
            let (without, with) = shares(&talk(shape, seed));
            shown.push_str(&format!("{shape:?} {seed}: {without:.2} without a focus, {with:.2} with it\n"));
            wrong += usize::from(!(0.55..=0.75).contains(&with) || without > 0.5);
        }
    }
    assert_eq!(wrong, 0, "{shown}");
}

#[test]
fn focus_fills_two_thirds_of_the_summary_of_a_long_conversation_with_many_topics() {
    let mut shown = String::new();
    let mut wrong = 0;
    for shape in [TopicShape::Turns, TopicShape::OneTask] {
        for (turns, first_percent) in [(160, 25), (240, 15)] {
            let (without, with) = shares(&long_talk(shape, turns, first_percent));
            shown.push_str(&format!("{shape:?} {turns}: {without:.2} without a focus, {with:.2} with it\n"));
            wrong += usize::from(!(0.57..=0.72).contains(&with));
        }
    }
    assert_eq!(wrong, 0, "{shown}");
}

#[test]
fn focus_with_little_to_say_about_it_leaves_the_rest_of_the_notes_its_room() {
    let talk = topic_conversation(TopicOptions {
        topics: 8,
        turns: 60,
        first_percent: 3,
        shape: TopicShape::Turns,
        seed: 3,
    });
    let case = Case::of(&talk.list);
    let plain = Setup::window(case.tokens() * 2);
    let focused = Setup { focus: talk.names.first().copied(), ..plain.clone() };
    let length = |setup: &Setup| case.compact(setup).summary.unwrap().to_markdown().len();
    // The focus may have 60 to 70 % of the budget; what it cannot fill is not taken from the other topics.
    let (plain, focused) = (length(&plain), length(&focused));
    assert!(focused * 10 >= plain * 4, "{focused} bytes of {plain}");
}

#[test]
fn focus_on_something_nobody_spoke_of_changes_nothing() {
    let talk = talk(TopicShape::Turns, 1);
    let case = Case::of(&talk.list);
    let plain = Setup::window(case.tokens() * 2);
    let focused = Setup { focus: Some("quantum chromodynamics"), ..plain.clone() };
    let text = |setup: &Setup| case.compact(setup).summary.unwrap().to_markdown();
    assert_eq!(text(&plain), text(&focused));
}

#[test]
fn focus_keeps_rules_of_the_person_about_other_topics() {
    let talk = talk(TopicShape::Turns, 2);
    let case = Case::of(&talk.list);
    let setup = Setup { focus: talk.names.first().copied(), ..Setup::window(case.tokens() * 2) };
    // What the model sees: the summary, and the tail as it stands.
    let text = case.bytes(&case.compact(&setup).items).join("\n");
    let rules: Vec<String> = case
        .messages
        .iter()
        .filter(|message| message.is_human())
        .flat_map(|message| message.text().split(". ").map(str::to_owned).collect::<Vec<_>>())
        .filter(|sentence| sentence.starts_with("Never change"))
        .collect();
    assert!(rules.len() > 4);
    let kept = rules.iter().filter(|rule| text.contains(rule.trim_end_matches('.'))).count();
    assert_eq!(kept, rules.len(), "{rules:?}\n{text}");
}
