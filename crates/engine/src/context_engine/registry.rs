//! The available context engines, and the lookup of `context.engine`.
//!
//! The lookup goes through the folder of plugins, then the engines that a program registered, then the built-in ones. An
//! engine is used only if it is named: installing it activates nothing. An unknown name is an error; the built-in engine is
//! never used silently instead.
//!
//! Not for: reading folders or starting processes. The listing of the folder is passed in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::context_engine::{BUILT_IN_ENGINE, ContextEngine};

/// Creates an engine for one conversation.
pub(crate) type EngineFactory = Arc<dyn Fn() -> Arc<dyn ContextEngine> + Send + Sync>;

/// Creates the engine of a directory; the error states why it cannot run.
pub(crate) type DirectoryEngines<'a> = &'a dyn Fn(&EngineDirectory) -> Result<Arc<dyn ContextEngine>, String>;

/// A directory under `plugins/context_engine/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineDirectory {
    /// The name of the directory, which is also the engine's.
    pub name: String,
    /// The path of the directory.
    pub path: PathBuf,
}

impl EngineDirectory {
    /// Whether the name marks the directory as hidden.
    fn is_hidden(&self) -> bool {
        self.name.starts_with(['.', '_'])
    }
}

/// Where an engine was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnginePlace {
    /// A plugin directory.
    Directory(PathBuf),
    /// The program registered it.
    Registered,
    /// It is part of Throughline.
    BuiltIn,
}

impl fmt::Display for EnginePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "in {}", path.display()),
            Self::Registered => f.write_str("registered"),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// An engine that can be selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineListing {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: EnginePlace,
}

/// Why no engine can be provided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The engine's plugin directory is broken.
    #[error("the context engine `{name}` in {} cannot be run: {why}", path.display())]
    Broken {
        /// The name of the engine.
        name: String,
        /// The path of its directory.
        path: PathBuf,
        /// What is wrong with the engine.
        why: String,
    },
    /// No engine has this name.
    #[error("there is no context engine `{name}`, which `context.engine` names; there {}", listed(known))]
    Unknown {
        /// The requested name.
        name: String,
        /// The available engines.
        known: Vec<EngineListing>,
    },
    /// An engine of the same name exists already.
    #[error("a context engine `{name}` exists already, {place}")]
    NameTaken {
        /// The name.
        name: String,
        /// Where the existing one is.
        place: EnginePlace,
    },
}

fn listed(known: &[EngineListing]) -> String {
    let words: Vec<String> = known.iter().map(|one| format!("`{}` ({})", one.name, one.place)).collect();
    match words.as_slice() {
        [] => "is none".to_owned(),
        [only] => format!("is {only}"),
        [all @ .., last] => format!("are {} and {last}", all.join(", ")),
    }
}

/// Engines by name.
pub struct Registry {
    built_in: EngineFactory,
    further: BTreeMap<String, EngineFactory>,
    registered: BTreeMap<String, EngineFactory>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("registered", &self.registered.keys()).finish_non_exhaustive()
    }
}

impl Registry {
    /// A registry with the built-in engine.
    #[must_use]
    pub fn new(built_in: EngineFactory) -> Self {
        Self { built_in, further: BTreeMap::new(), registered: BTreeMap::new() }
    }

    /// Adds a further engine that is part of the program; an installed or registered engine of the same name takes precedence.
    #[must_use]
    pub fn with_built_in(mut self, name: &str, factory: EngineFactory) -> Self {
        self.further.insert(name.to_owned(), factory);
        self
    }

    /// Registers an engine under an unused name.
    pub fn register(&mut self, name: &str, factory: EngineFactory) -> Result<(), RegistryError> {
        let taken = |place| RegistryError::NameTaken { name: name.to_owned(), place };
        if is_built_in(name) {
            return Err(taken(EnginePlace::BuiltIn));
        }
        if self.registered.contains_key(name) {
            return Err(taken(EnginePlace::Registered));
        }
        self.registered.insert(name.to_owned(), factory);
        Ok(())
    }

    /// Returns the engine named by `context.engine`, created for one conversation; `run` creates those of directories.
    pub fn select(
        &self,
        configured: &str,
        directories: &[EngineDirectory],
        run: DirectoryEngines<'_>,
    ) -> Result<Arc<dyn ContextEngine>, RegistryError> {
        let name = configured.trim();
        if is_built_in(name) {
            return Ok((self.built_in)());
        }
        if let Some(found) = directories.iter().find(|one| one.name == name && !one.is_hidden()) {
            let path = found.path.clone();
            return run(found).map_err(|why| RegistryError::Broken { name: name.to_owned(), path, why });
        }
        match self.registered.get(name).or_else(|| self.further.get(name)) {
            Some(factory) => Ok(factory()),
            None => Err(RegistryError::Unknown { name: name.to_owned(), known: self.list(directories) }),
        }
    }

    /// Returns all engines that can be selected, in lookup order, sorted by name within each place.
    #[must_use]
    pub fn list(&self, directories: &[EngineDirectory]) -> Vec<EngineListing> {
        let mut found: Vec<EngineListing> = directories
            .iter()
            .filter(|one| !one.is_hidden() && !is_built_in(&one.name))
            .map(|one| EngineListing {
                name: one.name.clone(),
                place: EnginePlace::Directory(one.path.clone()),
            })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let registered = self.registered.keys();
        found.extend(
            registered.map(|name| EngineListing { name: name.clone(), place: EnginePlace::Registered }),
        );
        let built_in = std::iter::once(BUILT_IN_ENGINE).chain(self.further.keys().map(String::as_str));
        found.extend(
            built_in.map(|name| EngineListing { name: name.to_owned(), place: EnginePlace::BuiltIn }),
        );
        found
    }
}

/// Whether the name selects the built-in engine. An empty setting does too; no other engine can have its name.
fn is_built_in(name: &str) -> bool {
    name.is_empty() || name == BUILT_IN_ENGINE
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
