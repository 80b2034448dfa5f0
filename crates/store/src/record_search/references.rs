//! The references to an artifact within the scope of a search.

use super::scope::SearchScope;
use super::source::{ArtifactReference, ScanStep, SearchSource, SourceResult};

/// Returns the newest reference to an artifact within the scope of a search.
pub(super) fn newest_reference<S: SearchSource>(
    source: &S,
    artifact: i64,
    scope: &mut SearchScope<'_, S>,
) -> SourceResult<S, Option<ArtifactReference>> {
    let mut newest = None;
    source.each_reference(artifact, |reference| {
        if scope.query.admits(reference.role, &reference.tools, reference.at_ms)
            && scope.admits_place(reference.session, reference.seq)?
        {
            newest = Some(reference);
            return Ok(ScanStep::No);
        }
        Ok(ScanStep::Yes)
    })?;
    Ok(newest)
}
