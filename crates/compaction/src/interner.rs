//! A map from text to a value for many short texts. All texts are stored in one string, in order of first occurrence.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Texts with one value each.
#[derive(Clone, Debug)]
pub(crate) struct Interner<V> {
    table: HashTable<u32>,
    entries: Vec<Slot<V>>,
    texts: String,
}

#[derive(Clone, Debug)]
struct Slot<V> {
    hash: u64,
    start: usize,
    len: u32,
    value: V,
}

impl<V> Default for Interner<V> {
    fn default() -> Self {
        Self { table: HashTable::new(), entries: Vec::new(), texts: String::new() }
    }
}

impl<V> Interner<V> {
    /// Returns the value of a text, or a new one.
    pub(crate) fn get_or_insert_with(&mut self, text: &str, new: impl FnOnce() -> V) -> (&mut V, Insertion) {
        self.get_or_insert_hashed(Hashed { text, hash: FxBuildHasher.hash_one(text) }, new)
    }

    /// Returns the value of a text of another interner, or a new one.
    pub(crate) fn get_or_insert_hashed(
        &mut self,
        text: Hashed<'_>,
        new: impl FnOnce() -> V,
    ) -> (&mut V, Insertion) {
        let Hashed { text, hash } = text;
        let (texts, entries) = (&self.texts, &self.entries);
        let found = self.table.find(hash, |&at| matches(texts, entries, at, hash, text)).copied();
        let (at, seen) = match found {
            Some(at) => (at as usize, Insertion::Existing),
            None => (self.insert(hash, text, new()), Insertion::New),
        };
        (&mut self.entries[at].value, seen)
    }

    fn insert(&mut self, hash: u64, text: &str, value: V) -> usize {
        let at = self.entries.len();
        let start = self.texts.len();
        self.texts.push_str(text);
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.entries.push(Slot { hash, start, len, value });
        let entries = &self.entries;
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        self.table
            .insert_unique(hash, index, |&other| entries.get(other as usize).map_or(0, |slot| slot.hash));
        at
    }

    /// The value of a text.
    pub(crate) fn get(&self, text: &str) -> Option<&V> {
        self.get_with_text(text).map(|(_, value)| value)
    }

    /// Returns a text as stored here, with its value.
    pub(crate) fn get_with_text(&self, text: &str) -> Option<(&str, &V)> {
        let hash = FxBuildHasher.hash_one(text);
        let at = self.table.find(hash, |&at| matches(&self.texts, &self.entries, at, hash, text))?;
        self.entries.get(*at as usize).map(|slot| (text_of(&self.texts, slot), &slot.value))
    }

    /// Returns all texts in order of first occurrence.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.entries.iter().map(|slot| (text_of(&self.texts, slot), &slot.value))
    }

    /// Returns all texts in order of first occurrence, with mutable values.
    pub(crate) fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut V)> {
        let texts = &self.texts;
        self.entries.iter_mut().map(move |slot| {
            let end = slot.start + slot.len as usize;
            (texts.get(slot.start..end).unwrap_or_default(), &mut slot.value)
        })
    }

    /// Returns all texts in order of first occurrence, for another interner.
    pub(crate) fn iter_hashed(&self) -> impl ExactSizeIterator<Item = (Hashed<'_>, &V)> {
        let hashed = |slot: &'_ Slot<V>| Hashed { text: text_of(&self.texts, slot), hash: slot.hash };
        self.entries.iter().map(move |slot| (hashed(slot), &slot.value))
    }

    pub(crate) fn reserve(&mut self, entries: usize, bytes: usize) {
        let known = &self.entries;
        self.table.reserve(entries, |&at| known.get(at as usize).map_or(0, |slot| slot.hash));
        self.entries.reserve(entries);
        self.texts.reserve(bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.texts.len()
    }
}

/// A text with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed<'a> {
    text: &'a str,
    hash: u64,
}

/// Whether a text was already in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    Existing,
    New,
}

fn matches<V>(texts: &str, entries: &[Slot<V>], at: u32, hash: u64, text: &str) -> bool {
    entries.get(at as usize).is_some_and(|slot| slot.hash == hash && text_of(texts, slot) == text)
}

fn text_of<'a, V>(texts: &'a str, slot: &Slot<V>) -> &'a str {
    texts.get(slot.start..slot.start + slot.len as usize).unwrap_or_default()
}
