//! Generates secrets from the shapes in the rule table, the same ones for the same seed.

/// A small deterministic generator (SplitMix64); nothing here needs to be unpredictable.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// `count` characters of the class that the table names `letter`.
    pub(crate) fn characters(&mut self, letter: &str, count: usize) -> String {
        const DIGITS: &str = "0123456789";
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let set: String = match letter {
            "d" => DIGITS.into(),
            "h" => format!("{DIGITS}abcdef"),
            "H" => format!("{DIGITS}ABCDEF"),
            "a" => LOWER.into(),
            "A" => UPPER.into(),
            "l" => format!("{LOWER}{DIGITS}"),
            "U" => format!("{UPPER}{DIGITS}"),
            "n" => format!("{LOWER}{UPPER}{DIGITS}"),
            "w" => format!("{LOWER}{UPPER}{DIGITS}_-"),
            "b" => format!("{LOWER}{UPPER}{DIGITS}+/"),
            "p" => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".into(),
            other => panic!("unknown character class {other}"),
        };
        let set: Vec<char> = set.chars().collect();
        let mut drawn: String = (0..count).map(|_| *self.pick(&set)).collect();
        // A key that ends in a separator would be ambiguous to a reader as well.
        while drawn.ends_with(['_', '-']) || drawn.starts_with(['_', '-']) {
            let replacement = *self.pick(&set);
            if drawn.ends_with(['_', '-']) {
                drawn.pop();
                drawn.push(replacement);
            } else {
                drawn.replace_range(..1, &replacement.to_string());
            }
        }
        drawn
    }
}

/// A text with a secret, and the parts of the secret that must not remain.
#[derive(Debug, Clone)]
pub(crate) struct Seeded {
    pub(crate) text: String,
    pub(crate) secret_parts: Vec<String>,
}

impl Seeded {
    /// Whether a part of the secret is still in `redacted`.
    pub(crate) fn leaks_into(&self, redacted: &str) -> bool {
        const LONGEST_REST: usize = 6;
        self.secret_parts.iter().any(|part| {
            let width = part.len().min(LONGEST_REST);
            (0..=part.len() - width).any(|start| redacted.contains(&part[start..start + width]))
        })
    }
}

/// Fills in a shape: `<n:36>` becomes 36 alphanumeric characters, `<u>` a UUID.
pub(crate) fn expand(shape: &str, dice: &mut Dice) -> Seeded {
    let mut text = String::new();
    let mut secret_parts = Vec::new();
    let mut rest = shape;
    while let Some((before, after)) = rest.split_once('<') {
        let (hole, remaining) = after.split_once('>').expect("a hole in a shape is closed");
        text.push_str(before);
        let (is_public, hole) = hole.strip_prefix('~').map_or((false, hole), |rest| (true, rest));
        let drawn = match hole.split_once(':') {
            Some((class, count)) => dice.characters(class, count.parse().expect("a count")),
            None => {
                let mut part = |count| dice.characters("h", count);
                [part(8), part(4), part(4), part(4), part(12)].join("-")
            }
        };
        text.push_str(&drawn);
        if drawn.len() >= 8 && !is_public {
            secret_parts.push(drawn);
        }
        rest = remaining;
    }
    text.push_str(rest);
    Seeded { text, secret_parts }
}
