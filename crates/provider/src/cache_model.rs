//! A provider's prompt cache as its published rules describe it: which part of a prompt is read, written, or neither.
//!
//! [`PrefixCache`] receives whole requests with their times, and returns what a provider would bill. So prompts can be priced without a
//! provider: in tests, and when a recorded conversation is replayed. Tokens are those of the estimator. Parts: `pieces` splits a request,
//! `rules` has the rules of each provider, this file has the entries.
//!
//! Not for: what a real provider did; that is in the usage it reports. Entries that a provider drops early, calls that another of its
//! machines answers and the sharing of entries between keys are not modelled.

mod pieces;
mod rules;

use std::collections::HashMap;
use std::time::Duration;

use throughline_tokens::{Catalogue, Usage};
use throughline_wire::{ReportedUsage, Request};

use crate::cache_policy::CacheTtl;
use pieces::{Chain, Layout, Position, PromptReader};

pub use pieces::MarkComplaint;
pub use rules::CacheStyle;

/// A mark finds an older entry at its own block or at one of the blocks before it, within this many blocks.
const LOOK_BACK_BLOCKS: usize = 20;
/// The step in which the cache without marks counts cached tokens.
const STEP_TOKENS: u64 = 128;
/// The smallest prompt cached without marks, if the catalogue has no other value.
const AUTOMATIC_MINIMUM_TOKENS: u64 = 1_024;
/// The smallest marked prompt that is cached, if the catalogue has no other value.
const MARKED_MINIMUM_TOKENS: u64 = 1_024;
/// Expired entries are removed once there are this many entries.
const ENTRIES_BEFORE_SWEEP: usize = 8_192;

/// The prompt cache of one customer at a provider.
#[derive(Debug)]
pub struct PrefixCache {
    style: CacheStyle,
    catalogue: Catalogue,
    reader: PromptReader,
    entries: HashMap<Chain, CacheEntry>,
    sweep_at: usize,
}

/// A prefix in the cache.
#[derive(Clone, Copy, Debug)]
struct CacheEntry {
    lifetime_ms: i64,
    dies_at_ms: i64,
}

impl CacheEntry {
    fn born(lifetime_ms: i64, at_ms: i64) -> Self {
        Self { lifetime_ms, dies_at_ms: at_ms.saturating_add(lifetime_ms) }
    }

    fn lives(&self, at_ms: i64) -> bool {
        at_ms < self.dies_at_ms
    }

    fn used(&mut self, at_ms: i64) {
        self.dies_at_ms = self.dies_at_ms.max(at_ms.saturating_add(self.lifetime_ms));
    }
}

/// The rules for one model that caches without marks.
#[derive(Clone, Copy, Debug)]
struct AutomaticCache {
    minimum_tokens: u64,
    lifetime_ms: i64,
    charges_writes: bool,
}

/// A prompt that was sent, with its price.
#[derive(Clone, Debug)]
pub struct PricedPrompt {
    /// The usage a provider would report for it, with no output.
    pub reported: ReportedUsage,
    /// Tokens of tools and system prompt in it.
    pub fixed_tokens: u64,
    /// The entries that become readable once the answer starts, with their lifetimes.
    written: Vec<(Chain, i64)>,
}

impl PricedPrompt {
    /// Returns the size of the whole prompt.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.reported.usage.prompt()
    }
}

impl PrefixCache {
    /// Creates an empty cache that uses the shipped catalogue.
    #[must_use]
    pub fn new(style: CacheStyle) -> Self {
        Self::with_catalogue(style, Catalogue::shipped())
    }

    /// Creates an empty cache that uses this catalogue.
    #[must_use]
    pub fn with_catalogue(style: CacheStyle, catalogue: Catalogue) -> Self {
        let reader = PromptReader::new(style);
        Self { style, catalogue, reader, entries: HashMap::new(), sweep_at: ENTRIES_BEFORE_SWEEP }
    }

    /// Sends a prompt: what it reads is renewed, what it writes becomes readable with [`answer_began`](Self::answer_began).
    pub fn ask(&mut self, request: &Request, at_ms: i64) -> Result<PricedPrompt, MarkComplaint> {
        let model = request.model().unwrap_or_default();
        let known = self.catalogue.of(&model);
        let (facts, family) = (known.facts, known.family_on(request.wire_format()));
        let Layout { positions, fixed_tokens } = self.reader.read(request, family)?;
        let prompt = match self.style {
            CacheStyle::Marks => self.ask_marked(
                &positions,
                facts.cache_minimum_tokens.unwrap_or(MARKED_MINIMUM_TOKENS),
                at_ms,
            ),
            CacheStyle::Automatic { lifetime, writes } => {
                let rules = AutomaticCache {
                    minimum_tokens: facts.cache_minimum_tokens.unwrap_or(AUTOMATIC_MINIMUM_TOKENS),
                    lifetime_ms: in_ms(lifetime),
                    charges_writes: writes.charged_for(&self.catalogue, &model, at_ms),
                };
                self.ask_unmarked(&positions, rules, at_ms)
            }
            CacheStyle::None => priced(total(&positions), 0, 0, 0, Vec::new()),
        };
        Ok(PricedPrompt { fixed_tokens, ..prompt })
    }

