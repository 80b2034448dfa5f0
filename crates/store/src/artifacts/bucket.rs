//! Large texts in object storage: one object for each text, in the format of the files in a folder.
//!
//! A piece of a text is read with one or two requests: the end of the object, which has the table of its frames, and the frames that are
//! wanted. Calls block; the connections live on a thread of their own. Not for: the owners of texts, and which objects may be removed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error as ObjectError, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    RetryConfig,
};
use tokio::runtime::Runtime;

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
use crate::artifacts::bucket_error::problem_words;
use crate::artifacts::folder::ArtifactFile;
use crate::artifacts::frame_table::{FrameTable, TRAILER_BYTES};
use crate::artifacts::frames::{read_piece, unpack_frames, write_frames};
use crate::artifacts::place::BucketAddress;
use crate::error::{Result, StoreError};

/// The number of bytes read first from the end of an object: the whole of a text that compresses well, and the table of any text up to 80
/// MB.
const TAIL_BYTES: u64 = 64 * 1024;
/// How often a request that failed temporarily is repeated, within the time limit.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// A bucket, or one prefix in it.
#[derive(Clone, Debug)]
pub(crate) struct ArtifactBucket {
    client: Arc<BucketClient>,
    base: ObjectPath,
}

/// The connections to a service.
struct BucketClient {
    store: Box<dyn ObjectStore>,
    shown: String,
    /// `None` only while the client is dropped.
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for BucketClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketClient").field("place", &self.shown).finish_non_exhaustive()
    }
}

impl Drop for BucketClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads is not allowed inside another runtime.
            runtime.shutdown_background();
        }
    }
}

/// An object in a bucket.
pub(crate) struct BucketEntry {
    /// Its name below the prefix.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified_ms: i64,
}

/// The end of an object, including the table.
struct ObjectTail {
    table: FrameTable,
    bytes: Vec<u8>,
    /// The offset of these bytes.
    start: u64,
}

impl ArtifactBucket {
    /// Prepares connections to a bucket without making one.
    pub(crate) fn new(address: &BucketAddress) -> Result<Self> {
        // Fails if another part of the program has installed the same provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let refused = |error: ObjectError| StoreError::BadArtifactPlace { problem: problem_words(&error) };
        let retry =
            RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        macro_rules! built {
            ($builder:ty) => {{
                let mut builder = <$builder>::new().with_url(address.url.as_str()).with_retry(retry);
                for (name, value) in &address.options {
                    // The environment also has variables of other programs.
                    if let Ok(key) = name.parse() {
                        builder = builder.with_config(key, value.as_str());
                    }
                }
                Box::new(builder.build().map_err(refused)?)
            }};
        }
        let store: Box<dyn ObjectStore> = match address.service {
            "gs" => built!(GoogleCloudStorageBuilder),
            "az" => built!(MicrosoftAzureBuilder),
            _ => built!(AmazonS3Builder),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("artifact-connections")
            .enable_all()
            .build()
            .map_err(|error| StoreError::Database {
                what: "starting a thread for connections",
                source: Box::new(error),
            })?;
        let client = BucketClient { store, shown: address.url.clone(), runtime: Some(runtime) };
        Ok(Self { client: Arc::new(client), base: ObjectPath::from(address.prefix.as_str()) })
    }

    /// Returns the bucket restricted to a name in it.
    pub(crate) fn under(&self, name: &str) -> Self {
        let base = name.split('/').fold(self.base.clone(), |base, part| base.join(part));
        Self { client: Arc::clone(&self.client), base }
    }

    /// The name of an artifact below the prefix.
    pub(crate) fn name_of(id: &ArtifactId) -> String {
        let name = id.as_str();
        format!("{}/{name}.zst", name.get(..2).unwrap_or("__"))
    }

    /// Returns the location of an object, for users.
    pub(crate) fn shown(&self, name: &str) -> String {
        let service = self.client.shown.split("://").next().unwrap_or_default();
        let bucket = self.client.shown.split('/').nth(2).unwrap_or_default();
        format!("{service}://{bucket}/{}", self.at(name))
    }

    fn at(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.base.clone(), |path, part| path.join(part))
    }

    fn wait<F: Future>(&self, future: F) -> F::Output {
        // Timers and sockets belong to the runtime of the connections, whichever thread waits.
        let _context = self.client.runtime.as_ref().map(Runtime::enter);
        pollster::block_on(future)
    }

    fn failure(&self, error: &ObjectError) -> StoreError {
        StoreError::ArtifactsUnreachable { place: self.client.shown.clone(), problem: problem_words(error) }
    }

