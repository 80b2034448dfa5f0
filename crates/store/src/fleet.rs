//! What several gateways on one record share beside conversations: texts such as the list of access tokens, live events, and the running
//! gateways.
//!
//! Not for: conversations, which are in [`Store`](crate::Store). An engine without a server does not implement this.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::{Millis, Owner};
use crate::sessions::lock::Holder;

/// A text shared by all gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetText {
    /// Increases with every change.
    pub version: u64,
    /// The text.
    pub body: String,
}

/// An event at a gateway, for listeners at others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetEvent {
    /// The owner of the conversation.
    pub owner: Owner,
    /// Its time, by the clock of that gateway.
    pub at_ms: Millis,
    /// The event, as JSON.
    pub body: String,
}

/// The position up to which events were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetPosition(pub u64);

/// A notification for a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetChange {
    /// There are new events.
    Events,
    /// A shared text has changed.
    Texts,
    /// Notifications arrive from now on. Earlier ones may be missing, so everything must be read once.
    Connected,
    /// No notifications arrive until the next [`Connected`](Self::Connected).
    Disconnected {
        /// The reason, without passwords.
        problem: String,
    },
}

/// Called with each change; must not block.
pub type FleetListener = Arc<dyn Fn(FleetChange) + Send + Sync>;

/// Connections of this process to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// The maximum number of connections.
    pub most: u64,
    /// Number of open connections.
    pub open: u64,
    /// Number of unused open connections.
    pub idle: u64,
    /// Number of callers waiting for a connection.
    pub waiting: u64,
}

/// Data shared by gateways on one record.
pub trait FleetStore: Send + Sync {
    /// Returns a shared text, if there is one.
    fn fleet_text(&self, name: &str) -> Result<Option<FleetText>>;
    /// Returns only its version.
    fn fleet_text_version(&self, name: &str) -> Result<Option<u64>>;
    /// Replaces a shared text of this version (`None`: there is none), or removes it. Returns `false` if the version differs, and then
    /// changes nothing.
    fn replace_fleet_text(&self, name: &str, version: Option<u64>, body: Option<&str>) -> Result<bool>;
    /// Returns the holders of unexpired locks with this name prefix, by the server's clock.
    fn lock_holders(&self, name_start: &str) -> Result<Vec<Holder>>;
    /// Publishes events of this gateway.
    fn publish_events(&self, gateway: &str, events: &[FleetEvent]) -> Result<()>;
    /// Returns the events of other gateways since a position; without one, from now on. Each event is read once.
    fn events_since(
        &self,
        gateway: &str,
        position: Option<FleetPosition>,
    ) -> Result<(Vec<FleetEvent>, FleetPosition)>;
    /// Calls a listener with changes as they happen, as long as the store exists. `false` if the settings name no connection for that:
    /// callers then have to poll. Notifications may be spurious, and one may be lost, so callers poll now and then in any case.
    fn listen(&self, listener: FleetListener) -> bool;
    /// Returns the connections of this process.
    fn pool_status(&self) -> PoolStatus;
}
