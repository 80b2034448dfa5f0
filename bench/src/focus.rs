//! The share of a summary by rules that is about its focus, in generated conversations with known topics.
//!
//! The generator counts the share in characters, because it knows the topic of every word. The baselines are the share without a focus,
//! and the share of the conversation that is about the topic.

use std::fmt::Write;

use throughline_compaction::Conversation;
use throughline_redact::Redactor;
use throughline_testkit::{TopicConversation, TopicOptions, TopicShape, topic_conversation};
use throughline_transcript::Groups;

use crate::measure::Estimator;

/// The number of seeds per row; the row shows the least, the mean and the greatest share.
const SEEDS: u64 = 8;

pub(crate) fn run() -> Result<String, String> {
    let mut out = String::from(
        "Share of the summary that is about the focus (characters, by the generator's knowledge), by rules.\n\
         `of the talk`: share of the whole conversation. `no focus`: share of the summary without a focus.\n\n",
    );
    let _ = writeln!(
        out,
        "{:<10} {:>6} {:>6} {:>12} {:>10} {:>22} {:>9}",
        "shape", "topics", "turns", "of the talk", "no focus", "with focus (min-max)", "tokens"
    );
    for shape in [TopicShape::Turns, TopicShape::OneTask] {
        for (topics, turns, first_percent) in
            [(4, 40, 40), (6, 80, 30), (8, 160, 25), (8, 240, 15), (8, 60, 5), (8, 60, 0)]
        {
            row(&mut out, shape, topics, turns, first_percent)?;
        }
    }
    Ok(out)
}

fn row(
    out: &mut String,
    shape: TopicShape,
    topics: usize,
    turns: usize,
    first_percent: usize,
) -> Result<(), String> {
    let (mut talk_share, mut without, mut with, mut tokens) = (0.0, 0.0, Vec::new(), 0);
    for seed in 0..SEEDS {
        let talk = topic_conversation(TopicOptions { topics, turns, first_percent, shape, seed });
        let all: Vec<String> = talk.list.messages().iter().map(|message| message.json().to_owned()).collect();
        talk_share += talk.share(&all.join("\n"), 0);
        without += talk.share(&summary(&talk, None)?.0, 0);
        let (text, used) = summary(&talk, Some(talk.names.first().copied().unwrap_or_default()))?;
        with.push(talk.share(&text, 0));
        tokens += used;
    }
    let seeds = SEEDS as f64;
    let mean = with.iter().sum::<f64>() / seeds;
    let least = with.iter().copied().fold(f64::INFINITY, f64::min);
    let most = with.iter().copied().fold(0.0, f64::max);
    let shape = match shape {
        TopicShape::Turns => "turns",
        TopicShape::OneTask => "one task",
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let _ = writeln!(
        out,
        "{shape:<10} {topics:>6} {turns:>6} {:>12} {:>10} {:>22} {:>9}",
        percent(talk_share / seeds),
        percent(without / seeds),
        format!("{} ({:.0}-{:.0})", percent(mean), least * 100.0, most * 100.0),
        tokens / SEEDS,
    );
    Ok(())
}

/// The summary of a conversation for a window of twice its size, and its tokens.
fn summary(talk: &TopicConversation, focus: Option<&str>) -> Result<(String, u64), String> {
    let estimator = Estimator::default();
    let messages = talk.list.messages();
    let groups = Groups::of(&messages);
    let sizes: Vec<u64> = messages.iter().map(|message| estimator.message(message)).collect();
    let budgets = estimator.budgets(sizes.iter().sum::<u64>() * 2, 0.2)?;
    let conversation = Conversation {
        wire_format: talk.list.wire_format,
        messages: &messages,
        groups: &groups,
        sizes: &sizes,
        ledger: None,
        fixed_tokens: 0,
    };
    let attempt = estimator.compact_about(focus, &conversation, &budgets, &Redactor::new(), &|| 0);
    let document = attempt.summary.ok_or("no summary was written")?;
    let text = document.to_markdown();
    let tokens = estimator.text(&text);
    Ok((text, tokens))
}
