//! Slots of model servers: how many requests a server processes at once, and which one is next if there are more.
//!
//! Servers on the user's machine usually process one request at a time and queue the others, so a background request must not delay a
//! foreground one. Requests to such a server are queued here instead: foreground requests in order, background requests only while there
//! are no others. A background request is cancelled when a foreground request needs its slot; its connection is closed, so that the server
//! stops.
//!
//! Not for: rate limits of providers on the network, which have any number of slots.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Endpoint, EndpointKind};
use crate::send_state::Priority;

/// A background request takes the last free slot only after no foreground request ran for this long. Most tools that an agent runs between
/// two requests finish within a second; without the pause, each of these gaps would start a background request that is cancelled
/// immediately.
const QUIET: Duration = Duration::from_secs(1);
/// A background request that gets no slot within this time is dropped: it is outdated by then.
const LONGEST_BACKGROUND_WAIT: Duration = Duration::from_secs(20);
/// The time in which a cancelled background request must close its connection. It takes milliseconds; the limit prevents waiting for one
/// that hangs.
const LONGEST_CANCELLATION: Duration = Duration::from_secs(5);

/// How many requests a server processes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSlots {
    /// Any number.
    Unlimited,
    /// Unknown. Foreground requests are sent at once; background requests only while there are none.
    Unknown,
    /// This many. Further requests are queued here.
    Known(NonZeroU32),
}

impl ServerSlots {
    /// Returns the slots assumed for an endpoint that does not state them: one for the known local servers in their usual configuration;
    /// unknown for other servers on this machine; no limit for providers on the network.
    #[must_use]
    pub fn assumed(endpoint: &Endpoint) -> Self {
        match endpoint.kind {
            EndpointKind::Ollama | EndpointKind::LlamaCpp | EndpointKind::LmStudio => {
                Self::Known(NonZeroU32::MIN)
            }
            _ if endpoint.base.is_local() => Self::Unknown,
            _ => Self::Unlimited,
        }
    }
}

/// The slots of all servers that a program talks to. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    // A program uses few servers, so a linear search is faster than a map.
    servers: Arc<Mutex<Vec<NamedServer>>>,
}

#[derive(Debug)]
struct NamedServer {
    name: ServerName,
    server: Arc<Server>,
}

/// A server by its address: requests in every wire format and to every path share its slots.
#[derive(Debug, PartialEq, Eq)]
struct ServerName {
    host: String,
    port: Option<u16>,
}

impl ServerName {
    fn of(endpoint: &Endpoint) -> Self {
        Self { host: host_of(endpoint).to_ascii_lowercase(), port: endpoint.base.port() }
    }

    fn is_of(&self, endpoint: &Endpoint) -> bool {
        self.port == endpoint.base.port() && self.host.eq_ignore_ascii_case(host_of(endpoint))
    }
}

fn host_of(endpoint: &Endpoint) -> &str {
    let host = endpoint.base.host();
    if host.eq_ignore_ascii_case("localhost") { "127.0.0.1" } else { host }
}

