//! Generates a coding session of any size: a user asks, the model reads files, runs commands and edits. For benchmarks, and for tests of
//! linear complexity.

use throughline_transcript::{Role, WireFormat, text_message};

use crate::json_text::Style;
use crate::pen::{Detail, Ids, Pen};
use crate::plan::write_step;
use crate::rng::Rng;
use crate::tools::{self, Amount, Family, ToolRun};
use crate::words::{self, Kind, Voice};

/// The number of messages between two human messages.
const MESSAGES_A_TURN: usize = 40;
/// The number of reads that are remembered, to be repeated unchanged.
const REMEMBERED_READS: usize = 64;

/// Generates a session as a JSON array of exactly `messages` messages and about `bytes` bytes (within a few per cent, unless the messages
/// are too few to contain them or too many to fit). The same arguments give the same bytes.
#[must_use]
pub fn big_transcript(wire_format: WireFormat, bytes: usize, messages: usize, seed: u64) -> String {
    let mut out = String::with_capacity(bytes + bytes / 8 + 4096);
    out.push('[');
    let mut session = Session::new(wire_format, seed);
    let mut written = 0;
    while written < messages {
        session.next_unit(bytes.saturating_sub(out.len()), messages - written);
        for message in session.pen.json.drain(..) {
            if written > 0 {
                out.push(',');
            }
            out.push_str(&message);
            written += 1;
        }
    }
    out.push(']');
    out
}

struct Session {
    wire_format: WireFormat,
    family: Family,
    rng: Rng,
    pen: Pen,
    since_human: usize,
    reads: Vec<(u64, usize)>,
}

impl Session {
    fn new(wire_format: WireFormat, seed: u64) -> Self {
        let family = match wire_format {
            WireFormat::Chat => Family::Hermes,
            WireFormat::Responses => Family::Codex,
            WireFormat::Anthropic => Family::ClaudeCode,
        };
        let mut pen = Pen::new(Style::default(), Voice::English, family, Ids::Unique);
        pen.detail = Detail::Plain;
        Self {
            wire_format,
            family,
            rng: Rng::new(seed),
            pen,
            since_human: MESSAGES_A_TURN,
            reads: Vec::new(),
        }
    }

    /// Writes the next message or step, given the rest to fill.
    fn next_unit(&mut self, bytes_left: usize, messages_left: usize) {
        if self.since_human >= MESSAGES_A_TURN
            && (self.pen.last_role != Some(Role::User) || messages_left < 3)
        {
            self.since_human = 1;
            return self.speak(Role::User, Kind::Request);
        }
        self.since_human += 1;
        let ends_turn = self.since_human >= MESSAGES_A_TURN;
        if messages_left < 2 || ends_turn || self.rng.chance(2) {
            return self.speak(Role::Assistant, Kind::Answer);
        }
        // The sizes of results differ widely; on average they fill the rest.
        let share = bytes_left * 2 / messages_left;
        let factor_percent = [10, 30, 60, 100, 180, 320][self.rng.weighted(&[20, 20, 20, 15, 15, 10])];
        let bytes = (share * factor_percent / 101).saturating_sub(180);
        let run = self.run(bytes);
        self.since_human += 1;
        self.pen.rng = Rng::new(self.rng.next_u64());
        write_step(self.wire_format, &mut self.pen, &[run], 1);
    }

    fn speak(&mut self, role: Role, kind: Kind) {
        let text = words::text(&mut self.rng, Voice::English, kind);
        let json = text_message(self.wire_format, role, &text);
        self.pen.push(role, json);
    }

    /// Reads a file in half of the cases, sometimes one that was read before.
    fn run(&mut self, bytes: usize) -> ToolRun {
        let names = match self.family {
            Family::Hermes => ["read_file", "terminal", "patch", "search_files"],
            Family::ClaudeCode => ["Read", "Bash", "Edit", "Grep"],
            Family::Codex => ["read_file", "exec_command", "apply_patch", "shell"],
        };
        let which = self.rng.weighted(&[50, 25, 15, 10]);
        let mut seed = self.rng.next_u64();
        let mut bytes = bytes;
        if which == 0 {
            if !self.reads.is_empty() && self.rng.chance(15) {
                let (old_seed, old_bytes) = self.reads[self.rng.below(self.reads.len())];
                if old_bytes <= bytes * 2 {
                    (seed, bytes) = (old_seed, old_bytes);
                }
            } else if self.reads.len() < REMEMBERED_READS {
                self.reads.push((seed, bytes));
            } else {
                let slot = self.rng.below(REMEMBERED_READS);
                self.reads[slot] = (seed, bytes);
            }
        }
        let mut rng = Rng::new(seed);
        tools::run_named(&mut rng, self.family, names[which], Amount::Bytes(bytes), Style::default())
    }
}
