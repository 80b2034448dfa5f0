//! A scripted upstream: a real server on loopback that supports all three wire formats, records requests, and answers as a test scripts
//! it, including faults.
//!
//! It listens on its own port and stops when it is dropped. A [`Script`] determines the answers: a row of [`Reply`]s or a closure. With a
//! [`PrefixCache`] it reports usage by the provider's cache rules, with a clock that only the test moves. [`ServedModel`]s give it
//! windows, which it enforces with the errors of each wire format, and answers to questions of clients about models. A client's own
//! request for a summary is answered with text. Parts: `reply` answers, `script` their order, `play` the bytes of a reply, `serve` the
//! server, `questions` models, `recorded` requests.
//!
//! Not for: anything that ships, and tests that pause the clock of the runtime, which then runs ahead of sockets.

mod body;
mod client_summary;
mod clock;
mod gate;
mod play;
mod questions;
mod recorded;
mod reply;
mod script;
mod serve;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_provider::PrefixCache;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use client_summary::SummarisingClient;
pub use clock::TestClock;
pub use gate::Gate;
pub use questions::{ServedModel, ServerKind};
pub use recorded::RecordedRequest;
pub use reply::{Fault, Form, Pace, Reply};
pub use script::Script;

use script::Scripts;

/// The options of an upstream.
#[derive(Debug, Default)]
pub struct UpstreamOptions {
    /// The cache that determines reported usage; without one, replies report their own usage.
    pub cache: Option<PrefixCache>,
    /// The clock of the cache.
    pub clock: TestClock,
    /// The kind of server it imitates in answers about models.
    pub kind: ServerKind,
    /// The models it serves. A prompt larger than the window of its model is refused.
    pub models: Vec<ServedModel>,
    /// Answers to other paths, by path.
    pub pages: Vec<(String, Reply)>,
    /// The number of concurrent calls, as on a small server; further calls wait, and a call whose client disconnects makes its slot free.
    /// `None` means no limit.
    pub slots: Option<usize>,
}

/// A running server.
#[derive(Debug)]
pub struct ScriptedUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    asked: watch::Receiver<usize>,
    _stop: DropGuard,
}

/// The state that connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    scripts: Mutex<Scripts>,
    cache: Mutex<Option<PrefixCache>>,
    counter: Mutex<PrefixCache>,
    clock: TestClock,
    kind: ServerKind,
    models: Vec<ServedModel>,
    pages: Vec<(String, Reply)>,
    recorded: Mutex<Vec<RecordedRequest>>,
    asked: watch::Sender<usize>,
    hung_up: Semaphore,
    slots: Option<Arc<Semaphore>>,
}

impl ScriptedUpstream {
    /// Starts a server with this script.
    pub async fn start(script: impl Into<Script>) -> std::io::Result<Self> {
        Self::start_with(UpstreamOptions::default(), script).await
    }

    /// Starts a server with options.
    pub async fn start_with(options: UpstreamOptions, script: impl Into<Script>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (asked_sender, asked) = watch::channel(0);
        let shared = Arc::new(Shared {
            scripts: Mutex::new(Scripts::new(script.into())),
            cache: Mutex::new(options.cache),
            counter: Mutex::new(PrefixCache::new(throughline_provider::CacheStyle::None)),
            clock: options.clock,
            kind: options.kind,
            models: options.models,
            pages: options.pages,
            recorded: Mutex::new(Vec::new()),
            asked: asked_sender,
            hung_up: Semaphore::new(0),
            slots: options.slots.map(|slots| Arc::new(Semaphore::new(slots))),
        });
        let stop = CancellationToken::new();
        tokio::spawn(serve::accept(listener, Arc::clone(&shared), stop.clone()));
        Ok(Self { address, shared, asked, _stop: stop.drop_guard() })
    }

    /// Sets another script for requests that name this model.
    pub fn for_model(&self, model: &str, script: impl Into<Script>) {
        locked(&self.shared.scripts).for_model(model, script.into());
    }

    /// The base URL, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        locked(&self.shared.recorded).clone()
    }

    /// The calls in one of the wire formats, without questions about models.
    #[must_use]
    pub fn calls(&self) -> Vec<RecordedRequest> {
        self.requests().into_iter().filter(|request| request.wire_format().is_some()).collect()
    }

    /// The number of replies that were not requested yet.
    #[must_use]
    pub fn left(&self) -> usize {
        locked(&self.shared.scripts).left()
    }

    /// Waits until there were this many requests.
    pub async fn until_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        // The sender lives as long as the upstream.
        let _ = asked.wait_for(|count| *count >= times).await;
    }

    /// Waits until a client disconnected before the end of a reply.
    pub async fn until_hung_up(&self) {
        if let Ok(permit) = self.shared.hung_up.acquire().await {
            permit.forget();
        }
    }
}

/// Ports that are bound and never listened on while the process lives: a released port could be taken by another process.
static SILENT: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// An address on loopback that refuses connections.
pub async fn refused_url() -> std::io::Result<String> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((std::net::Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    locked(&SILENT).push(socket);
    Ok(format!("http://{address}"))
}

/// A row of replies for [`Script`].
pub(crate) type Replies = VecDeque<Reply>;

/// Locks a mutex whose value is valid even after a panic.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
