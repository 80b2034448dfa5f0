//! Tests of the parts around the messages, with and without a note about a summary.

use throughline_compaction::SYSTEM_NOTE;
use throughline_provider::{CachePolicy, CacheSeller, CacheTtl};
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::{Request, RequestParts, System};

use super::{CurrentEnvelope, Envelope, SystemNote};

fn envelope(wire_format: WireFormat, system: System<'_>) -> Envelope {
    let parts = RequestParts { system: Some(system), ..RequestParts::new("m") };
    Envelope::build(wire_format, &parts).unwrap()
}

fn marks(wire_format: WireFormat) -> CachePolicy {
    let seller =
        if wire_format == WireFormat::Chat { CacheSeller::OpenRouter } else { CacheSeller::Anthropic };
    CachePolicy::of(seller, wire_format, "claude-x", CacheTtl::FiveMinutes)
}

fn noted(envelope: &Envelope, cache: CachePolicy) -> (String, usize) {
    let (system, notes) = envelope.noted_system(SystemNote::Compacted, cache);
    (system.unwrap().into_owned(), notes)
}

#[test]
fn the_note_is_a_block_of_its_own_where_blocks_are_cached() {
    let block =
        |text: &str| format!("{{\"type\":\"text\",\"text\":{}}}", serde_json::to_string(text).unwrap());
    let two = format!("[{},{}]", block("Be brief."), block(SYSTEM_NOTE));
    let blocks = block("Be brief.");
    let list = format!("[{blocks}]");
    for wire_format in [WireFormat::Anthropic, WireFormat::Chat] {
        let text = envelope(wire_format, System::Text("Be brief."));
        assert_eq!(noted(&text, marks(wire_format)), (two.clone(), 1), "{wire_format}");
        let blocks = envelope(wire_format, System::Blocks(RawJson(&list)));
        assert_eq!(noted(&blocks, marks(wire_format)), (two.clone(), 1), "{wire_format}");
    }
}

#[test]
fn a_blank_system_prompt_becomes_no_blank_block() {
    let blank = envelope(WireFormat::Anthropic, System::Text(" "));
    let (system, notes) = noted(&blank, marks(WireFormat::Anthropic));
    assert_eq!((system, notes), (serde_json::to_string(&format!("\n\n{SYSTEM_NOTE}")).unwrap(), 0));
}

#[test]
fn elsewhere_the_note_is_the_end_of_the_text() {
    let joined = serde_json::to_string(&format!("Be brief.\n\n{SYSTEM_NOTE}")).unwrap();
    for wire_format in [WireFormat::Chat, WireFormat::Responses] {
        let text = envelope(wire_format, System::Text("Be brief."));
        assert_eq!(noted(&text, CachePolicy::Unmarked), (joined.clone(), 0), "{wire_format}");
    }
}

#[test]
fn without_a_summary_nothing_is_noted() {
    for wire_format in WireFormat::ALL {
        let text = envelope(wire_format, System::Text("Be brief."));
        let (system, notes) = text.noted_system(SystemNote::None, marks(wire_format));
        assert_eq!((system.as_deref(), notes), (Some("\"Be brief.\""), 0), "{wire_format}");
    }
    let bare =
        Envelope::of_request(Request::decode(WireFormat::Chat, br#"{"model":"m","messages":[]}"#).unwrap());
    assert_eq!(bare.noted_system(SystemNote::Compacted, CachePolicy::Unmarked), (None, 0));
}

#[test]
fn what_is_known_changes_with_the_envelope_and_only_then() {
    let mut known = CurrentEnvelope::default();
    known.update(&envelope(WireFormat::Chat, System::Text("Be brief.")));
    let (first, size) = (known.preamble().unwrap().1.clone(), *known.profile());
    known.update(&envelope(WireFormat::Chat, System::Text("Be brief.")));
    assert_eq!(known.preamble().unwrap().1, first);
    // A parameter changes the preamble but not its size.
    let parts = RequestParts {
        system: Some(System::Text("Be brief.")),
        parameters: &[("temperature", "0.5")],
        ..RequestParts::new("m")
    };
    known.update(&Envelope::build(WireFormat::Chat, &parts).unwrap());
    assert_ne!(known.preamble().unwrap().1, first);
    assert_eq!(*known.profile(), size);
    known.update(&envelope(WireFormat::Chat, System::Text("Be brief and kind.")));
    assert_ne!(*known.profile(), size);
}

#[test]
fn an_envelope_is_known_again_from_the_record() {
    for wire_format in WireFormat::ALL {
        for parameters in [&[][..], &[("temperature", "0.50"), ("thinking", "{\"type\":\"adaptive\"}")]] {
            let parts = RequestParts {
                system: Some(System::Text("Be brief.")),
                tools: Some(RawJson("[{\"name\":\"read_file\"}]")),
                parameters,
                ..RequestParts::new("m")
            };
            let mut known = CurrentEnvelope::default();
            known.update(&Envelope::build(wire_format, &parts).unwrap());
            let (preamble, id) = known.preamble().unwrap().clone();
            let mut again = CurrentEnvelope::default();
            again.update(&Envelope::of_preamble(wire_format, &preamble).unwrap());
            assert_eq!(again.preamble().unwrap().1, id, "{wire_format}");
            assert_eq!(again.profile(), known.profile(), "{wire_format}");
        }
    }
}
