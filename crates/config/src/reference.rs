//! The commented default file: the reference for readers and the source of every default.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::problem::{ConfigError, ValueOrigin};
use crate::schema::join;
use crate::settings::Settings;
use crate::walk::{Layer, TextSource, walk_file};
use crate::yaml::{self, Data, Document, YamlNode};

/// The file in the repository.
const TEXT: &str = include_str!("../default.yaml");
const NAME: &str = "default.yaml";

impl Settings {
    /// Returns the commented default file, as documentation or as a template.
    pub fn default_file() -> &'static str {
        TEXT
    }
}

/// Returns the comment above a key or section in the default file.
pub(crate) fn describe(key: &str) -> Option<&'static str> {
    static DESCRIPTIONS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
        let mut descriptions = HashMap::new();
        if let Ok(document) = yaml::parse(TEXT)
            && let Some(root) = document.root()
        {
            collect(&document, "", root, &mut descriptions);
        }
        descriptions
    });
    DESCRIPTIONS.get(key).map(String::as_str)
}

fn collect(document: &Document, path: &str, node: &YamlNode, descriptions: &mut HashMap<String, String>) {
    let Data::Mapping { entries, .. } = &node.data else { return };
    for entry in entries {
        let key = join(path, &entry.key);
        let mut lines = Vec::new();
        let mut line = entry.key_line;
        // Upwards from the key, as long as each line is a comment.
        while let Some(comment) = document.comments.iter().find(|comment| comment.line + 1 == line) {
            lines.push(comment.text.trim_start_matches('#').strip_prefix(' ').unwrap_or_default());
            line = comment.line;
        }
        lines.reverse();
        descriptions.insert(key.clone(), lines.join("\n"));
        if let Some(value) = document.node(entry.value) {
            collect(document, &key, value, descriptions);
        }
    }
}

/// The defaults as a layer.
pub(crate) fn defaults() -> Layer {
    let name: Arc<str> = NAME.into();
    let document = match yaml::parse(TEXT) {
        Ok(document) => document,
        Err(refusals) => {
            let errors = refusals.into_iter().map(|refusal| ConfigError::refusal(&name, refusal)).collect();
            return Layer { errors, ..Layer::default() };
        }
    };
    let mut layer = walk_file(&document, TextSource::File { name, variables: &HashMap::new() });
    for assignment in &mut layer.assignments {
        assignment.origin = ValueOrigin::Default;
    }
    layer
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
