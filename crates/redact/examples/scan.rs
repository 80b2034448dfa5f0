//! Prints every finding in the files of a folder, with what stands around it, and a count by rule.
//!
//! `cargo run --release -p throughline-redact --example scan -- FOLDER [--raw]`
//!
//! Files ending in `.gz` are unpacked. JSON and JSON lines are taken apart and every string is examined on its own, as
//! it is when messages are summarised; `--raw` examines each file as one text.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use throughline_redact::Redactor;

const CONTEXT_BYTES: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let raw = arguments.iter().any(|argument| argument == "--raw");
    let Some(folder) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        eprintln!("usage: scan FOLDER [--raw]");
        std::process::exit(2);
    };
    let redactor = Redactor::new();
    let mut totals: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut bytes, mut texts) = (0usize, 0usize);
    for path in files_below(Path::new(folder))? {
        let Some(content) = read_text(&path) else { continue };
        for_each_text(&content, raw, &mut |text| {
            bytes += text.len();
            texts += 1;
            for finding in redactor.find(text) {
                *totals.entry(finding.rule).or_default() += 1;
                let before = text.floor_char_boundary(finding.range.start.saturating_sub(CONTEXT_BYTES));
                let after = text.ceil_char_boundary((finding.range.end + CONTEXT_BYTES / 2).min(text.len()));
                println!(
                    "{}\t{}\t{:?} >>>{:?}<<< {:?}",
                    finding.rule,
                    path.file_name().unwrap_or_default().to_string_lossy(),
                    &text[before..finding.range.start],
                    &text[finding.range.clone()],
                    &text[finding.range.end..after],
                );
            }
        });
    }
    println!("---\n{texts} texts, {bytes} bytes, {} findings", totals.values().sum::<usize>());
    for (rule, count) in totals {
        println!("{count:6} {rule}");
    }
    Ok(())
}

/// Every file below `folder`, sorted, so that the output is the same each time.
fn files_below(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The file as text; `None` if it is not text.
fn read_text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).ok()?;
        return Some(text);
    }
    String::from_utf8(bytes).ok()
}

fn for_each_text(content: &str, raw: bool, examine: &mut impl FnMut(&str)) {
    if raw {
        return examine(content);
    }
    if let Ok(value) = serde_json::from_str::<Value>(content) {
        return for_each_string(&value, examine);
    }
    if !content.trim_start().starts_with('{') {
        return examine(content);
    }
    for line in content.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => for_each_string(&value, examine),
            Err(_) => examine(line),
        }
    }
}

fn for_each_string(value: &Value, examine: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => examine(text),
        Value::Array(items) => items.iter().for_each(|item| for_each_string(item, examine)),
        Value::Object(fields) => fields.values().for_each(|field| for_each_string(field, examine)),
        _ => {}
    }
}
