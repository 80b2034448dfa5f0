//! The stored encoding of a message: plain, compressed, or with large tool results cut out and stored as artifacts.
//! Decoding returns exactly the original bytes. The same in every database.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;

use throughline_transcript::Message;

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::extract::{EscapeStyle, artifact_texts};
use crate::artifacts::folder::ArtifactFile;
use crate::error::{Result, StoreError};

/// The JSON, unchanged.
const PLAIN: i64 = 0;
/// One zstd frame of the JSON.
const COMPRESSED: i64 = 1;
/// A list of positions, then the JSON without the texts of its artifacts.
const SPLICED: i64 = 2;
/// The same, with the JSON compressed.
const SPLICED_COMPRESSED: i64 = 3;

/// Compressing shorter bodies saves too little.
const COMPRESS_FROM_BYTES: usize = 1024;
const COMPRESSION_LEVEL: i32 = 3;
/// The maximum size of a body: offsets inside a message have 32 bits.
const MAX_BODY_BYTES: usize = u32::MAX as usize;

/// Access to the texts of artifacts.
pub(crate) trait ArtifactTexts {
    /// Stores a text, unless it is stored already.
    fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)>;
    /// Returns a whole text.
    fn text(&self, id: &ArtifactId) -> Result<String>;
}

/// A message ready to be written.
#[derive(Debug)]
pub(crate) struct PackedBody<'a> {
    /// The coding of `bytes`.
    pub(crate) coding: i64,
    /// The value of the column.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Texts that were stored as artifacts; the row refers to them.
    pub(crate) artifacts: Vec<PackedArtifact<'a>>,
}

/// A text that was cut out of a message.
#[derive(Debug)]
pub(crate) struct PackedArtifact<'a> {
    /// Its name.
    pub(crate) id: ArtifactId,
    /// The text.
    pub(crate) text: Cow<'a, str>,
    /// Its file.
    pub(crate) file: ArtifactFile,
}

/// A body without the texts of its artifacts.
pub(crate) struct Skeleton<'a> {
    /// The JSON, with empty strings in place of those texts.
    pub(crate) json: Cow<'a, str>,
    places: Vec<TextSlot>,
}

struct TextSlot {
    /// The offset of the text in the skeleton.
    at: usize,
    style: EscapeStyle,
    id: ArtifactId,
}

/// Encodes the body of a message. Texts that become artifacts are stored when this returns; call it inside the transaction that writes the
/// row, so that no clean-up removes them in between.
pub(crate) fn pack<'a>(message: &'a Message, artifacts: &dyn ArtifactTexts) -> Result<PackedBody<'a>> {
    let json = message.json();
    let texts = artifact_texts(message);
    if texts.is_empty() {
        return Ok(match compress(json.as_bytes()) {
            Some(bytes) => PackedBody { coding: COMPRESSED, bytes: Cow::Owned(bytes), artifacts: Vec::new() },
            None => {
                PackedBody { coding: PLAIN, bytes: Cow::Borrowed(json.as_bytes()), artifacts: Vec::new() }
            }
        });
    }
    let mut skeleton = String::new();
    let mut places = Vec::new();
    let mut packed = Vec::new();
    let mut copied_to = 0;
    for text in texts {
        let (start, end) = (text.string.span.start as usize, text.string.span.end as usize);
        skeleton.push_str(json.get(copied_to..start).unwrap_or_default());
        copied_to = end;
        let (id, file) = artifacts.put(&text.text)?;
        places.push(TextSlot { at: skeleton.len(), style: text.style, id: id.clone() });
        packed.push(PackedArtifact { id, text: text.text, file });
    }
    skeleton.push_str(json.get(copied_to..).unwrap_or_default());
    let mut bytes = encode_places(&places);
    let coding = match compress(skeleton.as_bytes()) {
        Some(compressed) => {
            bytes.extend_from_slice(&compressed);
            SPLICED_COMPRESSED
        }
        None => {
            bytes.extend_from_slice(skeleton.as_bytes());
            SPLICED
        }
    };
    Ok(PackedBody { coding, bytes: Cow::Owned(bytes), artifacts: packed })
}

