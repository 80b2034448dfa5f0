//! Reads recorded sessions from a folder. The folder is an argument and never part of this repository.

use std::io::Read;
use std::path::{Path, PathBuf};

use throughline_transcript::{DecodeError, DecodeOptions, Transcript, decode};

/// A session with the name of its file.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) transcript: Transcript,
}

/// The files of a folder, sorted by name.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("recorded sessions not found: {} ({error})", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

/// Reads a file, decompressed if necessary.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let packed = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return Ok(packed);
    }
    let mut bytes = Vec::new();
    let mut unpacker = flate2::read::MultiGzDecoder::new(packed.as_slice());
    unpacker.read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Reads all sessions of a folder, including each session of a file with several.
pub(crate) fn sessions(folder: &Path) -> Result<Vec<Recorded>, String> {
    let mut found = Vec::new();
    for path in files(folder)? {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = read(&path)?;
        match decode(bytes.clone(), &DecodeOptions::default()) {
            Ok(transcript) => found.push(Recorded { name, transcript }),
            Err(DecodeError::Several { count }) => {
                for number in 1..=count {
                    let options = DecodeOptions { pick: Some(number), ..DecodeOptions::default() };
                    let name = format!("{}-{number}.{name}", name.split('.').next().unwrap_or_default());
                    let transcript = decode(bytes.clone(), &options).map_err(|e| format!("{name}: {e}"))?;
                    found.push(Recorded { name, transcript });
                }
            }
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    Ok(found)
}
