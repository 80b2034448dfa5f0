//! Small YAML files that are not settings: a list of names, each with a text or a list of texts.

use std::sync::Arc;

use crate::problem::{ConfigError, ConfigErrorKind, ConfigErrors, ValueOrigin};
use crate::yaml::{self, Data, Document, YamlNode};

/// A name in a flat file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatEntry {
    /// The name.
    pub key: String,
    /// Its line, from 1.
    pub line: usize,
    /// The value.
    pub value: FlatValue,
}

/// The value of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlatValue {
    /// A text; numbers are texts too.
    Text(String),
    /// A list of values.
    List(Vec<String>),
    /// Any other YAML, which is not supported here.
    Other,
}

impl FlatEntry {
    /// Reads a flat file. `name` is used in messages.
    pub fn read_all(name: &str, bytes: &[u8]) -> Result<Vec<FlatEntry>, ConfigErrors> {
        let name: Arc<str> = name.into();
        let refused = |refusals: Vec<yaml::YamlRefusal>| ConfigErrors {
            errors: refusals.into_iter().map(|refusal| ConfigError::refusal(&name, refusal)).collect(),
            warnings: Vec::new(),
        };
        let text = yaml::decode(bytes).map_err(|refusal| refused(vec![refusal]))?;
        let document = yaml::parse(text).map_err(refused)?;
        let Some(root) = document.root().filter(|root| !root.is_null()) else { return Ok(Vec::new()) };
        let Data::Mapping { entries, .. } = &root.data else {
            let origin = ValueOrigin::File { name: Arc::clone(&name), line: Some(root.line) };
            return Err(ConfigError::new(
                origin,
                ConfigErrorKind::NotAMapping { found: root.describe().to_owned() },
            )
            .into());
        };
        Ok(entries
            .iter()
            .map(|entry| FlatEntry {
                key: entry.key.clone(),
                line: entry.key_line,
                value: document.resolve(entry.value).map_or(FlatValue::Other, |node| value(&document, node)),
            })
            .collect())
    }
}

fn value(document: &Document, node: &YamlNode) -> FlatValue {
    match &node.data {
        Data::Scalar { text, .. } if !node.is_null() => FlatValue::Text(text.clone()),
        Data::Sequence { items } => {
            let texts = items.iter().map(|item| match &document.resolve(*item)?.data {
                Data::Scalar { text, .. } => Some(text.clone()),
                _ => None,
            });
            texts.collect::<Option<Vec<String>>>().map_or(FlatValue::Other, FlatValue::List)
        }
        _ => FlatValue::Other,
    }
}

#[cfg(test)]
#[path = "flat_tests.rs"]
mod tests;