    /// Stores a text, unless it is stored already. The service has it when this returns.
    pub(crate) fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)> {
        let id = ArtifactId::of(text.as_bytes());
        match self.stat(&id) {
            Ok(present) if present.bytes == text.len() as u64 => return Ok((id, present)),
            Ok(_) | Err(StoreError::ArtifactDamaged { .. }) => {}
            Err(other) => return Err(other),
        }
        let mut packed = Vec::new();
        let table = write_frames(text, &mut packed)
            .map_err(|error| StoreError::Database { what: "packing a text", source: Box::new(error) })?;
        self.write(&Self::name_of(&id), packed)?;
        let stored_bytes = table.file_bytes();
        Ok((id, ArtifactFile { bytes: table.text_bytes(), lines: table.lines(), stored_bytes }))
    }

    /// Returns the sizes of an artifact.
    pub(crate) fn stat(&self, id: &ArtifactId) -> Result<ArtifactFile> {
        let ObjectTail { table, .. } = self.tail(id)?;
        let stored_bytes = table.file_bytes();
        Ok(ArtifactFile { bytes: table.text_bytes(), lines: table.lines(), stored_bytes })
    }

    /// Reads a piece, as far as the text has it.
    pub(crate) fn read(&self, id: &ArtifactId, range: ArtifactRange) -> Result<String> {
        let tail = self.tail(id)?;
        let text = read_piece(&tail.table, range, |frames| {
            let start = tail.table.offset_of(frames.start);
            let wanted = tail.table.frames().get(frames).unwrap_or_default();
            let bytes = wanted.iter().map(|frame| u64::from(frame.packed_bytes)).sum::<u64>();
            let text = match start.checked_sub(tail.start).and_then(|at| usize::try_from(at).ok()) {
                _ if bytes == 0 => Some(String::new()),
                Some(at) => tail.bytes.get(at..).and_then(|packed| unpack_frames(packed, wanted)),
                None => {
                    let location = self.at(&Self::name_of(id));
                    let packed = self.wait(self.client.store.get_range(&location, start..start + bytes));
                    unpack_frames(&packed.map_err(|error| self.failure(&error))?, wanted)
                }
            };
            text.ok_or_else(|| self.damaged(id, "damaged"))
        })?;
        match range {
            ArtifactRange::All if &ArtifactId::of(text.as_bytes()) != id => {
                Err(self.damaged(id, "not what its name says"))
            }
            _ => Ok(text),
        }
    }

    fn tail(&self, id: &ArtifactId) -> Result<ObjectTail> {
        let location = self.at(&Self::name_of(id));
        let short = || self.damaged(id, "cut short or not an artifact");
        let (bytes, start, size) = match self.wait(self.end_of(&location, TAIL_BYTES)) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Err(self.damaged(id, "missing")),
            Err(error) => return Err(self.failure(&error)),
        };
        let trailer = bytes.last_chunk::<TRAILER_BYTES>().ok_or_else(short)?;
        let table_bytes =
            FrameTable::encoded_bytes(trailer).filter(|&bytes| bytes <= size).ok_or_else(short)?;
        let (bytes, start) = match table_bytes <= bytes.len() as u64 {
            true => (bytes, start),
            false => {
                let longer = self.wait(self.client.store.get_range(&location, size - table_bytes..size));
                (longer.map_err(|error| self.failure(&error))?.to_vec(), size - table_bytes)
            }
        };
        let encoded = usize::try_from(table_bytes).ok().and_then(|count| bytes.len().checked_sub(count));
        let table = encoded.and_then(|at| bytes.get(at..)).and_then(FrameTable::decode);
        let table = table.filter(|table| table.file_bytes() == size).ok_or_else(short)?;
        Ok(ObjectTail { table, bytes, start })
    }

    /// Returns the last bytes of an object, their offset, and the size of the object.
    async fn end_of(
        &self,
        location: &ObjectPath,
        count: u64,
    ) -> std::result::Result<(Vec<u8>, u64, u64), ObjectError> {
        let store = &self.client.store;
        let range = |range| GetOptions { range: Some(range), ..GetOptions::default() };
        let found = match store.get_opts(location, range(GetRange::Suffix(count))).await {
            // Azure supports only offsets from the beginning.
            Err(ObjectError::NotSupported { .. }) => {
                let size = store.head(location).await?.size;
                store.get_opts(location, range(GetRange::Bounded(size.saturating_sub(count)..size))).await?
            }
            other => other?,
        };
        let (start, size) = (found.range.start, found.meta.size);
        Ok((found.bytes().await?.to_vec(), start, size))
    }

    /// Lists everything under the prefix.
    pub(crate) fn list(&self) -> Result<Vec<BucketEntry>> {
        let prefix = self.base.to_string();
        self.wait(async {
            let mut entries = Vec::new();
            let mut listed = self.client.store.list(Some(&self.base));
            while let Some(object) = listed.next().await {
                let object = object.map_err(|error| self.failure(&error))?;
                let name = object.location.to_string();
                let name = name.strip_prefix(&prefix).unwrap_or(&name).trim_start_matches('/').to_owned();
                let modified_ms = object.last_modified.timestamp_millis();
                entries.push(BucketEntry { name, bytes: object.size, modified_ms });
            }
            Ok(entries)
        })
    }

    /// Removes an object. A missing one is not an error.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match self.wait(self.client.store.delete(&self.at(name))) {
            Err(error) if !is_missing(&error) => Err(self.failure(&error)),
            _ => Ok(()),
        }
    }

    /// Returns a small object as text; `None` if there is none.
    pub(crate) fn text_of(&self, name: &str) -> Result<Option<String>> {
        let location = self.at(name);
        let read = async { self.client.store.get(&location).await?.bytes().await };
        match self.wait(read) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Writes a small object, unless one of this name exists.
    pub(crate) fn write_new(&self, name: &str, text: &str) -> Result<()> {
        let location = self.at(name);
        let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.client.store.put_opts(&location, text.to_owned().into(), create);
        match self.wait(put) {
            Ok(_) | Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => Ok(()),
            // Not every S3-compatible service supports conditions.
            Err(ObjectError::NotImplemented { .. } | ObjectError::NotSupported { .. }) => {
                self.write(name, text.as_bytes().to_vec())
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn write(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let put = self.wait(self.client.store.put(&self.at(name), bytes.into()));
        put.map(drop).map_err(|error| self.failure(&error))
    }

    fn damaged(&self, id: &ArtifactId, problem: &str) -> StoreError {
        StoreError::ArtifactDamaged {
            id: id.as_str().to_owned(),
            problem: problem.to_owned(),
            path: self.shown(&Self::name_of(id)).into(),
        }
    }
}

/// Whether an object is missing, rather than the bucket.
fn is_missing(error: &ObjectError) -> bool {
    matches!(error, ObjectError::NotFound { .. }) && !crate::artifacts::bucket_error::is_no_bucket(error)
}
