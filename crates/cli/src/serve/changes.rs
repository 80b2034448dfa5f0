//! Listens for changes that other gateways make in the database (`store.direct_url`), and wakes the tasks that otherwise poll for them.

use std::sync::{Arc, Mutex, PoisonError};

use throughline_store::{FleetChange, FleetStore};
use tokio::sync::Notify;

use crate::serve::log::ServeLog;

/// Notifies `texts` and the returned value. `None` if the settings name no connection for notifications.
pub(super) fn listen(fleet: &dyn FleetStore, texts: Arc<Notify>, log: Arc<ServeLog>) -> Option<Arc<Notify>> {
    let events = Arc::<Notify>::default();
    let told = Arc::clone(&events);
    // A repeated problem is reported once.
    let reported = Mutex::<Option<String>>::default();
    let listens = fleet.listen(Arc::new(move |change| match change {
        FleetChange::Events => told.notify_one(),
        FleetChange::Texts => texts.notify_one(),
        FleetChange::Connected => {
            told.notify_one();
            texts.notify_one();
            if reported.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
                log.note("notifications of changes by other gateways work again");
            }
        }
        FleetChange::Disconnected { problem } => {
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            if reported.as_ref() != Some(&problem) {
                log.warn(&format!(
                    "`store.direct_url` does not work: {problem}; changes by other gateways are polled once a second"
                ));
                *reported = Some(problem);
            }
        }
    }));
    listens.then_some(events)
}
