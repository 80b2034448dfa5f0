//! The texts of artifacts, wherever they are: in the folder beside a database, in a separate folder, or in a bucket.
//!
//! A separate place is shared by all programs with the same record, and marked as belonging to that record. Nothing is removed from it when
//! a conversation is deleted, because another program may be about to refer to the same text. Unreferenced texts are garbage, and are
//! collected later. Not for: references, and finding garbage, which use the database.

use std::path::PathBuf;

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
#[cfg(feature = "s3")]
use crate::artifacts::bucket::ArtifactBucket;
use crate::artifacts::folder::{ArtifactFile, ArtifactFolder, FolderListing};
use crate::artifacts::place::{ArtifactPlace, PlaceKind};
use crate::error::{Result, StoreError};
use crate::ids::Millis;
#[cfg(feature = "postgres")]
use crate::ids::Owner;
use crate::message_codec::ArtifactTexts;

/// The name of the file or object that marks the owner of a place.
pub(crate) const MARK: &str = "throughline-record";
/// The parent of the owners' folders, where texts are stored separately for each owner.
const OWNERS: &str = "owners";

/// The location of texts.
#[derive(Clone, Debug)]
pub(crate) struct ArtifactFiles {
    place: FilesPlace,
    /// The folder beside the database, with texts stored before the record had a separate place.
    before: Option<ArtifactFolder>,
}

#[derive(Clone, Debug)]
enum FilesPlace {
    /// The folder beside the database.
    Beside(ArtifactFolder),
    Folder(ArtifactFolder),
    #[cfg(feature = "s3")]
    Bucket(ArtifactBucket),
}

/// A text, or another object, in a separate place for texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredObject {
    /// Its name in the place.
    pub(crate) name: String,
    /// The folder of its owner, if each has one.
    pub(crate) owner: Option<String>,
    /// The id of the text; `None` for something else, such as an unfinished object of a process that died.
    pub(crate) id: Option<ArtifactId>,
    pub(crate) bytes: u64,
    pub(crate) modified_ms: Millis,
}

impl StoredObject {
    fn new(name: String, bytes: u64, modified_ms: Millis) -> Self {
        let mut parts: Vec<&str> = name.split('/').collect();
        let owner = match parts.as_slice() {
            [OWNERS, owner, ..] => Some((*owner).to_owned()),
            _ => None,
        };
        if owner.is_some() {
            parts.drain(..2);
        }
        let id = match parts.as_slice() {
            [folder, file] => file.strip_suffix(".zst").filter(|name| {
                name.len() == 32 && name.starts_with(folder) && name.bytes().all(|b| b.is_ascii_hexdigit())
            }),
            _ => None,
        };
        Self { id: id.map(ArtifactId::from_text), owner, name, bytes, modified_ms }
    }
}

impl StoredObject {
    /// Whether it was being written when its writer died.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.name.rsplit('/').next().is_some_and(|file| file.starts_with(".new-"))
    }
}

impl ArtifactFiles {
    /// The folder beside a database.
    pub(crate) fn beside(folder: ArtifactFolder) -> Self {
        Self { place: FilesPlace::Beside(folder), before: None }
    }

    /// A separate place; texts from before are in `before`.
    pub(crate) fn of(place: &ArtifactPlace, before: Option<ArtifactFolder>) -> Result<Self> {
        let place = match &place.kind {
            PlaceKind::Folder(path) => FilesPlace::Folder(ArtifactFolder::at(path)),
            #[cfg(feature = "s3")]
            PlaceKind::Bucket(address) => FilesPlace::Bucket(ArtifactBucket::new(address)?),
            #[cfg(not(feature = "s3"))]
            PlaceKind::Bucket(_) => return Err(StoreError::Unsupported { what: "object storage" }),
        };
        Ok(Self { place, before })
    }

    /// Returns the folder of one owner's texts.
    #[cfg(feature = "postgres")]
    pub(crate) fn owner_folder(owner: &Owner) -> String {
        blake3::hash(owner.as_str().as_bytes()).to_hex().as_str()[..32].to_owned()
    }

