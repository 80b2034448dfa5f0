//! Large texts that nobody refers to, in a place of their own: found, and removed after a grace period.

use crate::artifacts::files::{ArtifactFiles, StoredObject};
use crate::error::Result;
use crate::ids::Millis;

/// What garbage to collect.
#[derive(Clone, Copy, Debug)]
pub struct GarbageOptions {
    /// The current time.
    pub now_ms: Millis,
    /// What was stored less than so long ago stays.
    pub grace_ms: Millis,
    /// Count only.
    pub dry_run: bool,
}

/// What a collection of garbage came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GarbageReport {
    /// Objects that the place holds.
    pub objects: u64,
    /// Their size.
    pub bytes: u64,
    /// Those of them that nobody refers to and that are older than the grace period.
    pub garbage: u64,
    /// Their size.
    pub garbage_bytes: u64,
    /// Those that nobody refers to and that are younger.
    pub younger: u64,
    /// Objects that were removed.
    pub removed: u64,
}

/// Looks a place over. Gives what nobody refers to and is old enough; `is_known` says whether somebody does.
pub(crate) fn find(
    files: &ArtifactFiles,
    options: &GarbageOptions,
    is_known: impl Fn(&StoredObject) -> bool,
) -> Result<(GarbageReport, Vec<StoredObject>)> {
    let mut report = GarbageReport::default();
    let mut garbage = Vec::new();
    let oldest_kept_ms = options.now_ms.saturating_sub(options.grace_ms);
    for object in files.objects()? {
        report.objects += 1;
        report.bytes += object.bytes;
        if is_known(&object) {
            continue;
        }
        if object.modified_ms > oldest_kept_ms {
            report.younger += 1;
            continue;
        }
        report.garbage += 1;
        report.garbage_bytes += object.bytes;
        garbage.push(object);
    }
    Ok((report, garbage))
}
