//! Generated conversations in which facts are stated once, with questions in other words. They are equal for every build, and nothing was
//! fitted to them.

use throughline_testkit::Rng;

use super::{Answer, Asked, Examined, Source};
use crate::store_texts::Author;

/// A statement, a question about it in other words, and the required text of an answer. `{}` is a value.
const FACTS: &[(&str, &str)] = &[
    (
        "We settled on {} connections for the pool because the replica stalls above that.",
        "how many pooled connections did we agree on?",
    ),
    ("The nightly export goes to the bucket {} from now on.", "where are the exports written every night?"),
    (
        "Let's drop the retry queue; the worker {} already retries by itself.",
        "why did we remove the queue for retries?",
    ),
    (
        "The flaky test is caused by the clock of {}, which is set twice.",
        "what makes the test fail now and then?",
    ),
    ("Please never touch {}, legal reviews it by hand.", "which file must not be changed?"),
    (
        "Root cause: the cache key leaves out the tenant {}.",
        "what was the reason for the wrong cached values?",
    ),
    ("I renamed the flag to {} since the old name was misleading.", "what is the new name of the flag?"),
    ("The migration needs {} minutes on the staging database.", "how long does migrating take on staging?"),
    ("Customer {} reported that invoices are sent twice.", "who complained about duplicate invoices?"),
    ("We keep the old endpoint until {} and then return 410.", "until when does the old endpoint stay?"),
    ("Memory grows because the parser {} never frees its buffers.", "what leaks memory?"),
    ("The release is blocked by the failing check {}.", "what is blocking the release?"),
    (
        "Use the library {} for dates, the other one has no time zones.",
        "which library did we choose for handling dates?",
    ),
    ("The password rotation runs on host {} only.", "on which machine are passwords rotated?"),
    (
        "Latency went down from 900 to {} milliseconds after batching the writes.",
        "how fast is it since the writes are batched?",
    ),
    (
        "The reviewer asked to split the change after commit {}.",
        "at which commit should the change be divided?",
    ),
];

/// A value that occurs in no other text.
fn value(rng: &mut Rng, number: usize) -> String {
    let letters = ["ka", "lo", "mi", "ne", "po", "ru", "sa", "ti", "vu", "ze"];
    let name: String = (0..3).map(|_| rng.pick(&letters)).collect();
    format!("{name}-{}", 100 + number * 7)
}

/// Generates `count` conversations.
pub(super) fn conversations(count: u64) -> Vec<Examined> {
    (0..count).map(conversation).collect()
}

fn conversation(seed: u64) -> Examined {
    let mut rng = Rng::new(seed + 1);
    let mut author = Author::new(seed + 1);
    let mut messages: Vec<(&'static str, String)> = Vec::new();
    let mut questions = Vec::new();
    for (number, (statement, question)) in FACTS.iter().enumerate() {
        for _ in 0..rng.between(2, 9) {
            let role = if messages.len().is_multiple_of(2) { "user" } else { "assistant" };
            messages.push((role, author.text()));
        }
        let value = value(&mut rng, number);
        let role = if messages.len().is_multiple_of(2) { "user" } else { "assistant" };
        messages.push((role, statement.replace("{}", &value)));
        questions.push(Asked { text: (*question).to_owned(), answer: Answer::Keys(vec![vec![value]]) });
    }
    Examined { name: format!("generated {seed}"), source: Source::Messages(messages), questions }
}
