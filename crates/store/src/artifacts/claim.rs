//! The place for large texts that a record uses: stored in the record, so that texts are not searched in the wrong place, and marked in the
//! place, so that no other record collects them as garbage. The same in every database.

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::place::ArtifactPlace;
use crate::error::{Result, StoreError};
use crate::sessions::guard::{Guard, GuardScope};
use crate::store::Store;

/// The guard with the place. It belongs to the record and is not copied with it.
pub(crate) const CLAIM: &str = "artifacts_in";

/// The claim of a record on the place of its large texts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Claim {
    /// The mark in the place.
    pub(crate) record: String,
    /// Its address as shown to users.
    pub(crate) place: String,
}

impl Claim {
    fn of(store: &dyn Store) -> Result<Option<Self>> {
        let guard = store.guard(&GuardScope::Global, CLAIM, 0)?;
        Ok(guard.and_then(|guard| serde_json::from_value(guard.value).ok()))
    }

    fn note(&self, store: &dyn Store) -> Result<()> {
        let value = serde_json::json!({ "record": self.record, "place": self.place });
        let guard = Guard { name: CLAIM.to_owned(), value, set_ms: 0, expires_ms: None };
        store.set_guard(&GuardScope::Global, CLAIM, Some(&guard))
    }
}

/// Returns the place that a record uses, for users.
pub(crate) fn place_of(store: &dyn Store) -> Result<Option<String>> {
    Ok(Claim::of(store)?.map(|claim| claim.place))
}

/// Returns an error if the record's large texts are in another place than the settings say.
pub(crate) fn check_unset(store: &dyn Store) -> Result<()> {
    match Claim::of(store)? {
        None => Ok(()),
        Some(claim) => Err(StoreError::BadArtifactPlace {
            problem: format!(
                "the record keeps its large texts in {}, and `store.artifacts` does not name it",
                claim.place
            ),
        }),
    }
}

/// Makes a record use a place. `fresh` is a random id for a record that uses none yet; without one nothing is written, as for a record that
/// is only read.
pub(crate) fn take(
    store: &dyn Store,
    files: &ArtifactFiles,
    place: &ArtifactPlace,
    fresh: Option<String>,
) -> Result<()> {
    let shown = place.shown();
    match (Claim::of(store)?, fresh) {
        // The contents of the place are checked when they are read.
        (Some(claim), _) if claim.place == shown => Ok(()),
        (Some(claim), fresh) => match files.mark()? {
            Some(mark) if mark == claim.record => match fresh {
                Some(_) => Claim { place: shown.to_owned(), ..claim }.note(store),
                None => Ok(()),
            },
            _ => Err(StoreError::BadArtifactPlace {
                problem: format!(
                    "the record keeps its large texts in {}, and {shown} does not have them; copy everything there first, \
                     with the object `{}`",
                    claim.place,
                    crate::artifacts::files::MARK
                ),
            }),
        },
        (None, None) => Ok(()),
        (None, Some(fresh)) => {
            let record = ArtifactId::of(fresh.as_bytes()).to_string();
            files.claim(&record, shown)?;
            Claim { record, place: shown.to_owned() }.note(store)
        }
    }
}
