//! Scores the views that a replay sent by what a reader marked as true.

use std::path::Path;

use super::NOTES_TAG;
use super::score::{NotesForm, Scorer};
use super::text::tokens;
use super::truth::{self, Truth};

/// The marks of sessions.
pub(crate) struct Marks {
    truths: Vec<Truth>,
    scorer: Scorer,
}

/// The score of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewScore {
    /// A quarter of its characters.
    pub(crate) tokens: usize,
    /// The number of questions, and of those that the view answers.
    pub(crate) probes: usize,
    pub(crate) answered: usize,
    /// The hits and marks of its notes, if it has notes.
    pub(crate) notes: Option<(usize, usize)>,
}

impl Marks {
    /// Reads the marks of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let truths = truth::read_all(folder)?.into_iter().map(|(truth, _)| truth).collect();
        Ok(Self { truths, scorer: Scorer::new().map_err(|error| error.to_string())? })
    }

    /// The line at which a session was marked; everything before it is the past.
    pub(crate) fn cut(&self, session: &str) -> Option<usize> {
        self.truths.iter().find(|truth| truth.session == session).map(|truth| truth.cut)
    }

    /// Scores the view that was sent at the marked line, given the texts of its messages in order.
    pub(crate) fn score(&self, session: &str, view: &[String]) -> Result<ViewScore, String> {
        let Some(truth) = self.truths.iter().find(|truth| truth.session == session) else {
            return Err(format!("no marks of {session}"));
        };
        let notes = view.iter().find(|text| text.contains(NOTES_TAG));
        let whole = view.join("\n");
        let text = notes.map_or("", String::as_str);
        let rows = self.scorer.score(truth, text, &whole, NotesForm::Sections)?;
        let seen = "probes answered by the view";
        let (_, answered, probes) = rows.iter().find(|(name, ..)| *name == seen).copied().unwrap_or_default();
        // Rows in which less is better, and shares, are not part of the score.
        let is_score = |name: &str| name != seen && !name.contains('(') && !name.starts_with(' ');
        let scored = rows.iter().filter(|(name, ..)| is_score(name));
        let sum = scored.fold((0, 0), |sum, (_, hits, of)| (sum.0 + hits, sum.1 + of));
        Ok(ViewScore { tokens: tokens(&whole), probes, answered, notes: notes.map(|_| sum) })
    }
}

/// The percentage of questions that a view of this size must answer, linear between three sizes.
pub(crate) fn asked_percent(tokens: f64) -> f64 {
    const ASKED: [(f64, f64); 3] = [(5_600.0, 86.0), (8_000.0, 90.0), (13_300.0, 95.0)];
    let [(smallest, least), _, (_, most)] = ASKED;
    if tokens <= smallest {
        return least;
    }
    let pair = ASKED.windows(2).find_map(|pair| match pair {
        [(from, low), (to, high)] if tokens <= *to => {
            Some(low + (high - low) * (tokens - from) / (to - from))
        }
        _ => None,
    });
    pair.unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::asked_percent;

    #[test]
    fn asked_share_is_linear_between_the_sizes() {
        assert_eq!(
            [0.0, 5_600.0, 8_000.0, 13_300.0, 90_000.0].map(asked_percent),
            [86.0, 86.0, 90.0, 95.0, 95.0]
        );
        assert_eq!(asked_percent(6_800.0), 88.0);
    }
}
