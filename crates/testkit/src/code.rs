//! Source code, command output and diffs, as tools return them.

use std::fmt::Write as _;

use crate::rng::Rng;
use crate::words;

const VERBS: &[&str] =
    &["load", "merge", "flush", "parse", "split", "count", "route", "sign", "fold", "scan"];
const NOUNS: &[&str] =
    &["header", "ledger", "session", "bucket", "record", "token", "window", "queue", "index", "shard"];
const TYPES: &[&str] = &["u64", "String", "Vec<u8>", "bool", "Duration", "Option<usize>", "&str"];

/// The language of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    TypeScript,
}

impl Language {
    pub(crate) fn of_path(path: &str) -> Self {
        match path.rsplit('.').next() {
            Some("py" | "sql" | "yaml") => Self::Python,
            Some("ts" | "tsx" | "js") => Self::TypeScript,
            _ => Self::Rust,
        }
    }
}

/// Writes one line of a program, without a line break.
pub(crate) fn line(rng: &mut Rng, language: Language, out: &mut String) {
    let (verb, noun, other) = (rng.pick(VERBS), rng.pick(NOUNS), rng.pick(NOUNS));
    let number = rng.below(5000);
    let shape = rng.below(10);
    let result = match (language, shape) {
        (_, 0) => Ok(()),
        (Language::Rust, 1) => {
            write!(
                out,
                "    pub fn {verb}_{noun}(&mut self, {other}: {}) -> Result<{}, Error> {{",
                rng.pick(TYPES),
                rng.pick(TYPES)
            )
        }
        (Language::Rust, 2) => write!(out, "        let {noun}_{number} = self.{other}s.get(&{number})?;"),
        (Language::Rust, 3) => write!(
            out,
            "        if {noun}.len() > {number} {{ return Err(Error::Too{verb}(\"{other} {number}\")); }}"
        ),
        (Language::Rust, 4) => write!(
            out,
            "        // The {noun} has to {verb} before the {other} does, or {number} rows are lost."
        ),
        (Language::Rust, 5) => write!(out, "use crate::{noun}::{{{verb}_{other}, {verb}_{noun}}};"),
        (Language::Rust, 6) => write!(out, "    }}"),
        (Language::Rust, 7) => write!(
            out,
            "        self.{noun}s.retain(|{other}| {other}.id != {number} && !{other}.is_closed());"
        ),
        (Language::Rust, 8) => {
            write!(out, "        tracing::debug!({noun} = %{other}, limit = {number}, \"{verb} {noun}\");")
        }
        (Language::Rust, _) => write!(out, "        {verb}_{noun}({other}, {number}).await?;"),
        (Language::Python, 1) => {
            write!(out, "    def {verb}_{noun}(self, {other}: str, limit: int = {number}) -> dict:")
        }
        (Language::Python, 2) => write!(out, "        {noun} = self.{other}s.get(\"{verb}-{number}\")"),
        (Language::Python, 3) => write!(out, "        if len({noun}) > {number}:"),
        (Language::Python, 4) => {
            write!(out, "            raise ValueError(f\"cannot {verb} {{{noun}!r}}: {number}\")")
        }
        (Language::Python, 5) => write!(out, "from app.{noun} import {verb}_{other}"),
        (Language::Python, 6) => write!(out, "        \"\"\"{verb} the {noun} and return its {other}.\"\"\""),
        (Language::Python, 7) => write!(out, "        return {{\"{noun}\": {other}, \"count\": {number}}}"),
        (Language::Python, 8) => write!(out, "\t\tlog.info('%s -> %d', {noun}, {number})"),
        (Language::Python, _) => write!(out, "        self.{verb}({noun}, timeout={number})"),
        (Language::TypeScript, 1) => write!(
            out,
            "export async function {verb}_{noun}({other}: string, limit = {number}): Promise<void> {{"
        ),
        (Language::TypeScript, 2) => {
            write!(out, "  const {noun} = await {verb}(`/api/{other}/${{id}}?n={number}`);")
        }
        (Language::TypeScript, 3) => {
            write!(out, "  if ({noun}.length > {number}) throw new Error(\"{verb}: {other}\");")
        }
        (Language::TypeScript, 4) => write!(out, "import {{ {verb} }} from \"../{noun}/{other}\";"),
        (Language::TypeScript, 5) => write!(out, "}}"),
        (Language::TypeScript, 6) => write!(out, "  /** Keeps at most {number} {noun}s. */"),
        (Language::TypeScript, 7) => {
            write!(out, "  return <Panel title='{verb} {noun}' onClick={{() => {verb}({number})}} />;")
        }
        (Language::TypeScript, 8) => write!(out, "  {noun}.{verb} = ({other} ?? {number}) as const;"),
        (Language::TypeScript, _) => write!(out, "  console.warn(`{noun} ${{{other}}}`, {number});"),
    };
    // Writing to a `String` cannot fail.
    let _ = result;
}

