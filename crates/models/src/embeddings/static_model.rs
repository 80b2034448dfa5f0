//! A static model: a table with a vector for every token. The vector of a text is the mean of the vectors of its tokens, so a thousand
//! texts take a fraction of a second and nothing leaves the machine.
//!
//! The table is a `safetensors` file with one matrix (`embeddings`, `embedding.weight` or the only one), as model2vec and WordLlama write
//! it; optionally with `weights`, a number for each token, and `mapping`, the row of each token.

use std::path::{Path, PathBuf};

use serde_json::Value;
use throughline_store::Embeddings;

use super::tokenizer::Tokenizer;

/// The maximum size of a table: the largest known has a quarter of that.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The maximum number of tokens used of a text: several times the length of a passage.
const MAX_TOKENS: usize = 2_048;

/// A static model in memory.
#[derive(Debug)]
pub(super) struct StaticModel {
    /// The identity of its vectors: the name of the file and a hash of it.
    pub(super) name: String,
    tokenizer: Tokenizer,
    file: Vec<u8>,
    table: Tensor,
    weights: Option<Tensor>,
    mapping: Option<Tensor>,
}

/// Numbers in the file.
#[derive(Clone, Copy, Debug)]
struct Tensor {
    form: NumberForm,
    rows: usize,
    columns: usize,
    from: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberForm {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I8,
}

impl NumberForm {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "I64" => Self::I64,
            "I32" => Self::I32,
            "I8" => Self::I8,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    fn read(self, bytes: &[u8]) -> f32 {
        match (self, bytes) {
            (Self::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            (Self::I64, &[a, b, c, d, e, f, g, h]) => i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (Self::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]) as f32,
            (Self::F16, &[a, b]) => half(u16::from_le_bytes([a, b])),
            (Self::Bf16, &[a, b]) => f32::from_bits(u32::from(u16::from_le_bytes([a, b])) << 16),
            (Self::I8, &[a]) => f32::from(a as i8),
            _ => 0.0,
        }
    }
}

/// Converts a 16-bit float with a 5-bit exponent.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(bits & 0x3ff);
    match (bits >> 10) & 0x1f {
        0 => sign * fraction * 2.0_f32.powi(-24),
        0x1f if fraction == 0.0 => sign * f32::INFINITY,
        0x1f => f32::NAN,
        exponent => sign * (1.0 + fraction / 1024.0) * 2.0_f32.powi(i32::from(exponent) - 15),
    }
}

impl StaticModel {
    /// Reads a model: a file, with `tokenizer.json` beside it unless another is named, or a folder with both.
    pub(super) fn read(path: &Path, tokenizer: Option<&Path>) -> Result<Self, String> {
        let table = match path.is_dir() {
            true => only_file(path, |name| name.ends_with(".safetensors"))?,
            false => path.to_owned(),
        };
        let told = |path: &Path, problem: String| format!("{}: {problem}", path.display());
        let bytes = std::fs::metadata(&table).map_err(|error| told(&table, error.to_string()))?.len();
        if bytes > MAX_FILE_BYTES {
            return Err(told(&table, "it is too large for a static model".to_owned()));
        }
        let folder = table.parent().unwrap_or_else(|| Path::new(""));
        let tokenizer = match tokenizer {
            Some(path) => path.to_owned(),
            None if folder.join("tokenizer.json").exists() => folder.join("tokenizer.json"),
            None => only_file(folder, |name| name.contains("tokenizer") && name.ends_with(".json"))?,
        };
        let file = std::fs::read(&table).map_err(|error| told(&table, error.to_string()))?;
        let json =
            std::fs::read_to_string(&tokenizer).map_err(|error| told(&tokenizer, error.to_string()))?;
        let tokenizer = Tokenizer::read(&json).map_err(|problem| told(&tokenizer, problem))?;
        let name = table.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::of(name, file, tokenizer).map_err(|problem| told(&table, problem))
    }

