//! Secrets in pieces: a name or number taken out of its line may be part of a password whose name stayed behind. Such
//! pieces are known again by a look at where they came from.

use memchr::memmem;
use rustc_hash::FxHashMap;
use throughline_redact::Redactor;
use throughline_transcript::Message;

use crate::anchors::{AnchorKind, scan_anchors};
use crate::document::SummaryDocument;
use crate::ledger::Ledger;
use crate::sections::Section;

/// What stands in place of a piece.
const MASK: &str = "[redacted]";
/// Shorter pieces give nothing away.
const MIN_PIECE_BYTES: usize = 5;
/// So much is looked at before a piece, where its name would stand, and after it.
const BEFORE_BYTES: usize = 120;
const AFTER_BYTES: usize = 40;
/// Occurrences looked at in one message.
const MAX_PLACES: usize = 4;

/// Finds pieces of secrets, each text once.
pub(crate) struct Pieces<'a> {
    messages: &'a [Message],
    ledger: &'a Ledger,
    redactor: &'a Redactor,
    known: FxHashMap<String, bool>,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(messages: &'a [Message], ledger: &'a Ledger, redactor: &'a Redactor) -> Self {
        Self { messages, ledger, redactor, known: FxHashMap::default() }
    }

    /// Whether a text that stood in a message was, there, part of a secret.
    pub(crate) fn is_piece(&mut self, text: &str) -> bool {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let found = self.look_up(text);
        self.known.insert(text.to_owned(), found);
        found
    }

    fn look_up(&self, text: &str) -> bool {
        let Some(info) = self.ledger.anchor(text) else { return false };
        let mut places = [info.first, info.last].into_iter().map(|at| at as usize).collect::<Vec<_>>();
        places.dedup();
        places.into_iter().filter_map(|at| self.messages.get(at)).any(|message| {
            let json = message.json();
            memmem::find_iter(json.as_bytes(), text.as_bytes())
                .take(MAX_PLACES)
                .any(|at| self.is_masked(json, at, at + text.len()))
        })
    }

    /// Whether the redactor masks this stretch, seen with what stands around it.
    fn is_masked(&self, json: &str, start: usize, end: usize) -> bool {
        let from = json.floor_char_boundary(start.saturating_sub(BEFORE_BYTES));
        let to = json.ceil_char_boundary((end + AFTER_BYTES).min(json.len()));
        let Some(window) = json.get(from..to) else { return false };
        let (start, end) = (start - from, end - from);
        self.redactor.find(window).iter().any(|found| found.range.start < end && start < found.range.end)
    }

    /// Masks every piece in a document; says how many.
    pub(crate) fn mask(&mut self, document: &mut SummaryDocument) -> usize {
        let mut count = 0;
        for section in Section::ALL {
            for entry in document.entries_mut(section) {
                let mut found: Vec<(usize, usize)> = Vec::new();
                scan_anchors(&entry.text, |anchor, kind| {
                    if may_be_piece(anchor, kind) && self.is_piece(anchor) {
                        let start = anchor.as_ptr().addr() - entry.text.as_ptr().addr();
                        found.push((start, start + anchor.len()));
                    }
                });
                for (start, end) in found.into_iter().rev() {
                    if entry.text.get(start..end).is_some() {
                        entry.text.replace_range(start..end, MASK);
                        count += 1;
                    }
                }
            }
        }
        count
    }
}

/// Options, addresses and names of files are told with what makes them secret, if anything does; and names from code,
/// which are most of what is told, are seldom passwords.
fn may_be_piece(anchor: &str, kind: AnchorKind) -> bool {
    let is_file =
        || kind == AnchorKind::Path && anchor.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let is_plain_name = || anchor.len() < 20 && !anchor.bytes().any(|b| b.is_ascii_digit() || b == b'-');
    let is_told_whole = matches!(kind, AnchorKind::Flag | AnchorKind::Url);
    anchor.len() >= MIN_PIECE_BYTES && !is_told_whole && !is_plain_name() && !is_file()
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
