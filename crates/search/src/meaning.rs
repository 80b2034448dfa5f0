//! Vectors for search by meaning: their stored form and their comparison.
//!
//! Texts become vectors in passages of about eighty words. A vector is normalised and stored with one byte per
//! component, which hardly changes the order of the best hundred and takes a quarter of the space.
//!
//! Not for: computing vectors, which an [`Embedder`] does, and where they are stored.

use std::fmt::Debug;

/// Makes vectors of texts. Any store can be given one; without it search goes by words alone.
pub trait Embedder: Debug + Send + Sync {
    /// The name of the model. Vectors of different models are never compared.
    fn model(&self) -> &str;
    /// Vectors for these texts, in order. Blocks; a question is waited for no longer than the implementation allows.
    fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embeddings, String>;
    /// Called after messages were appended, so that a worker in the background can go on.
    fn texts_added(&self) {}
}

/// What vectors are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// A query with a waiting caller.
    Question,
    /// Texts of the record, in the background.
    Record,
}

/// Vectors, and what they cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embeddings {
    /// One for each text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens the model read, where it says so.
    pub tokens: u64,
}

/// How far the vectors of a record are.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct VectorState {
    /// The model.
    pub model: String,
    /// Entries of a vector; zero before the first was made.
    pub dimensions: u64,
    /// Passages that have one.
    pub passages: u64,
    /// Messages that were not looked at yet.
    pub waiting: u64,
    /// Tokens the model read for them.
    pub tokens: u64,
    /// Bytes they take.
    pub bytes: u64,
}

/// What came of one step of making vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorStep {
    /// Messages that were looked at.
    pub messages: u64,
    /// Passages that got a vector.
    pub passages: u64,
    /// Whether another process is making them: nothing was looked at.
    pub is_elsewhere: bool,
}

/// How a search by words was completed by meaning.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct MeaningReport {
    /// The model.
    pub model: String,
    /// Passages that were compared.
    pub compared: u64,
    /// Only the newest conversations were compared: there are more passages than one search looks at.
    pub newest_only: bool,
    /// Messages of the record that have no vectors yet.
    pub waiting: u64,
    /// Why meaning was left out, in plain words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A vector as it is stored: every entry times `scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredVector {
    /// The length of one step of an entry.
    pub scale: f64,
    /// Signed bytes, each a number of steps.
    pub entries: Vec<u8>,
}

impl StoredVector {
    /// From a vector of any length; `None` where it has no direction.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let length = vector.iter().map(|entry| f64::from(*entry).powi(2)).sum::<f64>().sqrt();
        let largest = vector.iter().fold(0.0_f64, |largest, entry| largest.max(f64::from(entry.abs())));
        if !length.is_finite() || length <= 0.0 {
            return None;
        }
        let step = largest / f64::from(i8::MAX);
        let entries = vector.iter().map(|entry| (f64::from(*entry) / step).round() as i8 as u8).collect();
        Some(Self { scale: step / length, entries })
    }
}

/// A question's vector, ready to be compared.
#[derive(Clone, Debug)]
pub struct QuestionVector {
    scale: f64,
    entries: Vec<i16>,
}

impl QuestionVector {
    /// From a vector of any length; `None` where it has no direction.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let stored = StoredVector::new(vector)?;
        let entries = stored.entries.iter().map(|entry| i16::from(*entry as i8)).collect();
        Some(Self { scale: stored.scale, entries })
    }

    /// How many entries it has.
    pub fn dimensions(&self) -> usize {
        self.entries.len()
    }

    /// How alike it is to a stored vector: 1 for the same direction.
    pub fn similarity(&self, scale: f64, entries: &[u8]) -> f64 {
        let product: i32 = self
            .entries
            .iter()
            .zip(entries)
            .map(|(one, other)| i32::from(*one) * i32::from(*other as i8))
            .sum();
        f64::from(product) * scale * self.scale
    }
}

/// Passages nearest to a question.
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    /// The nearest first.
    pub hits: Vec<NearHit>,
    /// Passages that were compared.
    pub compared: u64,
    /// There were more than may be compared.
    pub newest_only: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearHit {
    /// The number of the message.
    pub message: i64,
    /// Which of the windows of the message.
    pub part: usize,
    /// 1 for the same direction.
    pub similarity: f64,
}

/// How many standard deviations above the others a passage has to be to count as near. What a model calls alike differs from one
/// to the next; how far the best stand out does not. One of forty unrelated passages is that far.
const STANDS_OUT: f64 = 2.0;
/// Among fewer passages all of them count.
const MIN_COMPARED: usize = 40;

impl Nearest {
    /// The nearest of some passages, at most so many.
    pub fn of(mut hits: Vec<NearHit>, newest_only: bool, limit: usize) -> Self {
        let compared = hits.len();
        if compared >= MIN_COMPARED {
            let mean = hits.iter().map(|hit| hit.similarity).sum::<f64>() / compared as f64;
            let spread =
                hits.iter().map(|hit| (hit.similarity - mean).powi(2)).sum::<f64>() / compared as f64;
            let least = mean + STANDS_OUT * spread.sqrt();
            hits.retain(|hit| hit.similarity >= least);
        }
        hits.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(b.message.cmp(&a.message)));
        hits.truncate(limit);
        Self { hits, compared: compared as u64, newest_only }
    }
}

#[cfg(test)]
#[path = "meaning_tests.rs"]
mod tests;
