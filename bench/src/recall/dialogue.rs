//! Generated dialogues similar to LoCoMo: two people, 27 meetings, about 600 short turns, facts stated once among talk about the same
//! topics, and questions about them in other words. They are equal for every build, and nothing was fitted to them.

use throughline_testkit::Rng;

use super::{Answer, Asked, Examined, Source};

const MEETINGS: usize = 27;

/// A topic that two people discuss repeatedly.
struct Topic {
    /// Statements made once, with the question about each. `{}` is a value, `{me}` the speaker, `{other}` the listener.
    facts: &'static [(&'static str, &'static str)],
    values: &'static [&'static str],
    /// Statements about it at other times.
    talk: &'static [&'static str],
}

const TOPICS: &[Topic] = &[
    Topic {
        facts: &[
            ("I signed up for a pottery class at {} last week.", "Where does {me} take the pottery class?"),
            (
                "My bowl was chosen for the show of {} in the spring.",
                "Which show was {me}'s bowl chosen for?",
            ),
            ("Clay calms me down since {} got me into it.", "Who got {me} into clay?"),
        ],
        values: &["the Hollow Kiln", "Marren Street", "Studio Vantreight", "Aunt Ludmila", "Old Foundry"],
        talk: &[
            "The class is such a good way to relax after work.",
            "I made another bowl and it cracked in the kiln again.",
            "Clay gets everywhere, you should see my kitchen.",
        ],
    },
    Topic {
        facts: &[
            ("We adopted a puppy called {} on Sunday.", "What is the name of {me}'s dog?"),
            (
                "The vet said the dog has to take pills for {} weeks.",
                "How many weeks does {me}'s dog need pills?",
            ),
            ("He ate the sofa while we visited {}.", "What was {me} visiting when the dog ate the couch?"),
        ],
        values: &["Biscotti", "Pepperjack", "Quillon", "eleven", "Grandpa Osric", "the Fensters"],
        talk: &[
            "The dog keeps us busy, we walk him three times a day.",
            "Pets really make a home, don't you think?",
            "He learned a new trick and wants a treat for everything.",
        ],
    },
    Topic {
        facts: &[
            ("I ran the charity race for {} and finished it.", "What charity did {me} run the race for?"),
            ("My knee hurts since the hill near {}, so I paused training.", "Where did {me} hurt a knee?"),
            ("Next I want to do a marathon in {}.", "In which city does {me} plan to run a marathon?"),
        ],
        values: &["clean rivers", "the hospice", "Tamsin Rock", "Graywater", "Lisbon", "Trondheim"],
        talk: &[
            "Running early in the morning clears my head.",
            "The training plan says rest, but I like to run every day.",
            "Good shoes make all the difference on a long run.",
        ],
    },
    Topic {
        facts: &[
            ("I got the job at {} and start in March!", "Where did {me} get a new job?"),
            ("My boss moved me to the team of {}.", "Whose team did {me}'s boss move {me} to?"),
            ("I quit because of {}, it wasn't worth it.", "Why did {me} quit the old job?"),
        ],
        values: &["Harrowgate Press", "Nimbus Freight", "Deborah Quist", "the night shifts", "the commute"],
        talk: &[
            "Work has been a lot lately, but the people are nice.",
            "I have another interview on Friday, wish me luck.",
            "My boss wants everything yesterday, as always.",
        ],
    },
    Topic {
        facts: &[
            ("We camped at {} and saw the meteors.", "Where did {me} watch meteors?"),
            (
                "The kids fell in love with {} on that trip.",
                "What did {me}'s kids love about the camping trip?",
            ),
            ("It rained so much that we slept in {}.", "Where did {me} sleep because of the rain?"),
        ],
        values: &["Lake Orrin", "Birchwater", "the canoe lessons", "a barn", "the old bus"],
        talk: &[
            "Nothing beats a fire and marshmallows under the sky.",
            "The kids ask every week when we go camping again.",
            "Being outside with the family is the best part of summer.",
        ],
    },
    Topic {
        facts: &[
            ("I sold a painting to {} for the first time.", "To whom did {me} sell a painting first?"),
            ("The sunset I painted was inspired by {}.", "What inspired the sunset that {me} painted?"),
            ("I teach watercolors at {} on weekends.", "Where does {me} teach watercolor painting?"),
        ],
        values: &["Dr. Halloran", "a dentist", "the harbor at Nairn", "the shelter", "Willow House"],
        talk: &[
            "Painting helps me say what I can't put into words.",
            "The colors never come out the way I see them.",
            "I have been painting late into the night again.",
        ],
    },
    Topic {
        facts: &[
            ("We met with the adoption agency {} today.", "Which adoption agency did {me} meet with?"),
            ("The form has to be handed in by {}.", "By when does {me} have to hand in the adoption form?"),
            ("My friend {} is going to write a letter for us.", "Which friend will write a letter for {me}?"),
        ],
        values: &["Open Arbor", "Safe Landing", "the ninth of June", "Perpetua", "Coach Wendell"],
        talk: &[
            "Building a family is what I always dreamed of.",
            "The agency asks so many questions, it is exhausting.",
            "Every child deserves a loving home.",
        ],
    },
    Topic {
        facts: &[
            ("I bought my guitar from {} for next to nothing.", "From whom did {me} buy a guitar?"),
            ("My first song is about {}.", "What is {me}'s first song about?"),
            ("We played at {} and people danced.", "Where did {me} play music for people to dance?"),
        ],
        values: &["a retired sailor", "Maude", "the lighthouse", "losing my keys", "the Copper Fox"],
        talk: &[
            "Music brings everybody together, it is magic.",
            "I practice the same three chords every evening.",
            "That concert was so loud, my ears still ring.",
        ],
    },
    Topic {
        facts: &[
            ("Our tomatoes won a prize at {}.", "Where did {me}'s tomatoes win?"),
            ("I planted {} along the fence.", "What did {me} plant by the fence?"),
            ("The deer keep eating everything, so {} lent me a net.", "Who helped {me} protect the garden?"),
        ],
        values: &["the Alder Fair", "blue hollyhocks", "quince", "Mr. Oyelaran", "our mail carrier"],
        talk: &[
            "The garden is full of weeds after all that rain.",
            "Fresh herbs make every dinner better.",
            "I love sitting outside with a cup of tea and watching things grow.",
        ],
    },
    Topic {
        facts: &[
            ("I finished the book {} in one night.", "Which book did {me} finish reading in a single night?"),
            ("Our book club meets at {} now.", "Where does {me}'s book club meet?"),
            (
                "{} recommended the memoir that changed my mind.",
                "Whose advice about a biography did {me} follow?",
            ),
        ],
        values: &["Salt and Ember", "The Ninth Orchard", "the bakery", "the library annex", "Professor Iyer"],
        talk: &[
            "Reading before bed is my favorite part of the day.",
            "I have a pile of books that I will never finish.",
            "The club argued about the ending for an hour.",
        ],
    },
];

