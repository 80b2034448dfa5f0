//! The conversation's link to its engine's summariser, and the recording of the summariser's calls.

use std::sync::{Arc, Mutex};

use throughline_store::{NewCall, Owner, SessionId, Store};

use super::persistence::Persistence;
use super::{ManagedSession, record};
use crate::event::{EngineEvent, EventSink};
use crate::summary::{BookingFuture, SummaryCalls};

/// Records the calls for summaries.
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
    /// Sets where calls for summaries are recorded.
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

    /// Sets the conversation's current model.
    pub(super) fn set_summary_target(&self) {
        if let Some(line) = self.setup.engine.summary_host() {
            line.set_target(self.setup.target.clone());
        }
    }
}
