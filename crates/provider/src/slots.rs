//! Slots of model servers: how many requests a server works on at once, and who goes first when there are more.
//!
//! Servers on one's own machine usually work on one request at a time. Whatever is sent meanwhile waits behind it, so a
//! request without a waiting caller must not be in the way of one with a waiting caller. Requests to such a server wait here
//! instead: foreground requests in their order, background requests only while nothing else is to be done. A background
//! request that holds the slot a foreground request needs is cancelled; its connection is closed, so the server stops.
//!
//! Not for: limiting how fast a provider on the network is asked, which has as many slots as it likes.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Endpoint, EndpointKind};
use crate::send_state::Priority;

/// A background request takes the last free slot only after no foreground request ran for this long. Most tools an agent
/// calls between two requests are done within a second; without the pause each of those gaps would start a background
/// request that is cancelled at once.
const QUIET: Duration = Duration::from_secs(1);
/// A background request that gets no slot within this time is dropped: by then its question is out of date.
const LONGEST_BACKGROUND_WAIT: Duration = Duration::from_secs(20);
/// A cancelled background request has this long to close its connection. It takes milliseconds; the bound is there so
/// that nobody waits for one that hangs.
const LONGEST_CANCELLATION: Duration = Duration::from_secs(5);

/// How many requests a server works on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSlots {
    /// As many as it is sent.
    Unlimited,
    /// Unknown. Foreground requests are sent at once; background requests only while there are none.
    Unknown,
    /// So many. Further requests wait here.
    Known(NonZeroU32),
}

impl ServerSlots {
    /// The slots assumed for an endpoint that does not state them: one for the known local servers, as people usually
    /// run them; unknown for other servers on this machine; no limit for providers on the network.
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
    // A program talks to a few servers, so looking through them is quicker than naming one.
    servers: Arc<Mutex<Vec<NamedServer>>>,
}

#[derive(Debug)]
struct NamedServer {
    name: ServerName,
    server: Arc<Server>,
}

/// A server by its address: requests on every wire and path share its slots.
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
    // Entries are only added, so a panic elsewhere leaves them usable.
    fn server(&self, endpoint: &Endpoint) -> Arc<Server> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = servers.iter().find(|known| known.name.is_of(endpoint)) {
            return Arc::clone(&found.server);
        }
        let server = Arc::<Server>::default();
        servers.push(NamedServer { name: ServerName::of(endpoint), server: Arc::clone(&server) });
        server
    }

    /// The number of slots of a server: as configured, else as the server stated, else as assumed.
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

    /// Waits for a slot. `longest` bounds the wait of a foreground request; after that it is sent anyway, and the server
    /// queues it. Fails when `cancel` is cancelled, or when a background request gets no slot.
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
        // Few requests have to wait; the others need no room for it.
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
    /// Cancelled when the request is, and when a background request loses its slot.
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
    /// Foreground requests that wait, the first to go first.
    waiting: VecDeque<u64>,
    foreground: usize,
    /// Background requests that run, with what cancels each.
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

    /// Cancels background requests that are in the way of the foreground requests that wait; whether there were any.
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

    /// When a background request may run: not now (`None`), or from this moment on.
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
    // Every change is made under one lock and leaves the counts right, so a panic elsewhere leaves them usable.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a foreground request, if it need not wait.
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

    /// A foreground request waits for its turn.
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

    /// A background request waits until nothing else is to be done, and not for long.
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

/// Gives the slot back when it is dropped.
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
