//! How fast lists are made and read. Prints figures, asserts none: run with `--ignored --nocapture`, in release for the
//! figures that count.

use std::time::Instant;

use throughline_testkit::{ConversationOptions, big_transcript, conversation_from_seed};
use throughline_transcript::{DecodeOptions, Groups, Transcript, WireFormat};

const MEGABYTE: f64 = 1_000_000.0;

#[test]
#[ignore = "prints figures"]
fn lists_a_second() {
    for wire_format in WireFormat::ALL {
        let options = ConversationOptions::new(wire_format);
        let start = Instant::now();
        let (mut lists, mut messages, mut bytes) = (0, 0, 0);
        for seed in 0..5_000 {
            let list = conversation_from_seed(&options, seed);
            lists += 1;
            messages += list.len();
            bytes += list.json.iter().map(String::len).sum::<usize>();
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{wire_format:<10} {:>7.0} lists/s, {:.1} messages and {:.1} kB a list",
            f64::from(lists) / seconds,
            messages as f64 / f64::from(lists),
            bytes as f64 / 1000.0 / f64::from(lists)
        );
    }
}

#[test]
#[ignore = "prints figures"]
fn big_transcripts_written_and_read() {
    for (bytes, messages) in [(4_000_000, 2_400), (64_000_000, 20_000), (400_000_000, 100_000)] {
        for wire_format in WireFormat::ALL {
            let start = Instant::now();
            let text = big_transcript(wire_format, bytes, messages, 7);
            let written = start.elapsed().as_secs_f64();
            let size = text.len() as f64 / MEGABYTE;
            let start = Instant::now();
            let transcript =
                Transcript::decode(text.into_bytes(), &DecodeOptions::default()).expect("it is readable");
            let mut out = Vec::with_capacity(bytes + bytes / 8);
            transcript.write_unchanged(&mut out);
            let round = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let groups = Groups::of(&transcript.messages).as_slice().len();
            let grouped = start.elapsed().as_secs_f64();
            println!(
                "{wire_format:<10} {size:>6.1} MB, {messages} messages: written at {:.0} MB/s, decoded and re-encoded at {:.0} MB/s, {groups} groups in {:.1} ms",
                size / written,
                size / round,
                grouped * 1000.0
            );
        }
    }
}
