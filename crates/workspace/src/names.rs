//! Names of types that are defined more than once, and names that a library exports.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, Visibility};

use crate::imports::{Used, flatten};
use crate::source::{Crate, ModulePath, Workspace};

/// The crate that programs embed.
const EMBEDDED: &str = "throughline";

/// Type names with more than one definition, and where each is defined (`crate::module`).
pub(crate) fn repeated_types(workspace: &Workspace) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for subject in &workspace.crates {
        for (path, module) in &subject.modules {
            for item in &module.items {
                let ident = match item {
                    Item::Struct(item) => &item.ident,
                    Item::Enum(item) => &item.ident,
                    Item::Trait(item) => &item.ident,
                    Item::Type(item) => &item.ident,
                    Item::Union(item) => &item.ident,
                    _ => continue,
                };
                let place = [vec![subject.name.clone()], path.clone()].concat().join("::");
                places.entry(ident.to_string()).or_default().push(place);
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// Names that programs outside the crate can use. Empty for a binary.
pub(crate) fn exported(subject: &Crate) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if subject.is_library {
        add_exports(subject, &Vec::new(), &mut names);
    }
    names
}

fn add_exports(subject: &Crate, path: &ModulePath, names: &mut BTreeSet<String>) {
    let Some(module) = subject.modules.get(path) else { return };
    for item in &module.items {
        let (visibility, ident) = match item {
            Item::Const(item) => (&item.vis, &item.ident),
            Item::Enum(item) => (&item.vis, &item.ident),
            Item::Fn(item) => (&item.vis, &item.sig.ident),
            Item::Static(item) => (&item.vis, &item.ident),
            Item::Struct(item) => (&item.vis, &item.ident),
            Item::Trait(item) => (&item.vis, &item.ident),
            Item::Type(item) => (&item.vis, &item.ident),
            Item::Mod(item) => {
                let child = [path.clone(), vec![item.ident.to_string()]].concat();
                if subject.modules.get(&child).is_some_and(|module| module.is_public) {
                    add_exports(subject, &child, names);
                }
                continue;
            }
            Item::Use(item) => {
                if matches!(item.vis, Visibility::Public(_)) {
                    let mut uses = Vec::new();
                    flatten(&item.tree, &mut Vec::new(), &mut uses);
                    names.extend(uses.into_iter().filter_map(|used| used.name));
                }
                continue;
            }
            _ => continue,
        };
        if matches!(visibility, Visibility::Public(_)) {
            names.insert(ident.to_string());
        }
    }
}

/// For each crate (by its name in Rust paths), the names of it that other crates mention. The programs in `examples/` count
/// as users of the crate `throughline`, which exists to be embedded and which no other crate uses.
pub(crate) fn used_by_others(workspace: &Workspace) -> BTreeMap<String, BTreeSet<String>> {
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut collector = Paths::default();
    workspace.examples.iter().for_each(|file| collector.visit_file(file));
    for path in collector.found {
        if let Some((first, rest)) = path.split_first()
            && first == EMBEDDED
        {
            used.entry(first.clone()).or_default().extend(rest.iter().cloned());
        }
    }
    for subject in &workspace.crates {
        let mut collector = Paths::default();
        let items = subject.modules.values().flat_map(|module| &module.items);
        items.for_each(|item| collector.visit_item(item));
        for path in collector.found {
            let Some((first, rest)) = path.split_first() else { continue };
            if *first != subject.ident && first.starts_with("throughline_") {
                used.entry(first.clone()).or_default().extend(rest.iter().cloned());
            }
        }
    }
    used
}

#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    // An inline module is a module of its own in `Crate::modules`.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut uses: Vec<Used> = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut uses);
        self.found.extend(uses.into_iter().map(|used| used.path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}
