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

/// Makes an engine for one conversation.
pub(crate) type EngineFactory = Arc<dyn Fn() -> Arc<dyn ContextEngine> + Send + Sync>;

/// Makes the engine of a directory, or says why it cannot be run.
pub(crate) type DirectoryEngines<'a> = &'a dyn Fn(&EngineDirectory) -> Result<Arc<dyn ContextEngine>, String>;

/// A directory under `plugins/context_engine/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineDirectory {
    /// Its name, which is the engine's.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl EngineDirectory {
    /// Whether its name marks it as not meant for use.
    fn is_hidden(&self) -> bool {
        self.name.starts_with(['.', '_'])
    }
}

/// Where an engine was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnginePlace {
    /// A directory of plugins.
    Directory(PathBuf),
    /// A program registered it.
    Registered,
    /// It comes with the program.
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

/// An engine that could be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineListing {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: EnginePlace,
}

/// Why no engine can be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Found in the folder of plugins, and broken.
    #[error("the context engine `{name}` in {} cannot be run: {why}", path.display())]
    Broken {
        /// The engine.
        name: String,
        /// Its directory.
        path: PathBuf,
        /// What is wrong with the engine.
        why: String,
    },
    /// It is unknown.
    #[error("there is no context engine `{name}`, which `context.engine` names; there {}", listed(known))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// What there is.
        known: Vec<EngineListing>,
    },
    /// A second engine of the same name was registered.
    #[error("a context engine `{name}` is there already, {place}")]
    NameTaken {
        /// The name.
        name: String,
        /// Where the first one is.
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

    /// The same with a further engine that comes with the program; an installed or registered one of its name goes
    /// before it.
    #[must_use]
    pub fn with_built_in(mut self, name: &str, factory: EngineFactory) -> Self {
        self.further.insert(name.to_owned(), factory);
        self
    }

    /// Registers an engine under a name of its own.
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

    /// The engine that `context.engine` names, made for one conversation; `run` makes those of directories.
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

    /// Every engine that could be named, in the order they are looked up, each place sorted by name.
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

/// The name of the built-in engine belongs to it alone; leaving the setting empty means it too.
fn is_built_in(name: &str) -> bool {
    name.is_empty() || name == BUILT_IN_ENGINE
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
