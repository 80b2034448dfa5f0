//! Combines the layers: defaults, files, environment, command line; later ones take precedence.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::datum::Datum;
use crate::keys::{self, Found, LeafShape};
use crate::kind::Raw;
use crate::problem::{
    ConfigError, ConfigErrorKind, ConfigErrors, ValueOrigin, Warning, WarningKind, show_key,
};
use crate::reference;
use crate::schema::{SchemaSection, Values, join};
use crate::settings::Settings;
use crate::walk::{Layer, SettingAssignment, TextSource, walk_file, walk_table};
use crate::yaml;

/// Collects the sources of settings and reads them.
#[derive(Debug, Clone, Default)]
pub struct Loader {
    files: Vec<(Arc<str>, Vec<u8>)>,
    variables: Vec<(String, String)>,
    flags: Vec<Flag>,
}

#[derive(Debug, Clone)]
struct Flag {
    name: String,
    /// `None` if the argument does not have the form KEY=VALUE.
    assignment: Option<(String, String)>,
}

/// The settings and their origins.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings in effect.
    pub settings: Settings,
    /// Warnings: not errors, but the user should see them.
    pub warnings: Vec<Warning>,
    /// Every setting in the order of the default file.
    pub values: Vec<SettingValue>,
}

/// A setting, its value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingValue {
    /// Full key.
    pub key: String,
    /// The effective value; prints itself with secrets masked.
    pub datum: Datum,
    /// Its origin.
    pub origin: ValueOrigin,
}

impl SettingValue {
    /// The description of the setting, from the default file.
    pub fn description(&self) -> &'static str {
        // The members of an entry are described with their table.
        let mut key = self.key.as_str();
        loop {
            if let Some(description) = reference::describe(key) {
                return description;
            }
            match key.rsplit_once('.') {
                Some((outer, _)) => key = outer,
                None => return "",
            }
        }
    }

    /// Returns the environment variable that would set it; `None` for entries of a table, whose names may not be valid in a variable.
    pub fn env_name(&self) -> Option<String> {
        keys::leaves().iter().any(|leaf| leaf.key == self.key).then(|| keys::env_name(&self.key))
    }
}

impl Loader {
    /// The size of the largest file that is read.
    pub const MAX_FILE_BYTES: usize = crate::yaml::MAX_FILE_BYTES;

    /// Only the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file; `name` is used in messages.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into().into(), bytes.into()));
        self
    }

    /// Adds the environment. Variables that are not Throughline's are used only where a file names them.
    #[must_use]
    pub fn env<K: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Adds the value of a flag such as `--context-length`, which sets a key.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.push(Flag { name: flag.into(), assignment: Some((key.into(), value.into())) });
        self
    }

    /// Adds the argument of a `--set`: KEY=VALUE.
    #[must_use]
    pub fn set(mut self, argument: &str) -> Self {
        // The argument itself may be secret, so it is not part of the name.
        let assignment = argument
            .split_once('=')
            .map(|(key, value)| (key.trim().to_owned(), value.to_owned()))
            .filter(|(key, _)| !key.is_empty());
        self.flags.push(Flag { name: "--set".to_owned(), assignment });
        self
    }

    /// Loads all sources and reports all of their errors together.
    ///
    /// ```
    /// use throughline_config::Loader;
    ///
    /// let errors = Loader::new().file("config.yaml", "compression:\n threshold: often\n").load().unwrap_err();
    /// assert!(errors.to_string().contains("config.yaml:2"), "{errors}");
    /// ```
    pub fn load(self) -> Result<Loaded, ConfigErrors> {
        let variables: HashMap<String, String> = self.variables.iter().cloned().collect();
        let mut resolved = Resolved::default();
        resolved.apply(reference::defaults());
        for (name, bytes) in &self.files {
            resolved.apply(read_file(name, bytes, &variables));
        }
        let mut variables = self.variables;
        variables.sort();
        for (name, value) in &variables {
            resolved.apply(read_variable(name, value));
        }
        for flag in &self.flags {
            resolved.apply(read_flag(flag));
        }
        resolved.finish()
    }
}