impl Slots {
    // Entries are only added, so the list is usable after a panic elsewhere.
    fn server(&self, endpoint: &Endpoint) -> Arc<Server> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = servers.iter().find(|known| known.name.is_of(endpoint)) {
            return Arc::clone(&found.server);
        }
        let server = Arc::<Server>::default();
        servers.push(NamedServer { name: ServerName::of(endpoint), server: Arc::clone(&server) });
        server
    }

    /// Returns the slots of a server: as configured, or else as the server stated, or else as assumed.
    #[must_use]
    pub fn of(&self, endpoint: &Endpoint) -> ServerSlots {
        let assumed = ServerSlots::assumed(endpoint);
        let server = self.server(endpoint);
        let state = server.state();
        state.configured.or(state.learnt).map_or(assumed, ServerSlots::Known)
    }

    /// Stores the configured number of slots of a server.
    pub fn configure(&self, endpoint: &Endpoint, slots: Option<NonZeroU32>) {
        self.server(endpoint).state().configured = slots;
    }

    /// Stores the number of slots a server stated.
    pub(crate) fn learn(&self, endpoint: &Endpoint, slots: NonZeroU32) {
        self.server(endpoint).state().learnt = Some(slots);
    }

    /// Waits for a slot. `longest` limits the wait of a foreground request; after that it is sent anyway, and the server queues it. Fails
    /// if `cancel` is cancelled, or if a background request gets no slot.
    pub(crate) async fn acquire(
        &self,
        endpoint: &Endpoint,
        priority: Priority,
        longest: Duration,
        cancel: &CancellationToken,
    ) -> Result<ServerSlot, NoSlot> {
        let slots = self.of(endpoint);
        if slots == ServerSlots::Unlimited {
            return Ok(ServerSlot { cancel: cancel.clone(), _held: None });
        }
        let server = self.server(endpoint);
        if priority == Priority::Foreground
            && let Some(slot) = server.enter_at_once(slots, cancel)
        {
            return Ok(slot);
        }
        // Boxed, because few requests have to wait.
        let waiting = Box::pin(async {
            match priority {
                Priority::Foreground => Ok(server.enter(slots, Instant::now() + longest, cancel).await),
                Priority::Background => server.enter_behind(slots, cancel).await,
            }
        });
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(NoSlot),
            slot = waiting => slot,
        }
    }
}

/// The request is not sent: it was cancelled or postponed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSlot;

/// A slot, released on drop.
#[derive(Debug)]
pub(crate) struct ServerSlot {
    /// Cancelled with the request, or when a background request loses its slot.
    pub(crate) cancel: CancellationToken,
    _held: Option<SlotGuard>,
}

/// One server.
#[derive(Debug, Default)]
struct Server {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    configured: Option<NonZeroU32>,
    learnt: Option<NonZeroU32>,
    next_number: u64,
    /// Waiting foreground requests, in order.
    waiting: VecDeque<u64>,
    foreground: usize,
    /// Running background requests, with the token that cancels each.
    background: Vec<(u64, CancellationToken)>,
    foreground_ended: Option<Instant>,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn running(&self) -> usize {
        self.foreground + self.background.len()
    }

    fn is_first(&self, number: u64) -> bool {
        self.waiting.front() == Some(&number)
    }

    /// Whether the foreground request with this number may run.
    fn may_enter(&self, number: u64, slots: ServerSlots) -> bool {
        match slots {
            ServerSlots::Unlimited => true,
            ServerSlots::Unknown => self.background.is_empty(),
            ServerSlots::Known(most) => self.is_first(number) && self.running() < most.get() as usize,
        }
    }

    /// Cancels background requests that block waiting foreground requests; returns whether there were any.
    fn make_room(&self, slots: ServerSlots) -> bool {
        let in_the_way = match slots {
            ServerSlots::Unlimited => 0,
            ServerSlots::Unknown => self.background.len(),
            ServerSlots::Known(most) => {
                let over = (self.running() + self.waiting.len()).saturating_sub(most.get() as usize);
                over.min(self.background.len())
            }
        };
        self.background.iter().rev().take(in_the_way).for_each(|(_, cancel)| cancel.cancel());
        in_the_way > 0
    }

    /// Returns the time from which a background request may run; `None` if not now.
    fn may_enter_behind(&self, slots: ServerSlots) -> Option<Instant> {
        let most = match slots {
            ServerSlots::Known(most) => most.get() as usize,
            ServerSlots::Unlimited | ServerSlots::Unknown => 1,
        };
        let is_free = self.waiting.is_empty() && self.running() < most;
        let is_last = self.running() + 1 == most;
        let quiet_from = self.foreground_ended.filter(|_| is_last).map(|ended| ended + QUIET);
        is_free.then(|| quiet_from.unwrap_or_else(Instant::now))
    }
}