    fn of(name: String, file: Vec<u8>, tokenizer: Tokenizer) -> Result<Self, String> {
        let tensors = tensors(&file)?;
        let named = |wanted: &str| tensors.iter().find(|(name, _)| name == wanted).map(|(_, tensor)| *tensor);
        let matrices: Vec<Tensor> =
            tensors.iter().map(|(_, tensor)| *tensor).filter(|tensor| tensor.columns > 1).collect();
        let only = || match matrices.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let table = named("embeddings").or_else(|| named("embedding.weight")).or_else(only);
        let table = table.ok_or("it has no matrix named `embeddings`, and not just one matrix")?;
        let hash = blake3::hash(&file).to_hex();
        let name = format!("{name} ({})", hash.get(..8).unwrap_or_default());
        Ok(Self { name, tokenizer, table, weights: named("weights"), mapping: named("mapping"), file })
    }

    fn number(&self, tensor: Tensor, at: usize) -> Option<f32> {
        let bytes = tensor.form.bytes();
        let from = tensor.from + at * bytes;
        (at < tensor.rows * tensor.columns)
            .then(|| self.file.get(from..from + bytes))
            .flatten()
            .map(|bytes| tensor.form.read(bytes))
    }

    /// Returns the vectors of texts; zeros for a text without a known token.
    pub(super) fn embed(&self, texts: &[String]) -> Embeddings {
        let mut made = Embeddings::default();
        for text in texts {
            let mut tokens = self.tokenizer.encode(text);
            tokens.truncate(MAX_TOKENS);
            made.tokens += tokens.len() as u64;
            made.vectors.push(self.mean(&tokens));
        }
        made
    }

    fn mean(&self, tokens: &[u32]) -> Vec<f32> {
        let mut sum = vec![0.0_f32; self.table.columns];
        for token in tokens {
            let token = *token as usize;
            let row = self.mapping.map_or(Some(token as f32), |mapping| self.number(mapping, token));
            let weight = self.weights.map_or(Some(1.0), |weights| self.number(weights, token));
            let (Some(row), Some(weight)) = (row, weight) else { continue };
            let bytes = self.table.form.bytes();
            let from = self.table.from + row as usize * self.table.columns * bytes;
            if row as usize >= self.table.rows {
                continue;
            }
            let row = self.file.get(from..from + self.table.columns * bytes).unwrap_or_default();
            for (sum, number) in sum.iter_mut().zip(row.chunks_exact(bytes)) {
                *sum += weight * self.table.form.read(number);
            }
        }
        let count = tokens.len().max(1) as f32;
        sum.iter_mut().for_each(|entry| *entry /= count);
        sum
    }
}

/// Returns the only file of a folder whose name matches.
fn only_file(folder: &Path, fits: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let told = |problem: &str| format!("{}: {problem}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(|error| told(&error.to_string()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|name| fits(&name.to_string_lossy())))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(told("a *.safetensors and a tokenizer.json are expected here, and one is missing")),
        (Some(_), false) => Err(told("there are several files to choose from; name the file")),
    }
}

/// Returns the tensors of a `safetensors` file: the length of a JSON header, that header, then the numbers.
fn tensors(file: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    let not_one = || "it is not a safetensors file".to_owned();
    let (length, rest) = file.split_first_chunk::<8>().ok_or_else(not_one)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| not_one())?;
    let header = rest.get(..length).ok_or_else(not_one)?;
    let header: Value = serde_json::from_slice(header).map_err(|_| not_one())?;
    let mut found = Vec::new();
    for (name, tensor) in header.as_object().ok_or_else(not_one)? {
        if name == "__metadata__" {
            continue;
        }
        let numbers = |value: &Value| -> Vec<usize> {
            let values = value.as_array().into_iter().flatten();
            values.filter_map(|value| usize::try_from(value.as_u64()?).ok()).collect()
        };
        let Some(form) = tensor["dtype"].as_str().and_then(NumberForm::of) else { continue };
        let (rows, columns) = match numbers(&tensor["shape"]).as_slice() {
            [rows] => (*rows, 1),
            [rows, columns] => (*rows, *columns),
            _ => continue,
        };
        let offsets = numbers(&tensor["data_offsets"]);
        let [from, to] = offsets.as_slice() else { return Err(not_one()) };
        let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(form.bytes()));
        let data = rest.len() - length;
        if bytes.is_none() || to.checked_sub(*from) != bytes || *to > data {
            return Err(format!("`{name}` has another size than it says"));
        }
        found.push((name.clone(), Tensor { form, rows, columns, from: 8 + length + from }));
    }
    Ok(found)
}

#[cfg(test)]
#[path = "static_model_tests.rs"]
mod tests;