impl Loaded {
    /// Returns the settings that a key names: one, or all of a section.
    pub fn select(&self, key: &str) -> Result<Vec<&SettingValue>, ConfigErrors> {
        let key = keys::renamed(key).unwrap_or_else(|| key.to_owned());
        let under =
            |value: &SettingValue| value.key.strip_prefix(&key).is_some_and(|rest| rest.starts_with('.'));
        let found: Vec<&SettingValue> =
            self.values.iter().filter(|value| value.key == key || under(value)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        match keys::find(&key) {
            // An absent entry has no values, which is a valid answer.
            Some(_) => Ok(Vec::new()),
            None => Err(ConfigError { origin: None, kind: keys::unknown(&key) }.into()),
        }
    }
}

fn read_file(name: &Arc<str>, bytes: &[u8], variables: &HashMap<String, String>) -> Layer {
    let document = yaml::decode(bytes).map_err(|refusal| vec![refusal]).and_then(yaml::parse);
    match document {
        Ok(document) => walk_file(&document, TextSource::File { name: Arc::clone(name), variables }),
        Err(refusals) => Layer {
            errors: refusals.into_iter().map(|refusal| ConfigError::refusal(name, refusal)).collect(),
            ..Layer::default()
        },
    }
}

fn read_variable(name: &str, value: &str) -> Layer {
    let Some(key) = keys::key_of_env(name).filter(|_| !value.is_empty()) else { return Layer::default() };
    let origin = ValueOrigin::Env { name: name.to_owned() };
    match read_typed(&key, value, origin.clone()) {
        Ok(layer) => layer,
        Err(ConfigErrorKind::UnknownKey { .. }) => {
            let nearest = keys::nearest(&key).map(|key| keys::env_name(&key));
            let kind = WarningKind::UnknownKey { key: show_key(&key), nearest };
            Layer { warnings: vec![Warning { origin, kind }], ..Layer::default() }
        }
        Err(kind) => Layer { errors: vec![ConfigError::new(origin, kind)], ..Layer::default() },
    }
}

fn read_flag(flag: &Flag) -> Layer {
    let origin = ValueOrigin::Flag { name: flag.name.clone() };
    let read = match &flag.assignment {
        Some((key, value)) => read_typed(key, value, origin.clone()),
        None => Err(ConfigErrorKind::NotAnAssignment),
    };
    read.unwrap_or_else(|kind| Layer { errors: vec![ConfigError::new(origin, kind)], ..Layer::default() })
}

/// Parses a value given for a key. An error means that the key does not name a single setting.
fn read_typed(key: &str, value: &str, origin: ValueOrigin) -> Result<Layer, ConfigErrorKind> {
    let new_name = keys::renamed(key).or_else(|| keys::section_as_value(key).map(str::to_owned));
    let old_name = new_name.as_ref().map(|_| key.to_owned());
    let key = new_name.unwrap_or_else(|| key.to_owned());
    match keys::find(&key) {
        Some(Found::Value { kind, .. }) => Ok(match kind.read(Raw::typed(value)) {
            Ok(datum) => {
                let assignment = SettingAssignment { key, datum, origin, old_name };
                Layer { assignments: vec![assignment], ..Layer::default() }
            }
            Err(mismatch) => {
                let error = ConfigError::new(origin, ConfigErrorKind::bad_value(&key, mismatch));
                Layer { errors: vec![error], ..Layer::default() }
            }
        }),
        Some(Found::Entries { members, .. }) => Ok(match yaml::parse(value) {
            Ok(document) => walk_table(&document, TextSource::Inline(origin), &key, members),
            Err(refusals) => {
                let name: Arc<str> = origin.to_string().into();
                let errors = refusals
                    .into_iter()
                    .map(|refusal| ConfigError {
                        origin: Some(origin.clone()),
                        ..ConfigError::refusal(&name, refusal)
                    })
                    .collect();
                Layer { errors, ..Layer::default() }
            }
        }),
        Some(Found::Entry { members, .. }) => {
            let members = members.iter().map(|member| join(&key, member.name)).collect();
            Err(ConfigErrorKind::NotOneSetting { key: show_key(&key), members })
        }
        Some(Found::Section { keys }) => Err(ConfigErrorKind::NotOneSetting { key, members: keys }),
        None => Err(keys::unknown(&key)),
    }
}

/// The values so far, each with the origin that took precedence.
#[derive(Default)]
struct Resolved {
    values: BTreeMap<String, (Datum, ValueOrigin)>,
    errors: Vec<ConfigError>,
    warnings: Vec<Warning>,
}

impl Resolved {
    fn apply(&mut self, layer: Layer) {
        self.errors.extend(layer.errors);
        self.warnings.extend(layer.warnings);
        let (old, new): (Vec<_>, Vec<_>) =
            layer.assignments.into_iter().partition(|assignment| assignment.old_name.is_some());
        // Within one source the current name takes precedence, wherever it is.
        let present: HashSet<String> = new.iter().map(|assignment| assignment.key.clone()).collect();
        for assignment in old {
            let SettingAssignment { key, datum, origin, old_name } = assignment;
            let is_given_twice = present.contains(&key);
            let names = (old_name.unwrap_or_default(), key.clone());
            let kind = match names {
                (old, new) if is_given_twice => WarningKind::OldNameIgnored { old, new },
                (old, new) => WarningKind::OldName { old, new },
            };
            self.warnings.push(Warning { origin: origin.clone(), kind });
            if !is_given_twice {
                self.values.insert(key, (datum, origin));
            }
        }
        for SettingAssignment { key, datum, origin, .. } in new {
            self.values.insert(key, (datum, origin));
        }
    }

