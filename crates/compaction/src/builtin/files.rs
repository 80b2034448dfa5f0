//! Files read and changed, with what happened to them.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::act::{Act, ToolFamily, one_line};

/// The history of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileHistory {
    pub(crate) reads: u32,
    pub(crate) edits: u32,
    pub(crate) writes: u32,
    pub(crate) failed_edits: u32,
    pub(crate) ranges: Vec<String>,
    pub(crate) last: u32,
}

impl FileHistory {
    pub(crate) fn changed(&self) -> bool {
        self.edits + self.writes > 0
    }

    /// `edited 3 times (+40 -12 lines), read twice (lines 1-200)`.
    pub(crate) fn words(&self) -> String {
        let mut words = Vec::new();
        if self.writes > 0 {
            words.push(format!("written{}", times(self.writes)));
        }
        if self.edits > 0 {
            words.push(format!("edited{}", times(self.edits)));
        }
        if self.failed_edits > 0 {
            words.push(format!("{} failed edits", self.failed_edits));
        }
        if self.reads > 0 {
            let ranges = one_line(&self.ranges.join("; "), 60);
            let ranges = if ranges.is_empty() { ranges } else { format!(" ({ranges})") };
            words.push(format!("read{}{ranges}", times(self.reads)));
        }
        words.join(", ")
    }
}

fn times(count: u32) -> String {
    match count {
        1 => String::new(),
        2 => " twice".to_owned(),
        n => format!(" {n} times"),
    }
}

/// Files by path, in order of first use.
pub(crate) type Files<'a> = IndexMap<&'a str, FileHistory, FxBuildHasher>;

/// Gathers the files of a run of calls.
pub(crate) fn files<'a>(acts: &'a [Act]) -> Files<'a> {
    let mut found: Files<'a> = IndexMap::default();
    for act in acts {
        if act.outcome.as_ref().is_some_and(|outcome| outcome.not_run) {
            continue;
        }
        let failed = act.came_to_nothing();
        match act.family {
            ToolFamily::Read if !act.target.is_empty() && !failed => {
                let history = found.entry(act.target.as_str()).or_default();
                history.reads += 1;
                history.last = act.message;
                if !act.detail.is_empty() && history.ranges.len() < 4 && !history.ranges.contains(&act.detail)
                {
                    history.ranges.push(act.detail.clone());
                }
            }
            ToolFamily::Write | ToolFamily::Edit => {
                for file in act.changed_files() {
                    let history = found.entry(file).or_default();
                    history.last = act.message;
                    if failed {
                        history.failed_edits += 1;
                    } else if act.family == ToolFamily::Write {
                        history.writes += 1;
                    } else {
                        history.edits += 1;
                    }
                }
            }
            _ => {}
        }
    }
    found
}