impl Server {
    // Each change is made under one lock and keeps the counts consistent, so they are usable after a panic elsewhere.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a slot for a foreground request if it need not wait.
    fn enter_at_once(self: &Arc<Self>, slots: ServerSlots, cancel: &CancellationToken) -> Option<ServerSlot> {
        let mut state = self.state();
        let is_free = match slots {
            ServerSlots::Unlimited => true,
            ServerSlots::Unknown => state.background.is_empty(),
            ServerSlots::Known(most) => state.waiting.is_empty() && state.running() < most.get() as usize,
        };
        if !is_free || cancel.is_cancelled() {
            return None;
        }
        state.foreground += 1;
        drop(state);
        let held = SlotGuard { server: Arc::clone(self), request: SlotRequest::Foreground };
        Some(ServerSlot { cancel: cancel.clone(), _held: Some(held) })
    }

    /// Waits for the turn of a foreground request.
    async fn enter(
        self: &Arc<Self>,
        slots: ServerSlots,
        latest: Instant,
        cancel: &CancellationToken,
    ) -> ServerSlot {
        let queued = Queued::new(self);
        let mut cancelled_by = None;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                let now = Instant::now();
                let hangs = cancelled_by.is_some_and(|by| now >= by) && state.is_first(queued.number);
                if now >= latest || hangs || state.may_enter(queued.number, slots) {
                    state.waiting.retain(|number| *number != queued.number);
                    state.foreground += 1;
                    drop(state);
                    // The next in the queue may fit as well.
                    self.changed.notify_waiters();
                    let held = SlotGuard { server: Arc::clone(self), request: SlotRequest::Foreground };
                    return ServerSlot { cancel: cancel.clone(), _held: Some(held) };
                }
                cancelled_by = match (state.make_room(slots), cancelled_by) {
                    (true, None) => Some(now + LONGEST_CANCELLATION),
                    (true, by) => by,
                    (false, _) => None,
                };
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(cancelled_by.unwrap_or(latest).min(latest)) => {}
            }
        }
    }

    /// Waits until no other request runs, for a limited time.
    async fn enter_behind(
        self: &Arc<Self>,
        slots: ServerSlots,
        cancel: &CancellationToken,
    ) -> Result<ServerSlot, NoSlot> {
        let latest = Instant::now() + LONGEST_BACKGROUND_WAIT;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let from = {
                let mut state = self.state();
                let from = state.may_enter_behind(slots);
                if from.is_some_and(|from| from <= Instant::now()) {
                    let number = state.number();
                    let cancel = cancel.child_token();
                    state.background.push((number, cancel.clone()));
                    let held =
                        SlotGuard { server: Arc::clone(self), request: SlotRequest::Background(number) };
                    return Ok(ServerSlot { cancel, _held: Some(held) });
                }
                from
            };
            if Instant::now() >= latest {
                return Err(NoSlot);
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(from.unwrap_or(latest).min(latest)) => {}
            }
        }
    }
}

/// A foreground request in the queue. It leaves the queue on drop.
struct Queued<'a> {
    server: &'a Server,
    number: u64,
}

impl<'a> Queued<'a> {
    fn new(server: &'a Server) -> Self {
        let mut state = server.state();
        let number = state.number();
        state.waiting.push_back(number);
        drop(state);
        Self { server, number }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.server.state().waiting.retain(|number| *number != self.number);
        self.server.changed.notify_waiters();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotRequest {
    Foreground,
    Background(u64),
}

/// Releases the slot when dropped.
#[derive(Debug)]
struct SlotGuard {
    server: Arc<Server>,
    request: SlotRequest,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut state = self.server.state();
        match self.request {
            SlotRequest::Foreground => {
                state.foreground = state.foreground.saturating_sub(1);
                state.foreground_ended = Some(Instant::now());
            }
            SlotRequest::Background(number) => state.background.retain(|(other, _)| *other != number),
        }
        drop(state);
        self.server.changed.notify_waiters();
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