    /// Makes the entries of a prompt readable for other calls, because its answer has started. A failed call writes none.
    pub fn answer_began(&mut self, prompt: &PricedPrompt, at_ms: i64) {
        for (chain, lifetime_ms) in &prompt.written {
            let born = CacheEntry::born(*lifetime_ms, at_ms);
            let entry = self.entries.entry(*chain).or_insert(born);
            if !entry.lives(at_ms) || entry.lifetime_ms < born.lifetime_ms {
                *entry = born;
            }
            entry.used(at_ms);
        }
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| entry.lives(at_ms));
            self.sweep_at = ENTRIES_BEFORE_SWEEP.max(self.entries.len().saturating_mul(2));
        }
    }

    fn is_readable(&self, chain: Chain, at_ms: i64) -> bool {
        self.entries.get(&chain).is_some_and(|entry| entry.lives(at_ms))
    }

    fn ask_marked(&mut self, positions: &[Position], minimum: u64, at_ms: i64) -> PricedPrompt {
        let marks: Vec<(usize, CacheTtl, u64)> = positions
            .iter()
            .enumerate()
            .filter(|(_, position)| position.end_tokens >= minimum)
            .filter_map(|(index, position)| Some((index, position.mark?, position.end_tokens)))
            .collect();
        // The last mark with a matching entry finds the longest prefix.
        let hit = marks.iter().rev().find_map(|(mark, ..)| {
            let first = (mark + 1).saturating_sub(LOOK_BACK_BLOCKS);
            (first..=*mark)
                .rev()
                .find(|at| positions.get(*at).is_some_and(|p| self.is_readable(p.chain, at_ms)))
        });
        let read = hit.and_then(|at| positions.get(at)).map_or(0, |position| position.end_tokens);
        if let Some(entry) = hit.and_then(|at| self.entries.get_mut(&positions.get(at)?.chain)) {
            entry.used(at_ms);
        }
        let (mut written_to, mut long_to) = (read, read);
        let mut written = Vec::new();
        for (index, ttl, end) in &marks {
            let Some(position) = positions.get(*index) else { continue };
            written.push((position.chain, in_ms(ttl.duration())));
            if hit.is_some_and(|hit| *index <= hit) {
                // Inside the part that was read: renewed with it, at no charge.
                continue;
            }
            written_to = written_to.max(*end);
            if *ttl == CacheTtl::OneHour {
                long_to = long_to.max(*end);
            }
        }
        priced(total(positions), read, written_to - read, long_to - read, written)
    }

    fn ask_unmarked(&mut self, positions: &[Position], rules: AutomaticCache, at_ms: i64) -> PricedPrompt {
        let AutomaticCache { minimum_tokens, lifetime_ms, charges_writes } = rules;
        let prompt = total(positions);
        if prompt < minimum_tokens {
            return priced(prompt, 0, 0, 0, Vec::new());
        }
        let hit = positions.iter().rposition(|position| self.is_readable(position.chain, at_ms));
        for position in positions.iter().take(hit.map_or(0, |at| at + 1)) {
            if let Some(entry) = self.entries.get_mut(&position.chain) {
                entry.used(at_ms);
            }
        }
        let in_steps = |tokens: u64| tokens / STEP_TOKENS * STEP_TOKENS;
        // The last token is never read from the cache: the answer starts there.
        let common = hit.and_then(|at| positions.get(at)).map_or(0, |position| position.end_tokens);
        let read = in_steps(common.min(prompt.saturating_sub(1)));
        let read = if read >= minimum_tokens { read } else { 0 };
        let write = if charges_writes { in_steps(prompt).saturating_sub(read) } else { 0 };
        let written = positions.iter().map(|position| (position.chain, lifetime_ms)).collect();
        priced(prompt, read, write, 0, written)
    }
}

fn in_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn total(positions: &[Position]) -> u64 {
    positions.last().map_or(0, |last| last.end_tokens)
}

fn priced(
    prompt: u64,
    cache_read: u64,
    cache_write: u64,
    cache_write_1h: u64,
    written: Vec<(Chain, i64)>,
) -> PricedPrompt {
    let input = prompt.saturating_sub(cache_read).saturating_sub(cache_write);
    let usage = Usage { input, cache_read, cache_write, ..Usage::default() };
    PricedPrompt { reported: ReportedUsage { usage, cache_write_1h }, fixed_tokens: 0, written }
}

#[cfg(test)]
#[path = "cache_model_tests.rs"]
mod tests;
