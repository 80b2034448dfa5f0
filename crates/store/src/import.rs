//! Imports the histories of other programs into the record: Claude Code, Codex, Hermes, and plain transcripts.
//!
//! Importing again adds only new data. A bad file does not prevent reading the others, and an interrupted import has recorded everything up
//! to that point. Nothing is redacted: the record is complete. The files are never changed.
//!
//! Not for: finding the home directory (the caller passes it), or showing progress (the caller receives it).

mod calls;
mod claude_code;
mod codex;
mod conversation;
mod files;
mod hermes;
mod hermes_messages;
mod hermes_rows;
#[cfg(test)]
mod hermes_testing;
mod plain;
mod recorder;
mod report;
#[cfg(test)]
mod testing;
mod views;

use std::collections::HashSet;
use std::path::Path;

use serde_json::value::RawValue;
use throughline_tokens::Catalogue;
use throughline_transcript::{DecodeError, DecodeOptions, Message, Note, Source, Transcript, decode};

use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::store::Store;

use conversation::{FindSummary, ForeignConversation};
use files::{ListedBy, ListedFile};
use hermes::HermesDatabase;
use recorder::Recorder;

pub use report::{FileOutcome, FileReport, ImportCounts, ImportEvent, ImportReport};

/// Imports histories into a record.
pub struct Importer<'a> {
    recorder: Recorder<'a>,
    find_summary: FindSummary,
    now_ms: Option<Millis>,
}

/// Why a file was not read completely.
enum ImportFailure {
    /// The file is bad; the next one may be fine.
    File(String),
    /// The file has no conversation.
    Nothing(String),
    /// The record failed: nothing more can be written.
    Record(StoreError),
}

impl From<StoreError> for ImportFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::SessionEnded { .. }
            | StoreError::SessionExists { .. }
            | StoreError::UnknownMessage { .. }
            | StoreError::UnknownSession { .. }
            | StoreError::ViewRefused { .. } => Self::File(reason_of(&error)),
            other => Self::Record(other),
        }
    }
}

impl<'a> Importer<'a> {
    /// Creates an importer for an owner. `new_id` creates ids of sessions from their start time. `find_summary` returns the document of a
    /// message that is a summary; Hermes records its summaries as plain messages.
    pub fn new(
        store: &'a dyn Store,
        owner: Owner,
        new_id: &'a mut dyn FnMut(Millis) -> SessionId,
        find_summary: fn(&Message) -> Option<String>,
    ) -> Self {
        let recorder = Recorder { store, owner, new_id, catalogue: Catalogue::shipped() };
        Self { recorder, find_summary, now_ms: None }
    }

    /// Prices calls by this catalogue instead of the shipped one.
    #[must_use]
    pub fn priced_by(mut self, catalogue: Catalogue) -> Self {
        self.recorder.catalogue = catalogue;
        self
    }

    /// Sets the current time. Answers that are still being written are then left for the next import.
    #[must_use]
    pub fn at(mut self, now_ms: Millis) -> Self {
        self.now_ms = Some(now_ms);
        self
    }

