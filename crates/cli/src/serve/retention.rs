//! Removes old conversations while the gateway runs, if `store.retention` names a number of days: once an hour, in one of all gateways on
//! the same record.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;
use crate::record::RecordStore;
use crate::record::retention::{EVERY_MS, RetentionOutcome, apply, policy};
use crate::serve::log::ServeLog;
use crate::settings::load;
use crate::ui::text::counted;

/// Runs until the gateway stops.
pub(super) async fn follow(app: Arc<App>, store: RecordStore, log: Arc<ServeLog>) {
    // Checked more often than necessary, because another gateway may stop before its turn.
    let mut turns = tokio::time::interval(Duration::from_millis(EVERY_MS.unsigned_abs() / 4));
    loop {
        turns.tick().await;
        let (app, store, log) = (Arc::clone(&app), store.clone(), Arc::clone(&log));
        // A failure is logged, and the next turn tries again.
        let _ = tokio::task::spawn_blocking(move || turn(&app, &store, &log)).await;
    }
}

fn turn(app: &App, store: &RecordStore, log: &ServeLog) {
    // Read each time, because the settings may have changed.
    let Ok(loaded) = load(app, &[]) else { return };
    let policy = policy(&loaded.settings.store.retention);
    if policy.is_empty() {
        return;
    }
    match apply(store, app, &policy, "serve", true, &mut |_| ()) {
        Ok(RetentionOutcome::Done(report)) if report.conversations > 0 => log.note(&format!(
            "store.retention: removed {} with {}",
            counted(report.conversations, "conversation", "conversations"),
            counted(report.messages, "message", "messages")
        )),
        Ok(_) => {}
        Err(error) => log.warn(&format!("store.retention: old conversations were not removed: {error}")),
    }
}
