//! Whether a text is about a topic: by words, stems, and parts of identifiers and paths.

use crate::stems::normalised;

/// Words that say nothing about a topic.
const FILL: &[&str] = &[
    "the", "and", "for", "with", "about", "all", "of", "on", "in", "to", "a", "an", "our", "my", "its", "it",
    "how", "what", "is", "are",
];
/// A stem at least this long also finds words that begin with it (`auth` finds `authentication`).
const SHORTEST_PREFIX: usize = 4;
/// A text is about a topic of several words when it has words of at least this share of the topic's weight. Two words
/// of equal weight find a text alone, one of three does not.
const LEAST_WEIGHT: f32 = 0.4;

/// What a person asked to focus on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topic {
    words: Vec<TopicWord>,
}

#[derive(Clone, Debug)]
struct TopicWord {
    /// What is looked for in normalised text; see [`normalised`].
    pattern: String,
    weight: f32,
}

impl Topic {
    /// Reads a topic. One without a word of its own is not set.
    pub(crate) fn new(topic: Option<&str>) -> Self {
        let mut words: Vec<TopicWord> = Vec::new();
        for word in topic.unwrap_or_default().split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            if bare.is_empty() || FILL.contains(&bare.to_lowercase().as_str()) {
                continue;
            }
            let mut pattern = normalised(bare);
            let last = pattern.trim_end().rsplit(' ').next().unwrap_or_default();
            let is_ascii = last.is_ascii();
            let may_go_on =
                last.chars().count() >= SHORTEST_PREFIX && !last.bytes().any(|b| b.is_ascii_digit());
            if may_go_on || !is_ascii {
                pattern = pattern.trim_end().to_owned();
            }
            // Scripts without spaces between words: the word may stand anywhere.
            if !is_ascii {
                pattern = pattern.trim_start().to_owned();
            }
            if pattern.trim().chars().count() >= 2 && !words.iter().any(|known| known.pattern == pattern) {
                words.push(TopicWord { pattern, weight: 1.0 });
            }
        }
        Self { words }
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.words.is_empty()
    }

    /// Gives words that stand in few of these texts more weight than words that stand in many.
    pub(crate) fn weigh<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        let mut all = 0u32;
        let mut found = vec![0u32; self.words.len()];
        for text in texts {
            let text = normalised(text);
            all += 1;
            for (word, count) in self.words.iter().zip(&mut found) {
                *count += u32::from(text.contains(&word.pattern));
            }
        }
        for (word, count) in self.words.iter_mut().zip(found) {
            // A word that stands nowhere cannot tell one text from another.
            word.weight = if count == 0 { 0.0 } else { (1.0 + all as f32 / (1.0 + count as f32)).ln() };
        }
    }

    /// The topic, unless none of its words stands anywhere: then there is nothing to focus on.
    pub(crate) fn found(self) -> Self {
        if self.words.iter().any(|word| word.weight > 0.0) { self } else { Self::default() }
    }

    /// Whether a text is about the topic.
    pub(crate) fn matches(&self, text: &str) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let text = normalised(text);
        let (mut has, mut all) = (0.0, 0.0);
        for word in &self.words {
            all += word.weight;
            if text.contains(&word.pattern) {
                has += word.weight;
            }
        }
        has > 0.0 && has >= all * LEAST_WEIGHT
    }
}

#[cfg(test)]
#[path = "topic_tests.rs"]
mod tests;
