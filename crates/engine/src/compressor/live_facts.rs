//! The ledger of exact facts of an open conversation, extended with each message.

use std::sync::Arc;

use throughline_compaction::Ledger;
use throughline_redact::Redactor;
use throughline_store::SessionId;
use throughline_transcript::Groups;

use crate::compressor::adapter::CompactionInput;
use crate::context_engine::snapshot::Snapshot;

/// The facts of one session's view.
#[derive(Default)]
pub(super) struct LiveFacts {
    session: Option<SessionId>,
    ledger: Arc<Ledger>,
}

impl LiveFacts {
    /// Facts gathered elsewhere.
    pub(super) fn of(snapshot: &Snapshot, ledger: Arc<Ledger>) -> Self {
        Self { session: Some(snapshot.session.clone()), ledger }
    }

    /// Reads new messages if that is cheap: the first messages of a session, or those after the known ones. A long view that was never read
    /// (a resumed session) is read only when needed.
    pub(super) fn extend(&mut self, snapshot: &Snapshot, redactor: Option<&Redactor>) {
        const CHEAP_MESSAGES: usize = 256;
        let is_same = self.knows(snapshot);
        let unread = snapshot.messages.len() - if is_same { self.ledger.messages() } else { 0 };
        if unread > CHEAP_MESSAGES {
            return;
        }
        if !is_same {
            self.begin(snapshot, redactor);
        }
        // A compaction in preparation uses the ledger unchanged; newer messages are read afterwards.
        if let Some(ledger) = Arc::get_mut(&mut self.ledger) {
            append(ledger, snapshot);
        }
    }

    /// Returns the conversation with all its facts.
    pub(super) fn gather(&mut self, snapshot: &Snapshot, redactor: Option<&Redactor>) -> CompactionInput {
        let groups = Arc::new(Groups::of(&snapshot.messages));
        if self.knows(snapshot) && self.ledger.messages() > 0 {
            if self.ledger.messages() < snapshot.messages.len() {
                append(Arc::make_mut(&mut self.ledger), snapshot);
            }
        } else {
            self.session = Some(snapshot.session.clone());
            self.ledger = Arc::new(Ledger::of(&snapshot.messages, &groups, redactor));
        }
        CompactionInput { snapshot: snapshot.clone(), groups, ledger: Arc::clone(&self.ledger) }
    }

    /// Whether the ledger was read from the beginning of this view.
    fn knows(&self, snapshot: &Snapshot) -> bool {
        self.session.as_ref() == Some(&snapshot.session) && self.ledger.messages() <= snapshot.messages.len()
    }

    fn begin(&mut self, snapshot: &Snapshot, redactor: Option<&Redactor>) {
        self.session = Some(snapshot.session.clone());
        self.ledger = Arc::new(Ledger::new(redactor));
    }
}

fn append(ledger: &mut Ledger, snapshot: &Snapshot) {
    for message in snapshot.messages.get(ledger.messages()..).unwrap_or_default() {
        ledger.append(message);
    }
}
