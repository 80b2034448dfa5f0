//! Logs of generated conversations, imported while they are being written: wherever an import happens, the last one has
//! everything, nothing is recorded twice, and what comes out is what went in.

#![expect(clippy::expect_used, reason = "helpers of a test fail it by panicking")]

use std::fs;
use std::path::Path;

use throughline_store::{
    Dependants, EndReason, Export, ExportForm, ExportOptions, ExportSide, IdLength, ImportCounts,
    ImportReport, Importer, MemoryStore, Millis, Owner, Session, SessionFilter, SessionId, Store,
};
use throughline_testkit::{
    ConversationOptions, Rng, claude_code_log, codex_log, conversation_from_seed, mutate,
};
use throughline_transcript::{DecodeOptions, Transcript, WireFormat};

struct World {
    store: MemoryStore,
    folder: tempfile::TempDir,
    drawn: u32,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { store: MemoryStore::new(), folder, drawn: 0 }
    }

    fn import(&mut self, log: &[u8]) -> ImportReport {
        let path = self.folder.path().join("log.jsonl");
        fs::write(&path, log).expect("a file can be written");
        self.import_path(&path)
    }

    fn import_path(&mut self, path: &Path) -> ImportReport {
        let drawn = &mut self.drawn;
        let mut new_id = |at_ms: Millis| {
            *drawn += 1;
            SessionId::new(at_ms, *drawn, IdLength::Gateway)
        };
        let mut report = ImportReport::default();
        let mut importer = Importer::new(&self.store, Owner::default(), &mut new_id, |_| None);
        importer.import_path(path, &mut report, &mut |_| {}).expect("the record can be written");
        report
    }

    fn tips(&self) -> Vec<Session> {
        let filter = SessionFilter { include_attached: true, ..SessionFilter::default() };
        let listed = self.store.conversations(&Owner::default(), &filter).expect("conversations are listed");
        listed.into_iter().map(|conversation| conversation.tip).collect()
    }

    fn lines_of(&self, tip: &Session) -> Vec<String> {
        let options = ExportOptions { side: ExportSide::Said, form: ExportForm::Lines, redactor: None };
        let text =
            Export::of(&self.store, &Owner::default(), &tip.id, &options).expect("it is exported").text;
        text.lines().map(str::to_owned).collect()
    }
}

fn log_of(wire_format: WireFormat, seed: u64) -> String {
    let generated = conversation_from_seed(&ConversationOptions::new(wire_format).at_most_units(8), seed);
    match wire_format {
        WireFormat::Anthropic => claude_code_log(&generated, seed),
        _ => codex_log(&generated, seed),
    }
}

fn messages_of(log: &str) -> Vec<String> {
    Transcript::decode(log.as_bytes().to_vec(), &DecodeOptions::default())
        .map(|transcript| transcript.messages.iter().map(|message| message.json().to_owned()).collect())
        .unwrap_or_default()
}

#[test]
fn whenever_a_log_is_imported_the_last_import_has_everything() {
    let (mut branched, mut grown) = (0, 0);
    for wire_format in [WireFormat::Anthropic, WireFormat::Responses] {
        for seed in 0..60 {
            let log = log_of(wire_format, seed);
            let expected = messages_of(&log);
            if expected.is_empty() {
                continue;
            }
            let mut world = World::new();
            let mut rng = Rng::new(seed);
            let mut cuts: Vec<usize> = (0..3).map(|_| rng.below(log.len() + 1)).collect();
            cuts.sort_unstable();
            for cut in cuts {
                world.import(&log.as_bytes()[..cut]);
            }
            let last = world.import(log.as_bytes());
            assert_eq!(last.failures().count(), 0, "{wire_format} {seed}");
            branched += last.totals().branched;
            grown += last.totals().grown;
            let has_all = world.tips().iter().any(|tip| world.lines_of(tip) == expected);
            assert!(has_all, "{wire_format} {seed}: no conversation has everything");
            let again = world.import(log.as_bytes()).totals();
            let nothing = ImportCounts { unchanged: again.unchanged, ..ImportCounts::default() };
            assert_eq!(again, nothing, "{wire_format} {seed}");
        }
    }
    assert!(branched > 0 && grown > 0, "both ways of going on were met: {branched} {grown}");
}

#[test]
fn a_log_that_is_imported_whole_answers_is_never_branched() {
    for seed in 0..60 {
        let generated =
            conversation_from_seed(&ConversationOptions::new(WireFormat::Responses).at_most_units(8), seed);
        let log = codex_log(&generated, seed);
        let mut world = World::new();
        let mut recorded = 0;
        for end in log.match_indices('\n').map(|(at, _)| at + 1) {
            let counts = world.import(&log.as_bytes()[..end]).totals();
            assert_eq!(counts.branched, 0, "{seed}");
            recorded += counts.messages;
        }
        assert_eq!(recorded, messages_of(&log).len() as u64, "each message once");
    }
}

#[test]
fn damaged_logs_are_recorded_as_far_as_they_are_read() {
    let mut rng = Rng::new(7);
    for seed in 0..150 {
        let wire_format = if seed % 2 == 0 { WireFormat::Anthropic } else { WireFormat::Responses };
        let damaged = mutate(log_of(wire_format, seed).as_bytes(), &mut rng);
        let mut world = World::new();
        let first = world.import(&damaged).totals();
        let again = world.import(&damaged).totals();
        assert_eq!((again.messages, again.calls, again.new), (0, 0, 0), "{seed}");
        assert_eq!(again.unchanged, first.new + first.branched + first.grown + first.unchanged, "{seed}");
    }
}

#[test]
fn what_is_deleted_is_imported_anew() {
    let log = log_of(WireFormat::Responses, 3);
    let mut world = World::new();
    let first = world.import(log.as_bytes()).totals();
    let tip = world.tips().pop().expect("a conversation");
    world.store.end_session(&Owner::default(), &tip.id, &EndReason::NEW, 1).expect("it can be ended");
    world.store.delete(&Owner::default(), &tip.id, Dependants::Delete).expect("it can be deleted");
    assert_eq!(world.import(log.as_bytes()).totals(), first);
}