    fn finish(mut self) -> Result<Loaded, ConfigErrors> {
        let data: Values = self.values.iter().map(|(key, (datum, _))| (key.clone(), datum.clone())).collect();
        let settings = Settings::build("", &data);
        if let Err(key) = &settings {
            let kind = ConfigErrorKind::NoDefault { key: key.clone() };
            self.errors.push(ConfigError::new(ValueOrigin::Default, kind));
        }
        match settings {
            Ok(settings) if self.errors.is_empty() => {
                let values = self.ordered_values();
                Ok(Loaded { settings, warnings: self.warnings, values })
            }
            _ => Err(ConfigErrors { errors: self.errors, warnings: self.warnings }),
        }
    }

    fn ordered_values(&self) -> Vec<SettingValue> {
        let mut ordered = Vec::new();
        for leaf in keys::leaves() {
            let value = |key: &String, (datum, origin): &(Datum, ValueOrigin)| SettingValue {
                key: key.clone(),
                datum: datum.clone(),
                origin: origin.clone(),
            };
            match leaf.shape {
                LeafShape::Value(_) => {
                    ordered.extend(self.values.get(&leaf.key).map(|found| value(&leaf.key, found)));
                }
                LeafShape::Entries(_) => {
                    let prefix = join(&leaf.key, "");
                    let before = ordered.len();
                    ordered.extend(
                        self.values
                            .range(prefix.clone()..)
                            .take_while(|(key, _)| key.starts_with(&prefix))
                            .map(|(key, found)| value(key, found)),
                    );
                    if ordered.len() == before {
                        let key = leaf.key.clone();
                        ordered.push(SettingValue {
                            key,
                            datum: Datum::Absent,
                            origin: ValueOrigin::Default,
                        });
                    }
                }
            }
        }
        ordered
    }
}

#[cfg(test)]
#[path = "loader_tests.rs"]
pub(crate) mod tests;