/// Writes source code of about `bytes` bytes, without line numbers.
pub(crate) fn source(rng: &mut Rng, language: Language, bytes: usize, out: &mut String) {
    let end = out.len() + bytes;
    while out.len() < end {
        line(rng, language, out);
        out.push('\n');
    }
}

/// Writes source code with line numbers, which `mark` separates from the line.
pub(crate) fn numbered_source(rng: &mut Rng, language: Language, bytes: usize, mark: &str, out: &mut String) {
    let end = out.len() + bytes;
    let mut number = rng.pick(&["1", "120", "480"]).parse::<usize>().unwrap_or(1);
    while out.len() < end {
        let _ = write!(out, "{number:>6}{mark}");
        line(rng, language, out);
        out.push('\n');
        number += 1;
    }
}

/// Writes the output of a test run, a compiler or a listing. The last line states the result.
pub(crate) fn command_output(rng: &mut Rng, bytes: usize, failed: bool, out: &mut String) {
    let end = out.len() + bytes;
    let flavour = rng.below(4);
    while out.len() < end {
        let (verb, noun) = (rng.pick(VERBS), rng.pick(NOUNS));
        let number = rng.below(100_000);
        let result = match flavour {
            0 => writeln!(out, "test {noun}::tests::{verb}_{noun}_{} ... ok", number % 997),
            1 => writeln!(
                out,
                "2026-03-{:02}T10:{:02}:07Z INFO  {noun}: {verb} took {number} us",
                number % 28 + 1,
                number % 60
            ),
            2 => writeln!(out, "-rw-r--r-- 1 dev dev {number:>7} Mar  4 10:21 {verb}_{noun}.rs"),
            _ => writeln!(out, "   Compiling {noun}-{verb} v0.{}.{}", number % 90, number % 13),
        };
        let _ = result;
    }
    if failed {
        out.push_str("error[E0308]: mismatched types\n   --> ");
        words::path(rng, out);
        let _ = writeln!(out, ":{}:{}", rng.between(1, 900), rng.between(1, 80));
        out.push_str("assertion `left == right` failed\n  left: ");
        words::number(rng, out);
        out.push_str("\n right: ");
        words::number(rng, out);
        out.push('\n');
    } else {
        let _ = writeln!(out, "test result: ok. {} passed; 0 failed", rng.below(900));
    }
}

/// Writes a change to a file as a unified diff.
pub(crate) fn diff(rng: &mut Rng, path: &str, bytes: usize, out: &mut String) {
    let _ = writeln!(out, "--- a/{path}\n+++ b/{path}\n@@ -{},7 +{},9 @@", rng.below(400), rng.below(400));
    let language = Language::of_path(path);
    let end = out.len() + bytes;
    while out.len() < end {
        out.push_str(rng.pick(&[" ", "+", "-"]));
        line(rng, language, out);
        out.push('\n');
    }
}
