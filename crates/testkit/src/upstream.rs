//! A scripted upstream: a real server on loopback that speaks all three wires, records what it is asked, and answers as a
//! test wants it to, faults included.
//!
//! It listens on a port of its own and stops when it is dropped. A [`Script`] says what is answered: a row of [`Reply`]s
//! or a closure. With a [`PrefixCache`] it reports usage as the provider's cache rules would have it, by a clock that only
//! the test moves. [`ServedModel`]s give it windows, which it enforces in the words of each wire, and answers to the
//! questions that clients ask about models. A client's own request for a summary is answered with text. Parts: `reply` what is answered, `script` in which order, `play` how a reply
//! becomes bytes, `serve` the server, `questions` what models there are, `recorded` what was asked.
//!
//! Not for: anything that ships, nor for tests that pause the clock of the runtime, which runs ahead of sockets.

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

/// How an upstream is set up.
#[derive(Debug, Default)]
pub struct UpstreamOptions {
    /// How prompts are cached, for reports of usage; without one, replies report what they were given.
    pub cache: Option<PrefixCache>,
    /// What time it is for the cache.
    pub clock: TestClock,
    /// Which server it passes itself off as when it is asked about models.
    pub kind: ServerKind,
    /// The models it has. A prompt beyond the window of one of them is refused.
    pub models: Vec<ServedModel>,
    /// Answers to other paths, by path.
    pub pages: Vec<(String, Reply)>,
    /// How many calls it works on at once, as a small server does; the others wait, and a call whose client hangs up gives
    /// its place to the next. No limit without it.
    pub slots: Option<usize>,
}

/// A server that is listening.
#[derive(Debug)]
pub struct ScriptedUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    asked: watch::Receiver<usize>,
    _stop: DropGuard,
}

/// What connections share.
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
    /// Starts a server that answers with this script.
    pub async fn start(script: impl Into<Script>) -> std::io::Result<Self> {
        Self::start_with(UpstreamOptions::default(), script).await
    }

    /// Starts a server that is set up in a special way.
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

    /// Plays another script to requests that name this model.
    pub fn for_model(&self, model: &str, script: impl Into<Script>) {
        locked(&self.shared.scripts).for_model(model, script.into());
    }

    /// Its address, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything it was asked, in the order in which it came.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        locked(&self.shared.recorded).clone()
    }

    /// What it was asked on one of the wires, without questions about models.
    #[must_use]
    pub fn calls(&self) -> Vec<RecordedRequest> {
        self.requests().into_iter().filter(|request| request.wire_format().is_some()).collect()
    }

    /// Replies that were not requested yet.
    #[must_use]
    pub fn left(&self) -> usize {
        locked(&self.shared.scripts).left()
    }

    /// Waits until it was asked so many times in all.
    pub async fn until_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        // The sender lives as long as the upstream does.
        let _ = asked.wait_for(|count| *count >= times).await;
    }

    /// Waits until somebody hung up before the end of a reply that stalled or was still being sent.
    pub async fn until_hung_up(&self) {
        if let Ok(permit) = self.shared.hung_up.acquire().await {
            permit.forget();
        }
    }
}

/// Ports that are taken and never listened on, for as long as the process lives: one that was given back could be
/// anybody's a moment later.
static SILENT: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// An address on loopback where no server listens: connections are refused.
pub async fn refused_url() -> std::io::Result<String> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((std::net::Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    locked(&SILENT).push(socket);
    Ok(format!("http://{address}"))
}

/// A row of replies for [`Script`].
pub(crate) type Replies = VecDeque<Reply>;

/// A lock whose holder cannot leave anything half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
