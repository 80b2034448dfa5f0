//! The order of hits: first by how well the text matches, then by role and age. The same in every implementation of the
//! record, so that all return the same order.

use std::collections::HashMap;

use throughline_transcript::Role;

use crate::matching::Fit;

/// What is known of a hit beside its text.
#[derive(Clone, Copy, Debug)]
pub struct HitSource {
    /// Who speaks.
    pub role: Role,
    /// In the user's name, but not by the user.
    pub machine_written: bool,
    /// The words stand in an artifact.
    pub in_artifact: bool,
}

impl HitSource {
    /// Whether a person or a model wrote it.
    pub fn is_dialogue(self) -> bool {
        !self.in_artifact && !self.machine_written && matches!(self.role, Role::User | Role::Assistant)
    }
}

const FREQUENCY_WEIGHT: f64 = 1.0;
const CLOSENESS_WEIGHT: f64 = 0.8;
const AS_ASKED_WEIGHT: f64 = 0.6;
const DENSITY_WEIGHT: f64 = 0.8;
/// A twentieth of a text being what was looked for is much; more adds little.
const DENSITY_HALF: f64 = 0.05;
const RECENCY_WEIGHT: f64 = 0.25;
/// After so many days a hit has lost half of what being new gives.
const RECENCY_HALF_DAYS: f64 = 30.0;
const MS_PER_DAY: f64 = 86_400_000.0;

/// How high a hit ranks; larger is higher. `newest_ms` is the time of the newest hit: age is counted from there, for
/// no code here has a clock.
fn score(fit: &Fit, speaker: HitSource, at_ms: i64, newest_ms: i64) -> f64 {
    let density = fit.density / (fit.density + DENSITY_HALF);
    let text = FREQUENCY_WEIGHT * fit.frequency
        + CLOSENESS_WEIGHT * fit.closeness
        + AS_ASKED_WEIGHT * f64::from(u8::from(fit.as_asked))
        + DENSITY_WEIGHT * density;
    let age_days = newest_ms.saturating_sub(at_ms).max(0) as f64 / MS_PER_DAY;
    let recency = RECENCY_WEIGHT / (1.0 + age_days / RECENCY_HALF_DAYS);
    text * speaker_weight(speaker) + recency
}

/// Something that answers, before it is ranked.
#[derive(Clone, Copy, Debug)]
pub struct SearchCandidate<K> {
    /// What it is called by. Of two that fit equally well the larger comes first.
    pub key: K,
    /// Hash of what it says: the same is shown once.
    pub content: [u8; 32],
    /// How well it answers.
    pub fit: Fit,
    /// Who says it.
    pub speaker: HitSource,
    /// When the message was recorded.
    pub at_ms: i64,
}

/// A candidate that made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedHit<K> {
    /// What it is called by.
    pub key: K,
    /// How high it ranks.
    pub score: f64,
    /// How many others say the very same.
    pub repeats: u64,
}

impl<K: Copy + Ord> SearchCandidate<K> {
    /// The best candidates, best first, the same content once.
    pub fn best(candidates: &[Self], limit: usize) -> Vec<RankedHit<K>> {
        let newest_ms = candidates.iter().map(|candidate| candidate.at_ms).max().unwrap_or_default();
        let mut ranked: Vec<(RankedHit<K>, [u8; 32])> = candidates
            .iter()
            .map(|candidate| {
                let score = score(&candidate.fit, candidate.speaker, candidate.at_ms, newest_ms);
                (RankedHit { key: candidate.key, score, repeats: 0 }, candidate.content)
            })
            .collect();
        ranked.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score).then(b.key.cmp(&a.key)));
        let mut places: HashMap<[u8; 32], usize> = HashMap::new();
        let mut kept: Vec<RankedHit<K>> = Vec::new();
        for (hit, content) in ranked {
            match places.get(&content) {
                Some(&place) => {
                    if let Some(first) = kept.get_mut(place) {
                        first.repeats += 1;
                    }
                }
                None => {
                    places.insert(content, kept.len());
                    kept.push(hit);
                }
            }
        }
        kept.truncate(limit);
        kept
    }
}

/// What people and models say is looked for more often than what tools print.
fn speaker_weight(speaker: HitSource) -> f64 {
    if speaker.in_artifact {
        return 0.8;
    }
    match speaker.role {
        Role::User if speaker.machine_written => 0.8,
        Role::User => 1.15,
        Role::Assistant => 1.1,
        Role::System | Role::Developer | Role::Other => 0.9,
        Role::Tool => 0.9,
    }
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
