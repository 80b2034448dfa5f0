//! The figures of the whole workspace.

use std::collections::BTreeMap;
use std::fmt;

use crate::imports::cycles;
use crate::lines::code_lines;
use crate::names::{exported, repeated_types, used_by_others};
use crate::source::Workspace;

/// What `cargo xtask stats` prints.
#[derive(Debug)]
pub struct Stats {
    /// By crate, in the order of their names.
    pub crates: Vec<CrateStats>,
    /// Type names with more than one definition, and the modules that define them.
    pub repeated_types: BTreeMap<String, Vec<String>>,
}

/// The figures of one crate.
#[derive(Debug)]
pub struct CrateStats {
    /// The folder's name.
    pub name: String,
    /// Lines of production code, without comments and blank lines.
    pub lines: usize,
    /// Files and inline modules.
    pub modules: usize,
    /// Modules that import each other, the largest group first.
    pub cycles: Vec<Vec<String>>,
    /// Names a library exports.
    pub exported: Vec<String>,
    /// Exported names that no other crate mentions.
    pub unused_exports: Vec<String>,
}

impl CrateStats {
    fn largest_cycle(&self) -> usize {
        self.cycles.first().map_or(1, Vec::len)
    }
}

impl Stats {
    /// Computes every figure.
    #[must_use]
    pub fn of(workspace: &Workspace) -> Self {
        let used = used_by_others(workspace);
        let crates = workspace.crates.iter().map(|subject| {
            let exported = exported(subject);
            let used = used.get(&subject.ident);
            let unused = exported.iter().filter(|name| used.is_none_or(|used| !used.contains(*name)));
            CrateStats {
                name: subject.name.clone(),
                lines: subject.modules.values().map(code_lines).sum(),
                modules: subject.modules.len(),
                cycles: cycles(subject),
                unused_exports: unused.cloned().collect(),
                exported: exported.into_iter().collect(),
            }
        });
        Self { crates: crates.collect(), repeated_types: repeated_types(workspace) }
    }

    /// Lines of production code in all crates.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.crates.iter().map(|stats| stats.lines).sum()
    }

    /// The number of modules in the largest import cycle; 1 when there is none.
    #[must_use]
    pub fn largest_cycle(&self) -> usize {
        self.crates.iter().map(CrateStats::largest_cycle).max().unwrap_or(1)
    }

    /// Names exported by all libraries.
    #[must_use]
    pub fn exported(&self) -> usize {
        self.crates.iter().map(|stats| stats.exported.len()).sum()
    }

    /// The share of exported names that another crate mentions, in percent.
    #[must_use]
    pub fn used_percent(&self) -> usize {
        let unused: usize = self.crates.iter().map(|stats| stats.unused_exports.len()).sum();
        (self.exported() - unused) * 100 / self.exported().max(1)
    }

    /// The cycles, the repeated names and the unused exports themselves, a line each.
    #[must_use]
    pub fn details(&self) -> String {
        let mut lines = Vec::new();
        for stats in &self.crates {
            let cycles =
                stats.cycles.iter().map(|cycle| format!("cycle in {}: {}", stats.name, cycle.join(", ")));
            lines.extend(cycles);
        }
        let repeated = self.repeated_types.iter();
        lines.extend(repeated.map(|(name, places)| format!("repeated: {name}: {}", places.join(", "))));
        for stats in &self.crates {
            if !stats.unused_exports.is_empty() {
                lines.push(format!("unused export of {}: {}", stats.name, stats.unused_exports.join(", ")));
            }
        }
        lines.join("\n")
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{:<12} {:>7} {:>8} {:>6} {:>9} {:>7}",
            "crate", "lines", "modules", "cycle", "exported", "unused"
        )?;
        for stats in &self.crates {
            writeln!(
                out,
                "{:<12} {:>7} {:>8} {:>6} {:>9} {:>7}",
                stats.name,
                stats.lines,
                stats.modules,
                stats.largest_cycle(),
                stats.exported.len(),
                stats.unused_exports.len(),
            )?;
        }
        writeln!(out)?;
        writeln!(out, "production lines                {}", self.lines())?;
        writeln!(out, "modules in the largest cycle    {}", self.largest_cycle())?;
        writeln!(out, "type names defined repeatedly   {}", self.repeated_types.len())?;
        writeln!(out, "exported names                  {}", self.exported())?;
        write!(out, "of them used by another crate   {} %", self.used_percent())
    }
}