const OPENERS: &[&str] = &[
    "Hey {other}, so good to hear from you!",
    "Wow, that's amazing!",
    "Thanks, {other}!",
    "Oh no, I'm sorry to hear that.",
    "That sounds lovely.",
    "Yeah, totally.",
    "How have you been?",
    "Guess what, {other}.",
    "I know what you mean.",
    "",
];

const CLOSERS: &[&str] = &[
    "What about you?",
    "It means a lot to me.",
    "I can't wait to tell you more.",
    "Take care, {other}!",
    "How did it go for you?",
    "We should catch up soon.",
    "You always know what to say.",
    "It made my whole week.",
    "",
];

const PEOPLE: &[(&str, &str)] =
    &[("Caroline", "Melanie"), ("Jon", "Gina"), ("Nate", "Joanna"), ("Tim", "John"), ("Audrey", "Andrew")];

/// Generates `count` dialogues.
pub(super) fn conversations(count: u64) -> Vec<Examined> {
    (0..count).map(conversation).collect()
}

fn conversation(seed: u64) -> Examined {
    let mut rng = Rng::new(seed + 101);
    let (first, second) = PEOPLE[rng.below(PEOPLE.len())];
    let named = |text: &str, is_first: bool| {
        let (me, other) = if is_first { (first, second) } else { (second, first) };
        text.replace("{me}", me).replace("{other}", other)
    };
    // Every fact has a position among the turns; other talk about its topic is everywhere.
    let facts: Vec<(&Topic, &(&str, &str))> =
        TOPICS.iter().flat_map(|topic| topic.facts.iter().map(move |fact| (topic, fact))).collect();
    let mut turns: Vec<(bool, String)> = Vec::new();
    let mut said: Vec<(String, String)> = Vec::new();
    let mut left: Vec<usize> = (0..facts.len()).collect();
    for meeting in 0..MEETINGS {
        let length = rng.between(18, 26);
        let here = left.len().div_ceil(MEETINGS - meeting);
        let mut places: Vec<usize> = (0..here).map(|_| rng.below(length)).collect();
        places.sort_unstable();
        places.dedup();
        for turn in 0..length {
            let is_first = turns.len().is_multiple_of(2);
            let mut body = Vec::new();
            if places.contains(&turn) && !left.is_empty() {
                let (topic, (statement, question)) = facts[left.swap_remove(rng.below(left.len()))];
                let mut statement = named(statement, is_first);
                let question = named(question, is_first);
                // Every third fact answers the previous turn, and does not repeat the word it is about.
                let word = Some(rng.chance(33))
                    .filter(|answers| *answers)
                    .and_then(|_| shared_word(&statement, &question));
                if let (Some(word), Some((_, before))) = (word, turns.last_mut()) {
                    statement = statement.replacen(&word, "it", 1);
                    before.push_str(&format!(" Now tell me about the {word}!"));
                }
                let statement = statement.replace("{}", rng.pick(topic.values));
                said.push((statement.clone(), question));
                body.push(statement);
            }
            while body.len() < 2 {
                let topic = &TOPICS[rng.below(TOPICS.len())];
                body.push(named(rng.pick(topic.talk), is_first));
            }
            let opener = named(rng.pick(OPENERS), is_first);
            let closer = named(rng.pick(CLOSERS), is_first);
            let name = if is_first { first } else { second };
            let words = [vec![opener], body, vec![closer]].concat().join(" ");
            turns.push((is_first, format!("{name}: {}", words.trim())));
        }
    }
    let questions = said
        .into_iter()
        .map(|(statement, question)| Asked { text: question, answer: Answer::Keys(vec![vec![statement]]) })
        .collect();
    let role = |is_first: bool| if is_first { "user" } else { "assistant" };
    let messages = turns.into_iter().map(|(is_first, text)| (role(is_first), text)).collect();
    Examined { name: format!("dialogue {seed}"), source: Source::Messages(messages), questions }
}

/// The longest word that a statement shares with the question about it.
fn shared_word(statement: &str, question: &str) -> Option<String> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 3).map(str::to_owned).collect()
    };
    let asked = words(question);
    words(statement).into_iter().filter(|word| asked.contains(word)).max_by_key(String::len)
}
