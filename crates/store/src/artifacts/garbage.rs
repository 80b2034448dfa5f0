//! Finds unreferenced texts in a separate place, and removes them after a grace period.

use crate::artifacts::files::{ArtifactFiles, StoredObject};
use crate::error::Result;
use crate::ids::Millis;

/// What garbage to collect.
#[derive(Clone, Copy, Debug)]
pub struct GarbageOptions {
    /// The current time.
    pub now_ms: Millis,
    /// Texts stored more recently than this are not removed.
    pub grace_ms: Millis,
    /// Count only.
    pub dry_run: bool,
}

/// The result of garbage collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GarbageReport {
    /// Number of objects in the place.
    pub objects: u64,
    /// Their size.
    pub bytes: u64,
    /// Number of unreferenced objects older than the grace period.
    pub garbage: u64,
    /// Their size.
    pub garbage_bytes: u64,
    /// Number of younger unreferenced objects.
    pub younger: u64,
    /// Objects that were removed.
    pub removed: u64,
}

/// Scans a place. Returns unreferenced objects that are old enough; `is_known` returns whether an object is referenced.
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