    /// Imports a file, or the files below a folder, and adds the results to `report`. Fails only if the record cannot be written; `report`
    /// then has the results up to that point.
    pub fn import_path(
        &mut self,
        path: &Path,
        report: &mut ImportReport,
        on_event: &mut dyn FnMut(ImportEvent<'_>),
    ) -> Result<()> {
        let files::Listing { files: listed, unreadable } = files::list(path);
        for (path, source) in unreadable {
            let mut file = FileReport::of(&path);
            file.outcome = FileOutcome::Failed(format!("it cannot be read: {source}"));
            on_event(ImportEvent::Ended(&file));
            report.files.push(file);
        }
        on_event(ImportEvent::Listed { files: listed.len() });
        let mut run = ImportRun { listed: &listed, begun: HashSet::new(), report, on_event };
        (0..listed.len()).try_for_each(|number| self.import_listed(number, &mut run))
    }

    fn import_listed(&mut self, number: usize, run: &mut ImportRun<'_>) -> Result<()> {
        let Some(listed) = run.listed.get(number).filter(|_| run.begun.insert(number)) else { return Ok(()) };
        (run.on_event)(ImportEvent::Began { path: &listed.path, number: number + 1, of: run.listed.len() });
        let mut file = FileReport::of(&listed.path);
        let outcome = self.import_file(listed, &mut file, run);
        file.outcome = match &outcome {
            Ok(()) => FileOutcome::Imported,
            Err(ImportFailure::Nothing(reason)) if listed.asked == ListedBy::ByFolder => {
                FileOutcome::Skipped(reason.clone())
            }
            Err(ImportFailure::Nothing(reason) | ImportFailure::File(reason)) => {
                FileOutcome::Failed(reason.clone())
            }
            Err(ImportFailure::Record(error)) => FileOutcome::Failed(reason_of(error)),
        };
        (run.on_event)(ImportEvent::Ended(&file));
        run.report.files.push(file);
        match outcome {
            Err(ImportFailure::Record(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn import_file(
        &mut self,
        listed: &ListedFile,
        file: &mut FileReport,
        run: &mut ImportRun<'_>,
    ) -> std::result::Result<(), ImportFailure> {
        let unreadable = |error: StoreError| ImportFailure::File(reason_of(&error));
        let path = &listed.path;
        if files::is_database(path).map_err(unreadable)? {
            return self.import_hermes(path, file, run);
        }
        let fallback_ms = files::written_ms(path).unwrap_or_default();
        let files::FileText { bytes, break_off } = files::read(path, &mut file.notes).map_err(unreadable)?;
        let conversations = match decoded(bytes)? {
            DecodedFile::One(transcript) => {
                file.notes.extend(transcript.notes.iter().filter(|note| is_lost(note)).cloned());
                conversations_of(&transcript, path, fallback_ms, file)
            }
            DecodedFile::Several(documents) => {
                file.program = Some(plain::PROGRAM);
                let key = plain::key_of(path);
                let mut found = Vec::with_capacity(documents.len());
                for (index, document) in documents.into_iter().enumerate() {
                    match decode(document.into_bytes(), &DecodeOptions::default()) {
                        Ok(transcript) => {
                            let key = format!("{key}#{}", index + 1);
                            found.push(plain::conversation(&transcript, key, fallback_ms));
                        }
                        Err(error) => file.note(format!("conversation {}: {error}", index + 1)),
                    }
                }
                found
            }
        };
        if conversations.iter().all(|foreign| foreign.messages.is_empty()) {
            return Err(ImportFailure::Nothing("there is no message in it".to_owned()));
        }
        let of = conversations.len();
        for (index, foreign) in conversations.into_iter().enumerate() {
            self.import_related(&foreign, run)?;
            self.record(foreign, file)?;
            if of > 1 {
                (run.on_event)(ImportEvent::Recorded { conversations: index + 1, of });
            }
        }
        // Reported after everything before it was recorded.
        break_off.map_or(Ok(()), |how| Err(ImportFailure::File(how)))
    }

    /// Imports first the conversations on which this one depends, if they are among the files.
    fn import_related(
        &mut self,
        foreign: &ForeignConversation,
        run: &mut ImportRun<'_>,
    ) -> std::result::Result<(), ImportFailure> {
        let attached_to = foreign.attached_to.as_ref().map(|attached| &attached.key);
        for key in foreign.copied_from.iter().chain(attached_to) {
            if self.recorder.knows(foreign.program, key)? {
                continue;
            }
            let is_named =
                |listed: &ListedFile| !key.is_empty() && files::stem(&listed.path).ends_with(key.as_str());
            if let Some(number) = run.listed.iter().position(is_named) {
                self.import_listed(number, run).map_err(ImportFailure::Record)?;
            }
        }
        Ok(())
    }

    fn import_hermes(
        &mut self,
        path: &Path,
        file: &mut FileReport,
        run: &mut ImportRun<'_>,
    ) -> std::result::Result<(), ImportFailure> {
        let database = HermesDatabase::open(path).map_err(ImportFailure::File)?;
        file.program = Some(hermes::PROGRAM);
        for number in 0..database.len() {
            let (foreign, notes) =
                database.conversation(number, self.find_summary).map_err(ImportFailure::File)?;
            let key = foreign.key.clone();
            notes.into_iter().for_each(|note| file.note(format!("{key}: {note}")));
            if !foreign.messages.is_empty() {
                self.record(foreign, file)?;
            }
            (run.on_event)(ImportEvent::Recorded { conversations: number + 1, of: database.len() });
        }
        Ok(())
    }

    fn record(
        &mut self,
        mut foreign: ForeignConversation,
        file: &mut FileReport,
    ) -> std::result::Result<(), ImportFailure> {
        // A plain transcript is complete: no program appends to it.
        if foreign.program != plain::PROGRAM {
            file.counts.held_back += foreign.hold_back_open_answer(self.now_ms) as u64;
        }
        if foreign.messages.is_empty() {
            return Ok(());
        }
        Ok(self.recorder.record(&foreign, &mut file.counts)?)
    }
}

/// One run over the files of a path.
struct ImportRun<'a> {
    listed: &'a [ListedFile],
    /// The numbers of files that were started.
    begun: HashSet<usize>,
    report: &'a mut ImportReport,
    on_event: &'a mut dyn FnMut(ImportEvent<'_>),
}

fn conversations_of(
    transcript: &Transcript,
    path: &Path,
    fallback_ms: Millis,
    file: &mut FileReport,
) -> Vec<ForeignConversation> {
    match transcript.source {
        Source::ClaudeCodeLog => {
            file.program = Some(claude_code::PROGRAM);
            claude_code::conversations(transcript, files::stem(path), fallback_ms)
        }
        Source::CodexLog => {
            file.program = Some(codex::PROGRAM);
            codex::conversation(transcript, files::stem(path), fallback_ms).into_iter().collect()
        }
        Source::List | Source::Body | Source::Lines => {
            file.program = Some(plain::PROGRAM);
            vec![plain::conversation(transcript, plain::key_of(path), fallback_ms)]
        }
    }
}

/// Whether a note concerns something that is not recorded; compactions and sub-agents are.
fn is_lost(note: &Note) -> bool {
    note.text != Note::COMPACTION && !note.text.starts_with(Note::SUB_AGENTS)
}

enum DecodedFile {
    One(Box<Transcript>),
    /// Documents with one conversation each.
    Several(Vec<String>),
}

fn decoded(bytes: Vec<u8>) -> std::result::Result<DecodedFile, ImportFailure> {
    match decode(bytes.clone(), &DecodeOptions::default()) {
        Ok(transcript) => Ok(DecodedFile::One(Box::new(transcript))),
        Err(DecodeError::Several { .. }) => Ok(DecodedFile::Several(parts_of(&bytes))),
        Err(error @ (DecodeError::Empty | DecodeError::NotAConversation(_))) => {
            Err(ImportFailure::Nothing(error.to_string()))
        }
        Err(error) => Err(ImportFailure::File(error.to_string())),
    }
}

/// Splits a collection, an array or lines, into documents with one conversation each.
fn parts_of(bytes: &[u8]) -> Vec<String> {
    match serde_json::from_slice::<Vec<&RawValue>>(bytes) {
        Ok(elements) => elements.into_iter().map(|element| element.get().to_owned()).collect(),
        Err(_) => {
            let text = String::from_utf8_lossy(bytes);
            text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
        }
    }
}

/// Formats an error and its causes in one line.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(": ");
        reason.push_str(&cause.to_string());
        source = cause.source();
    }
    reason
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
