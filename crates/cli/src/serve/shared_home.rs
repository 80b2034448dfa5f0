//! Finds other gateways on the same record: each holds a lock that shows that it is running.
//!
//! Several gateways are allowed: each notices what the others write. On one home directory a second gateway may be a mistake, so a note
//! at the start names the others. On a server several are usual: the lock is short and renewed, and each gateway counts them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use throughline_engine::Host;
use throughline_gateway::Gateway;
use throughline_store::{FleetStore, Holder, LockRequest, Store};

use crate::app::App;
use crate::record::RecordStore;

/// The prefix of the names of these locks; the process follows.
const LOCK_START: &str = "gateway:";
/// How long a lock on a file is valid. It is released when the gateway stops, and does not count if its process is dead; the limit is for
/// locks of dead processes on other machines.
const HELD_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// How long a lock on a server is valid, where a dead gateway may have run on another machine.
const SHORT_MS: u64 = 30 * 1_000;
/// The interval at which a lock on a server is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// The lock that shows that a gateway is running; released when this is dropped.
pub(super) struct GatewayLock {
    store: Arc<dyn Store>,
    name: String,
    holder: Holder,
}

impl Drop for GatewayLock {
    fn drop(&mut self) {
        // A lock that stays behind is recognised as that of a dead process.
        let _ = self.store.unlock(&self.name, &self.holder);
    }
}

/// Takes the lock of this gateway and finds other gateways. An unwritable record is reported elsewhere.
pub(super) fn announce(record: &RecordStore, host: &dyn Host) -> (Vec<Holder>, GatewayLock) {
    let (store, holder, now_ms) = (record.shared(), host.holder(), host.now_ms());
    let name = format!("{LOCK_START}{}@{}", holder.process_id, holder.host);
    let lock = GatewayLock { store: Arc::clone(&store), name, holder };
    if let Some(fleet) = record.fleet() {
        lock.hold(host, SHORT_MS);
        let mut others = fleet.lock_holders(LOCK_START).unwrap_or_default();
        others.retain(|other| *other != lock.holder);
        return (others, lock);
    }
    let locks = store.locks().unwrap_or_default();
    let of_gateways = locks.into_iter().filter(|lock| lock.name.starts_with(LOCK_START));
    let (mut others, mut dead) = (Vec::new(), Vec::new());
    for found in of_gateways.filter(|found| found.holder != lock.holder) {
        match found.expires_ms > now_ms && host.is_alive(&found.holder) {
            true => others.push(found.holder),
            false => dead.push(found),
        }
    }
    for found in dead {
        let _ = store.unlock(&found.name, &found.holder);
    }
    lock.hold(host, HELD_MS);
    (others, lock)
}

impl GatewayLock {
    /// Takes or renews the lock.
    fn hold(&self, host: &dyn Host, lasts_ms: u64) {
        let now_ms = host.now_ms();
        let expires_ms = now_ms.saturating_add_unsigned(lasts_ms);
        let (name, holder) = (self.name.clone(), self.holder.clone());
        let request = LockRequest { name, holder, now_ms, expires_ms };
        let _ = self.store.lock(&request, &|other| host.is_alive(other));
    }
}

/// Renews the lock of a gateway on a server, and updates the gateway's count of gateways, until the lock is dropped.
pub(super) async fn keep_count(
    lock: Weak<GatewayLock>,
    fleet: Arc<dyn FleetStore>,
    host: Arc<dyn Host>,
    gateway: Gateway,
) {
    loop {
        let Some(lock) = lock.upgrade() else { return };
        let (fleet, host) = (Arc::clone(&fleet), Arc::clone(&host));
        let count = tokio::task::spawn_blocking(move || {
            lock.hold(host.as_ref(), SHORT_MS);
            fleet.lock_holders(LOCK_START).map(|holders| holders.len())
        });
        // If the server does not answer, the previous count stays.
        if let Ok(Ok(count)) = count.await {
            gateway.set_gateways(u32::try_from(count).unwrap_or(u32::MAX));
        }
        tokio::time::sleep(RENEW_EVERY).await;
    }
}

/// Prints a note about the other gateways.
pub(super) fn tell(app: &App, others: &[Holder]) {
    if others.is_empty() {
        return;
    }
    let named: Vec<String> = others.iter().map(ToString::to_string).collect();
    app.warn(&format!(
        "another gateway uses this home directory: {}; both write to the same record",
        named.join(" and ")
    ));
}
