//! Small static models for tests.

use std::path::Path;

use serde_json::{Map, json};

/// A model whose words are given with their vectors.
pub(super) struct TinyModel<'a> {
    pub(super) words: &'a [(&'a str, &'a [f32])],
}

/// Writes it as `tiny.safetensors` and `tokenizer.json`.
pub(super) fn write_tiny_model(folder: &Path, model: &TinyModel<'_>) {
    let vocabulary: Map<String, serde_json::Value> =
        model.words.iter().zip(0..).map(|((word, _), id)| ((*word).to_owned(), json!(id))).collect();
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": { "type": "WordPiece", "vocab": vocabulary }
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let columns = model.words.first().map_or(0, |(_, vector)| vector.len());
    let bytes = model.words.len() * columns * 4;
    let header = json!({ "embeddings": { "dtype": "F32", "shape": [model.words.len(), columns], "data_offsets": [0, bytes] } });
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    model.words.iter().flat_map(|(_, vector)| *vector).for_each(|number| file.extend(number.to_le_bytes()));
    std::fs::write(folder.join("tiny.safetensors"), file).unwrap();
}
