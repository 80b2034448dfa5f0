//! The crates of the workspace, and the modules of each, parsed.
//!
//! Test code is left out: `tests/`, files named `*_tests.rs` or `test_*.rs`, `testkit`, `workspace`, and every item
//! behind `#[cfg(test)]`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, Meta};

/// Crates that hold tests and chores, not production code.
const DEVELOPMENT_CRATES: [&str; 2] = ["testkit", "workspace"];

/// A file that cannot be read or is not Rust.
#[derive(Debug)]
pub struct SourceError {
    path: PathBuf,
    reason: String,
}

impl SourceError {
    fn new(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for SourceError {}

/// The production code of every crate.
pub struct Workspace {
    pub(crate) crates: Vec<Crate>,
    /// The programs in `examples/`: the users of the library that programs embed.
    pub(crate) examples: Vec<syn::File>,
}

/// One crate. Its root is `src/lib.rs`, or `src/main.rs` when it has no library.
pub(crate) struct Crate {
    /// The folder's name, such as `engine`.
    pub(crate) name: String,
    /// The name in Rust paths, such as `throughline_engine`.
    pub(crate) ident: String,
    pub(crate) is_library: bool,
    /// By path from the root: `[]` is the root, `["summary", "call"]` is `crate::summary::call`.
    pub(crate) modules: BTreeMap<ModulePath, Module>,
}

/// Segments below the crate root.
pub(crate) type ModulePath = Vec<String>;

/// One file, or one inline module with a body.
pub(crate) struct Module {
    /// Empty for an inline module: its lines belong to the file around it.
    pub(crate) text: String,
    pub(crate) items: Vec<Item>,
    pub(crate) is_public: bool,
}

impl Workspace {
    /// Reads the crates in `root/crates` and the programs in `root/examples`.
    ///
    /// # Errors
    /// When a folder or file cannot be read, or a file does not parse.
    pub fn read(root: &Path) -> Result<Self, SourceError> {
        let folder = root.join("crates");
        let entries = fs::read_dir(&folder).map_err(|error| SourceError::new(&folder, error))?;
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        let mut crates = Vec::new();
        for folder in folders {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if !DEVELOPMENT_CRATES.contains(&name.as_str()) && folder.join("Cargo.toml").exists() {
                crates.push(Crate::read(&folder, name)?);
            }
        }
        Ok(Self { crates, examples: examples(&root.join("examples"))? })
    }
}

impl Crate {
    fn read(folder: &Path, name: String) -> Result<Self, SourceError> {
        let library = folder.join("src/lib.rs");
        let is_library = library.exists();
        let root = if is_library { library } else { folder.join("src/main.rs") };
        let ident = package_name(&folder.join("Cargo.toml"))?.replace('-', "_");
        let mut modules = BTreeMap::new();
        read_file(&root, Vec::new(), true, &mut modules)?;
        Ok(Self { name, ident, is_library, modules })
    }
}

/// The programs in a folder of examples; none where there is no such folder.
fn examples(folder: &Path) -> Result<Vec<syn::File>, SourceError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let parsed = files.iter().map(|file| {
        let text = fs::read_to_string(file).map_err(|error| SourceError::new(file, error))?;
        syn::parse_file(&text).map_err(|error| SourceError::new(file, error))
    });
    parsed.collect()
}

fn package_name(manifest: &Path) -> Result<String, SourceError> {
    let text = fs::read_to_string(manifest).map_err(|error| SourceError::new(manifest, error))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = "));
    name.map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| SourceError::new(manifest, "has no package name"))
}

fn read_file(
    path: &Path,
    module: ModulePath,
    is_public: bool,
    modules: &mut BTreeMap<ModulePath, Module>,
) -> Result<(), SourceError> {
    let text = fs::read_to_string(path).map_err(|error| SourceError::new(path, error))?;
    let file = syn::parse_file(&text).map_err(|error| SourceError::new(path, error))?;
    let children = child_folder(path);
    add_module(file.items, text, module, is_public, &children, modules)
}

/// Where the files of a module's children are: beside `lib.rs`, `main.rs` and `mod.rs`, otherwise in a folder of the
/// module's name.
fn child_folder(path: &Path) -> PathBuf {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    if ["lib", "main", "mod"].contains(&stem.as_str()) { folder } else { folder.join(stem) }
}

fn add_module(
    items: Vec<Item>,
    text: String,
    module: ModulePath,
    is_public: bool,
    children: &Path,
    modules: &mut BTreeMap<ModulePath, Module>,
) -> Result<(), SourceError> {
    let items: Vec<Item> = items.into_iter().filter(|item| !is_test(attributes(item))).collect();
    for item in &items {
        let Item::Mod(child) = item else { continue };
        let name = child.ident.to_string();
        if name.ends_with("_tests") || name.starts_with("test_") {
            continue;
        }
        let mut path = module.clone();
        path.push(name.clone());
        let is_public = matches!(child.vis, syn::Visibility::Public(_));
        if let Some((_, content)) = &child.content {
            add_module(content.clone(), String::new(), path, is_public, &children.join(&name), modules)?;
        } else {
            let file = children.join(format!("{name}.rs"));
            let file = if file.exists() { file } else { children.join(&name).join("mod.rs") };
            read_file(&file, path, is_public, modules)?;
        }
    }
    modules.insert(module, Module { text, items, is_public });
    Ok(())
}

/// Whether these attributes keep an item out of every build but that of tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test")
        }
        _ => false,
    })
}

/// The attributes of an item, whatever it is.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
