//! Finds other gateways with the same home directory: each holds a lock that shows that it runs.
//!
//! Several gateways are allowed: each notices what the others write. A second one may be a mistake, so the start names the
//! others.

use std::sync::Arc;

use throughline_engine::Host;
use throughline_store::{Holder, LockRequest, Store};

use crate::app::App;

/// The names of these locks begin with this; the process follows.
const LOCK_START: &str = "gateway:";
/// How long a lock holds. It is released when the gateway stops, and one whose process is dead does not count, so this only
/// bounds what is left behind on other machines.
const HELD_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// What says that a gateway runs on this home, for as long as it is held.
pub(super) struct GatewayLock {
    store: Arc<dyn Store>,
    name: String,
    holder: Holder,
}

impl Drop for GatewayLock {
    fn drop(&mut self) {
        // One that stays is found out to be of a dead process.
        let _ = self.store.unlock(&self.name, &self.holder);
    }
}

/// Registers this gateway, and finds others that run. A record that cannot be written is reported elsewhere.
pub(super) fn announce(store: &Arc<dyn Store>, host: &dyn Host) -> (Vec<Holder>, GatewayLock) {
    let (holder, now_ms) = (host.holder(), host.now_ms());
    let locks = store.locks().unwrap_or_default();
    let of_gateways = locks.into_iter().filter(|lock| lock.name.starts_with(LOCK_START));
    let (mut others, mut dead) = (Vec::new(), Vec::new());
    for lock in of_gateways.filter(|lock| lock.holder != holder) {
        match lock.expires_ms > now_ms && host.is_alive(&lock.holder) {
            true => others.push(lock.holder),
            false => dead.push(lock),
        }
    }
    for lock in dead {
        let _ = store.unlock(&lock.name, &lock.holder);
    }
    let name = format!("{LOCK_START}{}@{}", holder.process_id, holder.host);
    let expires_ms = now_ms.saturating_add_unsigned(HELD_MS);
    let request = LockRequest { name: name.clone(), holder: holder.clone(), now_ms, expires_ms };
    let _ = store.lock(&request, &|other| host.is_alive(other));
    (others, GatewayLock { store: Arc::clone(store), name, holder })
}

/// Tells a person of the others.
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
