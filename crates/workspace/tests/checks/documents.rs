//! Documents stay true where a program can tell: links lead somewhere, the book lists its pages, the map names every crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file at the top and below `docs`, `examples`, `integrations`, `fuzz`, `crates` and `bench`.
fn documents() -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = ["docs", "examples", "integrations", "fuzz", "crates", "bench"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    let top = fs::read_dir(root()).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = top.filter(|path| is_markdown(path)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                // Prompts and golden files hold text of models and transcripts, not documents.
                if !["target", "golden", "prompts", "snapshots", "corpus", "node_modules"]
                    .iter()
                    .any(|name| path.ends_with(name))
                {
                    open.push(path);
                }
            } else if is_markdown(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The targets of all links in a text, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(str::to_owned));
    }
    found
}

/// The anchors of a page, as mdBook and GitHub make them from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    let documents = documents();
    assert!(documents.len() > 40, "the documents were not found");
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            let leads = match fs::read_to_string(&target) {
                Ok(page) => anchor.is_empty() || anchors(&page).contains(anchor),
                Err(_) => target.is_dir(),
            };
            if !leads {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn pages_of_the_book_link_to_nothing_outside_of_it() {
    let docs = root().join("docs").canonicalize().unwrap();
    let mut outside = Vec::new();
    for page in documents().into_iter().filter(|path| path.starts_with(root().join("docs"))) {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            let file = link.split('#').next().unwrap_or_default();
            let target = page.parent().unwrap().join(file).canonicalize();
            if !link.contains("://") && !target.is_ok_and(|target| target.starts_with(&docs)) {
                outside.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(outside.is_empty(), "links that the built book does not contain:\n{}", outside.join("\n"));
}

#[test]
fn book_lists_every_page() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|link| docs.join(link)).collect();
    let pages =
        documents().into_iter().filter(|path| path.starts_with(&docs) && !path.ends_with("SUMMARY.md"));
    let missing: Vec<PathBuf> = pages.filter(|page| !listed.contains(page)).collect();
    assert!(missing.is_empty(), "pages that docs/SUMMARY.md does not list: {missing:?}");
}

#[test]
fn architecture_names_every_crate() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let name = format!("crates/{}", entry.file_name().to_string_lossy());
        assert!(architecture.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name {name}");
    }
}