/// Decodes the JSON of a message from its row.
pub(crate) fn unpack(coding: i64, bytes: &[u8], artifacts: &dyn ArtifactTexts) -> Result<String> {
    let skeleton = unpack_skeleton(coding, bytes)?;
    if skeleton.places.is_empty() {
        return Ok(skeleton.json.into_owned());
    }
    let mut json = String::new();
    let mut copied_to = 0;
    for place in &skeleton.places {
        json.push_str(skeleton.json.get(copied_to..place.at).ok_or_else(not_a_body)?);
        copied_to = place.at;
        place.style.write(&artifacts.text(&place.id)?, &mut json);
    }
    json.push_str(skeleton.json.get(copied_to..).ok_or_else(not_a_body)?);
    Ok(json)
}

/// Returns the artifacts whose texts were cut out of a row.
#[cfg(feature = "postgres")]
pub(crate) fn artifacts_of(coding: i64, bytes: &[u8]) -> Vec<ArtifactId> {
    match coding {
        SPLICED | SPLICED_COMPRESSED => {
            let places = decode_places(bytes).map(|(places, _)| places).unwrap_or_default();
            places.into_iter().map(|place| place.id).collect()
        }
        _ => Vec::new(),
    }
}

/// Decodes the JSON of a message without the texts stored as artifacts: enough for searching what its own row was indexed by.
pub(crate) fn unpack_skeleton(coding: i64, bytes: &[u8]) -> Result<Skeleton<'_>> {
    let (places, rest) = match coding {
        SPLICED | SPLICED_COMPRESSED => decode_places(bytes).ok_or_else(not_a_body)?,
        _ => (Vec::new(), bytes),
    };
    let json = match coding {
        PLAIN | SPLICED => Cow::Borrowed(std::str::from_utf8(rest).map_err(|_| not_a_body())?),
        COMPRESSED | SPLICED_COMPRESSED => {
            let json = decompress(rest).ok_or_else(not_a_body)?;
            Cow::Owned(String::from_utf8(json).map_err(|_| not_a_body())?)
        }
        _ => return Err(not_a_body()),
    };
    Ok(Skeleton { json, places })
}

fn encode_places(places: &[TextSlot]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&u32::try_from(places.len()).unwrap_or(u32::MAX).to_le_bytes());
    for place in places {
        out.extend_from_slice(&u32::try_from(place.at).unwrap_or(u32::MAX).to_le_bytes());
        out.push(place.style.code());
        out.push(u8::try_from(place.id.as_str().len()).unwrap_or(u8::MAX));
        out.extend_from_slice(place.id.as_str().as_bytes());
    }
    out
}

fn decode_places(bytes: &[u8]) -> Option<(Vec<TextSlot>, &[u8])> {
    let (count, mut rest) = bytes.split_first_chunk::<4>()?;
    let mut places = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (at, after) = rest.split_first_chunk::<4>()?;
        let (&[style, id_bytes], after) = after.split_first_chunk::<2>()?;
        let (id, after) = after.split_at_checked(usize::from(id_bytes))?;
        places.push(TextSlot {
            at: u32::from_le_bytes(*at) as usize,
            style: EscapeStyle::from_code(style)?,
            id: ArtifactId::from_text(std::str::from_utf8(id).ok()?),
        });
        rest = after;
    }
    Some((places, rest))
}

thread_local! {
    /// Creating a compressor costs more than compressing a message.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Returns the compressed form, if it is smaller by at least an eighth.
fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < COMPRESS_FROM_BYTES {
        return None;
    }
    let packed = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).ok();
        }
        slot.as_mut()?.compress(bytes).ok()
    })?;
    (packed.len() <= bytes.len() - bytes.len() / 8).then_some(packed)
}

fn decompress(packed: &[u8]) -> Option<Vec<u8>> {
    let size = zstd::zstd_safe::get_frame_content_size(packed).ok()??;
    let size = usize::try_from(size).ok().filter(|&size| size <= MAX_BODY_BYTES)?;
    DECOMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Decompressor::new().ok();
        }
        slot.as_mut()?.decompress(packed, size).ok()
    })
}

fn not_a_body() -> StoreError {
    StoreError::Damaged {
        path: Path::new("record.db").to_path_buf(),
        problem: "a message's bytes cannot be read".to_owned(),
    }
}

#[cfg(test)]
#[path = "message_codec_tests.rs"]
mod tests;