    /// Returns the texts of one owner, if they are separate.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_owner(&self, owner: &Owner) -> Self {
        let under = format!("{OWNERS}/{}", Self::owner_folder(owner));
        let place = match &self.place {
            FilesPlace::Beside(folder) | FilesPlace::Folder(folder) => {
                FilesPlace::Folder(ArtifactFolder::at(folder.path().join(under)))
            }
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => FilesPlace::Bucket(bucket.under(&under)),
        };
        Self { place, before: None }
    }

    /// Whether they are in a separate place.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !matches!(self.place, FilesPlace::Beside(_))
    }

    /// Returns the folder beside the database, if there is one.
    #[must_use]
    pub(crate) fn folder_beside(&self) -> Option<&ArtifactFolder> {
        match &self.place {
            FilesPlace::Beside(folder) => Some(folder),
            _ => self.before.as_ref(),
        }
    }

    /// Returns the path of an artifact's file or object, whether or not it exists.
    #[must_use]
    pub(crate) fn file_path(&self, id: &ArtifactId) -> PathBuf {
        match &self.place {
            FilesPlace::Beside(folder) | FilesPlace::Folder(folder) => folder.file_path(id),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.shown(&ArtifactBucket::name_of(id)).into(),
        }
    }

    /// Stores a text, unless it is stored already. It is on disk, or at the service, when this returns.
    pub(crate) fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)> {
        if let Some(before) = &self.before {
            let id = ArtifactId::of(text.as_bytes());
            if let Ok(present) = before.stat(&id) {
                return Ok((id, present));
            }
        }
        match &self.place {
            FilesPlace::Beside(folder) | FilesPlace::Folder(folder) => folder.put(text),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.put(text),
        }
    }

    /// Returns the sizes of an artifact without decompressing it.
    pub(crate) fn stat(&self, id: &ArtifactId) -> Result<ArtifactFile> {
        let found = match &self.place {
            FilesPlace::Beside(folder) | FilesPlace::Folder(folder) => folder.stat(id),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.stat(id),
        };
        self.or_before(found, |before| before.stat(id))
    }

    /// Reads a piece, as far as the text has it.
    pub(crate) fn read(&self, id: &ArtifactId, range: ArtifactRange) -> Result<String> {
        let found = match &self.place {
            FilesPlace::Beside(folder) | FilesPlace::Folder(folder) => folder.read(id, range),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.read(id, range),
        };
        self.or_before(found, |before| before.read(id, range))
    }

    /// Returns the result, or that of the earlier folder if it is damaged or missing.
    fn or_before<T>(&self, found: Result<T>, look: impl FnOnce(&ArtifactFolder) -> Result<T>) -> Result<T> {
        match (found, &self.before) {
            (Err(StoreError::ArtifactDamaged { id, problem, path }), Some(before)) => {
                look(before).map_err(|_| StoreError::ArtifactDamaged { id, problem, path })
            }
            (found, _) => found,
        }
    }

    /// Reads the whole text and compares it with the name.
    pub(crate) fn verify(&self, id: &ArtifactId) -> Result<()> {
        self.read(id, ArtifactRange::All).map(drop)
    }

    /// Lists everything in the folder beside the database. A separate place is not listed: see [`objects`](Self::objects).
    pub(crate) fn list(&self) -> Result<FolderListing> {
        match self.folder_beside() {
            Some(folder) if folder.path().is_dir() => folder.list(),
            _ => Ok(FolderListing::default()),
        }
    }

    /// Removes an artifact's file from the folder beside the database.
    pub(crate) fn remove(&self, id: &ArtifactId) -> Result<()> {
        self.folder_beside().map_or(Ok(()), |folder| folder.remove(id))
    }

    /// Lists everything in a separate place except its mark; empty without such a place.
    pub(crate) fn objects(&self) -> Result<Vec<StoredObject>> {
        let mut objects = match &self.place {
            FilesPlace::Beside(_) => Vec::new(),
            FilesPlace::Folder(folder) => folder
                .walk()?
                .into_iter()
                .map(|(name, bytes, modified_ms)| StoredObject::new(name, bytes, modified_ms))
                .collect(),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket
                .list()?
                .into_iter()
                .map(|entry| StoredObject::new(entry.name, entry.bytes, entry.modified_ms))
                .collect(),
        };
        objects.retain(|object| object.name != MARK);
        objects.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(objects)
    }

    /// Removes an object from a separate place.
    pub(crate) fn remove_object(&self, object: &StoredObject) -> Result<()> {
        match &self.place {
            FilesPlace::Beside(_) => Ok(()),
            FilesPlace::Folder(folder) => folder.remove_named(&object.name),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.remove(&object.name),
        }
    }

    /// Marks a separate place for the record with this id; fails if it belongs to another record.
    pub(crate) fn claim(&self, record: &str, shown: &str) -> Result<()> {
        if let Some(found) = self.mark()?.filter(|found| found != record) {
            return Err(StoreError::BadArtifactPlace {
                problem: format!(
                    "{shown} holds the large texts of another record ({found}); each record needs a prefix or folder of its own"
                ),
            });
        }
        match &self.place {
            FilesPlace::Beside(_) => return Ok(()),
            FilesPlace::Folder(folder) => folder.write_new(MARK, record)?,
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.write_new(MARK, record)?,
        }
        // Another record may have written its mark in between.
        match self.mark()? {
            Some(found) if found != record => self.claim(record, shown),
            _ => Ok(()),
        }
    }

    /// Returns the record that a separate place belongs to.
    pub(crate) fn mark(&self) -> Result<Option<String>> {
        match &self.place {
            FilesPlace::Beside(_) => Ok(None),
            FilesPlace::Folder(folder) => folder.text_of(MARK),
            #[cfg(feature = "s3")]
            FilesPlace::Bucket(bucket) => bucket.text_of(MARK),
        }
    }
}

impl ArtifactTexts for ArtifactFiles {
    fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)> {
        Self::put(self, text)
    }

    fn text(&self, id: &ArtifactId) -> Result<String> {
        self.read(id, ArtifactRange::All)
    }
}
