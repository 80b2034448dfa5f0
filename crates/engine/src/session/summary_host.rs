//! What an engine's summariser learns about the conversation, and how its calls get into the record.

use std::sync::{Arc, Mutex};

use throughline_store::{NewCall, Owner, SessionId, Store};

use super::persistence::Persistence;
use super::{ManagedSession, record};
use crate::event::{EngineEvent, EventSink};
use crate::summary::{BookingFuture, SummaryCalls};

/// Writes calls for summaries into the record.
struct SummaryBooking {
    store: Arc<dyn Store>,
    owner: Owner,
    events: Arc<dyn EventSink>,
    access_token: Arc<Mutex<Option<String>>>,
}

impl SummaryCalls for SummaryBooking {
    fn finished<'a>(&'a self, session: &'a SessionId, call: NewCall) -> BookingFuture<'a> {
        let (store, owner, id) = (Arc::clone(&self.store), self.owner.clone(), session.clone());
        let access_token = Persistence::token_name(&self.access_token);
        Box::pin(async move {
            let calls = vec![(id, NewCall { access_token, ..call })];
            let book = move || Ok(record::book(store.as_ref(), &owner, None, calls));
            let booked = match record::blocking(book).await {
                Ok(booked) => booked.map_err(|not_booked| not_booked.error),
                Err(error) => Err(error),
            };
            if let Err(error) = booked {
                let text = format!("a call for a summary could not be booked: {error}");
                self.events.tell(EngineEvent::Notice { text });
            }
        })
    }
}

impl ManagedSession {
    /// Where calls for summaries are booked, told once.
    pub(super) fn set_summary_booking(&self) {
        if let Some(line) = self.setup.engine.summary_host() {
            line.set_calls(Arc::new(SummaryBooking {
                store: Arc::clone(&self.setup.store),
                owner: self.setup.owner.clone(),
                events: Arc::clone(&self.setup.events),
                access_token: Arc::clone(&self.persistence.access_token),
            }));
        }
    }

    /// The model that holds the conversation from now on.
    pub(super) fn set_summary_target(&self) {
        if let Some(line) = self.setup.engine.summary_host() {
            line.set_target(self.setup.target.clone());
        }
    }
}
