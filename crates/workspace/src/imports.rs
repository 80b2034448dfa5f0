//! Which modules of a crate import each other.
//!
//! A module imports another when it names an item that is defined there, through whatever re-exports. Re-exports
//! themselves (`pub use`) import nothing: they only say where a name is found.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use crate::source::{Crate, ModulePath, is_test};

/// Modules that can all reach each other, the largest group first. Groups of one module are left out.
pub(crate) fn cycles(subject: &Crate) -> Vec<Vec<String>> {
    let scopes = Scopes::of(subject);
    let edges: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        subject.modules.keys().map(|module| (module, scopes.imports(module, subject))).collect();
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut seen: BTreeSet<&ModulePath> = BTreeSet::new();
    let reach: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        edges.keys().map(|module| (*module, reachable(module, &edges))).collect();
    for module in edges.keys() {
        if seen.contains(module) {
            continue;
        }
        let group: Vec<&ModulePath> = edges
            .keys()
            .filter(|other| reach[*module].contains(**other) && reach[**other].contains(*module))
            .copied()
            .collect();
        seen.extend(group.iter());
        if group.len() > 1 {
            groups.push(group.into_iter().map(|path| path.join("::")).collect());
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

fn reachable(
    start: &ModulePath,
    edges: &BTreeMap<&ModulePath, BTreeSet<ModulePath>>,
) -> BTreeSet<ModulePath> {
    let mut found = BTreeSet::new();
    let mut open = vec![start.clone()];
    while let Some(module) = open.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

/// What each module's names refer to.
struct Scopes {
    /// Names defined by an item of the module.
    defined: BTreeMap<ModulePath, BTreeSet<String>>,
    /// Names a module re-exports or imports, with the full path they were given.
    used: BTreeMap<ModulePath, BTreeMap<String, Vec<String>>>,
    globs: BTreeMap<ModulePath, Vec<Vec<String>>>,
}

impl Scopes {
    fn of(subject: &Crate) -> Self {
        let mut scopes = Self { defined: BTreeMap::new(), used: BTreeMap::new(), globs: BTreeMap::new() };
        for (path, module) in &subject.modules {
            let defined = scopes.defined.entry(path.clone()).or_default();
            defined.extend(module.items.iter().filter_map(defined_name));
            for item in &module.items {
                let Item::Use(item) = item else { continue };
                let mut uses = Vec::new();
                flatten(&item.tree, &mut Vec::new(), &mut uses);
                for used in uses {
                    let target = absolute(path, &used.path).or_else(|| in_child(path, &used.path, subject));
                    let Some(target) = target else { continue };
                    match used.name {
                        Some(name) => {
                            scopes.used.entry(path.clone()).or_default().insert(name, target);
                        }
                        None => scopes.globs.entry(path.clone()).or_default().push(target),
                    }
                }
            }
        }
        scopes
    }

    /// The modules that define what `module` names.
    fn imports(&self, module: &ModulePath, subject: &Crate) -> BTreeSet<ModulePath> {
        let mut collector = Paths { found: Vec::new() };
        for item in &subject.modules[module].items {
            match item {
                Item::Mod(_) => {}
                Item::Use(item) if !matches!(item.vis, Visibility::Inherited) => {}
                Item::Use(item) => {
                    let mut uses = Vec::new();
                    flatten(&item.tree, &mut Vec::new(), &mut uses);
                    collector.found.extend(uses.into_iter().map(|used| used.path));
                }
                item => collector.visit_item(item),
            }
        }
        let targets = collector.found.iter().filter_map(|path| {
            let path = absolute(module, path).or_else(|| in_child(module, path, subject))?;
            self.definition(&path, subject, 0)
        });
        targets.filter(|target| target != module).collect()
    }

    /// The module that defines what an absolute path names, through re-exports.
    fn definition(&self, path: &[String], subject: &Crate, depth: usize) -> Option<ModulePath> {
        let length = (0..=path.len()).rev().find(|length| subject.modules.contains_key(&path[..*length]))?;
        let module = path[..length].to_vec();
        let Some(name) = path.get(length) else { return Some(module) };
        if self.defined.get(&module).is_some_and(|names| names.contains(name)) || depth > 8 {
            return Some(module);
        }
        if let Some(target) = self.used.get(&module).and_then(|used| used.get(name)) {
            return self.definition(target, subject, depth + 1);
        }
        let globs = self.globs.get(&module).into_iter().flatten();
        let through_glob = globs.filter_map(|glob| {
            let target = [glob.clone(), vec![name.clone()]].concat();
            let found = self.definition(&target, subject, depth + 1)?;
            self.defined.get(&found).is_some_and(|names| names.contains(name)).then_some(found)
        });
        Some(through_glob.into_iter().next().unwrap_or(module))
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

/// One name that a `use` brings in; none for a glob.
pub(crate) struct Used {
    pub(crate) path: Vec<String>,
    pub(crate) name: Option<String>,
}

/// Every name of a `use` item.
pub(crate) fn flatten(tree: &UseTree, prefix: &mut Vec<String>, uses: &mut Vec<Used>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, uses);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            uses.push(Used { path: prefix.clone(), name: prefix.last().cloned() });
        }
        UseTree::Name(name) => {
            let path = [prefix.clone(), vec![name.ident.to_string()]].concat();
            uses.push(Used { path, name: Some(name.ident.to_string()) });
        }
        UseTree::Rename(rename) => {
            let path = [prefix.clone(), vec![rename.ident.to_string()]].concat();
            uses.push(Used { path, name: Some(rename.rename.to_string()) });
        }
        UseTree::Glob(_) => uses.push(Used { path: prefix.clone(), name: None }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, uses)),
    }
}

/// A path from the crate root, or none when it leads to another crate.
fn absolute(module: &ModulePath, path: &[String]) -> Option<Vec<String>> {
    let first = path.first()?;
    match first.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module.clone(), path[1..].to_vec()].concat()),
        "super" => {
            let up = path.iter().take_while(|segment| *segment == "super").count();
            let base = module.get(..module.len().checked_sub(up)?)?;
            Some([base.to_vec(), path[up..].to_vec()].concat())
        }
        _ => None,
    }
}

/// The same for a path that begins with a child module, such as `call::run` in `summary`.
fn in_child(module: &ModulePath, path: &[String], subject: &Crate) -> Option<Vec<String>> {
    let mut child = module.clone();
    child.push(path.first()?.clone());
    subject.modules.contains_key(&child).then(|| [module.clone(), path.to_vec()].concat())
}

/// Collects every path of more than one segment.
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    // `pub(in crate::a)` names a module without using anything of it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if !is_test(&method.attrs) {
            visit::visit_impl_item_fn(self, method);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}
