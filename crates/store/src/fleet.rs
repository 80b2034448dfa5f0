//! What several gateways on one record share beside conversations: texts such as the list of access tokens, live events, and
//! who is there.
//!
//! Not for: conversations, which are in [`Store`](crate::Store). An engine without a server does not implement this.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::{Millis, Owner};
use crate::sessions::lock::Holder;

/// A text that all gateways share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetText {
    /// Grows with every change.
    pub version: u64,
    /// The text.
    pub body: String,
}

/// Something that happened at a gateway, for those who listen at another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetEvent {
    /// Whose conversation it is about.
    pub owner: Owner,
    /// When it was, by the clock of that gateway.
    pub at_ms: Millis,
    /// The event, as JSON.
    pub body: String,
}

/// Up to where events were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetPosition(pub u64);

/// What a listener is notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetChange {
    /// There are new events.
    Events,
    /// A shared text has changed.
    Texts,
    /// Notifications arrive from now on. Earlier ones may be missing, so everything is to be read once.
    Connected,
    /// No notifications arrive until the next [`Connected`](Self::Connected).
    Disconnected {
        /// Why, without passwords.
        problem: String,
    },
}

/// Called with each change; must not block.
pub(crate) type FleetListener = Arc<dyn Fn(FleetChange) + Send + Sync>;

/// Connections of this process to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Connections that may be made.
    pub most: u64,
    /// Connections that are open.
    pub open: u64,
    /// Those of them that nobody uses.
    pub idle: u64,
    /// Callers that wait for one.
    pub waiting: u64,
}

/// What gateways on one record share.
pub trait FleetStore: Send + Sync {
    /// A shared text, if there is one.
    fn fleet_text(&self, name: &str) -> Result<Option<FleetText>>;
    /// Its version alone.
    fn fleet_text_version(&self, name: &str) -> Result<Option<u64>>;
    /// Replaces a shared text that is at this version (`None`: there is none), or removes it. `false` where it is not at that
    /// version any more, and nothing was changed.
    fn replace_fleet_text(&self, name: &str, version: Option<u64>, body: Option<&str>) -> Result<bool>;
    /// The holders of locks whose names begin like this and that are not over, by the clock of the server.
    fn lock_holders(&self, name_start: &str) -> Result<Vec<Holder>>;
    /// Tells other gateways what happened at this one.
    fn publish_events(&self, gateway: &str, events: &[FleetEvent]) -> Result<()>;
    /// What happened at other gateways since a position; from now on where there is none. Each event is read once.
    fn events_since(
        &self,
        gateway: &str,
        position: Option<FleetPosition>,
    ) -> Result<(Vec<FleetEvent>, FleetPosition)>;
    /// Calls a listener with changes as they happen, as long as the store exists. `false` if the settings name no connection for that:
    /// callers then have to poll. Notifications may be spurious, and one may be lost, so callers poll now and then in any case.
    fn listen(&self, listener: FleetListener) -> bool;
    /// The connections of this process.
    fn pool_status(&self) -> PoolStatus;
}
