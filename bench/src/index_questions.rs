//! The questions of the index benchmark, equal for every index: words, whole questions, substrings, phrases, and words of two Chinese
//! characters.

use throughline_testkit::Rng;

use crate::store_texts::{Author, HAN};

/// The number of questions of each kind.
pub(crate) const QUESTIONS: usize = 30;

/// What a text must contain to be an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Every word.
    AllWords,
    /// Any word; more and rarer ones rank higher.
    AnyWord,
    /// The words, in sequence.
    Phrase,
    /// The characters, anywhere.
    Substring,
}

/// Questions of one kind.
pub(crate) struct QuestionKind {
    pub(crate) name: &'static str,
    pub(crate) wanted: Wanted,
    pub(crate) questions: Vec<String>,
}

/// All questions, the same in every run.
pub(crate) fn kinds(author: &Author) -> Vec<QuestionKind> {
    let mut rng = Rng::new(9);
    let mut words = |count: usize, from: usize, to: usize| -> Vec<String> {
        (0..QUESTIONS)
            .map(|_| (0..count).map(|_| author.word(rng.between(from, to))).collect::<Vec<_>>().join(" "))
            .collect()
    };
    let mut kind =
        |name, count, from, to, wanted| QuestionKind { name, wanted, questions: words(count, from, to) };
    let mut kinds = vec![
        kind("a rare word", 1, 20_000, 39_999, Wanted::AllWords),
        kind("a word", 1, 500, 5_000, Wanted::AllWords),
        kind("two words", 2, 60, 2_000, Wanted::AllWords),
        kind("a question of five words", 5, 60, 3_000, Wanted::AnyWord),
        kind("a question of five common words", 5, 20, 300, Wanted::AnyWord),
        kind("a question of twelve words", 12, 60, 20_000, Wanted::AnyWord),
        kind("a phrase of two common words", 2, 0, 60, Wanted::Phrase),
    ];
    let inner =
        |word: &str, letters: usize| word.get(1..(1 + letters).min(word.len())).unwrap_or(word).to_owned();
    let mut pieces = |name, from, to, letters| QuestionKind {
        name,
        wanted: Wanted::Substring,
        questions: (0..QUESTIONS).map(|_| inner(author.word(rng.between(from, to)), letters)).collect(),
    };
    kinds.push(pieces("eight letters inside a rare word", 20_000, 39_999, 8));
    kinds.push(pieces("five letters inside a word", 300, 3_000, 5));
    kinds.push(QuestionKind {
        name: "a word of two Chinese characters",
        wanted: Wanted::Substring,
        questions: HAN.iter().copied().map(str::to_owned).take(QUESTIONS).collect(),
    });
    kinds
}

/// All trigrams of a text.
pub(crate) fn trigrams_of(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.windows(3).map(|part| part.iter().collect()).collect()
}
