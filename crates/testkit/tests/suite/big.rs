//! Big transcripts have the size they were asked for and are conversations that a provider accepts.

use throughline_testkit::{Coverage, big_transcript};
use throughline_transcript::{DecodeOptions, GroupKind, Groups, Transcript, Violation, WireFormat};

#[test]
fn a_big_transcript_has_the_size_asked_for() {
    for wire_format in WireFormat::ALL {
        for (bytes, messages) in [(4_000_000, 2_400), (300_000, 900), (1_000_000, 31), (20_000, 1)] {
            let text = big_transcript(wire_format, bytes, messages, 11);
            let off_percent = (text.len() as f64 - bytes as f64).abs() / bytes as f64 * 100.0;
            assert!(messages == 1 || off_percent < 12.0, "{wire_format}: {} instead of {bytes}", text.len());
            let transcript =
                Transcript::decode(text.clone().into_bytes(), &DecodeOptions::default()).unwrap();
            assert_eq!(transcript.messages.len(), messages);
            assert!(messages == 1 || transcript.wire_format == wire_format);
            let groups = Groups::of(&transcript.messages);
            assert_eq!(Violation::find(wire_format, &transcript.messages, &groups), []);
            assert_eq!(
                text,
                big_transcript(wire_format, bytes, messages, 11),
                "the same arguments give the same bytes"
            );
            assert_ne!(text, big_transcript(wire_format, bytes, messages, 12));
        }
    }
}

#[test]
fn a_big_transcript_is_a_session_of_many_turns() {
    for wire_format in WireFormat::ALL {
        let text = big_transcript(wire_format, 4_000_000, 2_400, 3);
        let transcript = Transcript::decode(text.into_bytes(), &DecodeOptions::default()).unwrap();
        let groups = Groups::of(&transcript.messages);
        let turns = groups.as_slice().iter().filter(|group| group.kind == GroupKind::Human).count();
        assert!((40..90).contains(&turns), "{wire_format}: {turns} turns");
        let coverage = Coverage::new();
        coverage.list(&transcript.messages);
        assert!(coverage.count("tool call") > 1_000, "{coverage}");
        assert!(coverage.count("tool result") == coverage.count("tool call"));
    }
}

#[test]
fn nothing_and_little_can_be_asked_for() {
    assert_eq!(big_transcript(WireFormat::Chat, 0, 0, 1), "[]");
    for messages in 1..30 {
        let text = big_transcript(WireFormat::Anthropic, 10, messages, 1);
        let transcript = Transcript::decode(text.into_bytes(), &DecodeOptions::default()).unwrap();
        assert_eq!(transcript.messages.len(), messages);
        assert_eq!(
            Violation::find(WireFormat::Anthropic, &transcript.messages, &Groups::of(&transcript.messages)),
            []
        );
    }
}
