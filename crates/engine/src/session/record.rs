//! Access to the record: blocking calls on separate threads, and the values stored in it for a conversation.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use throughline_store::{
    Guard, GuardScope, Lease, LockOutcome, LockRequest, Millis, NewCall, Owner, Session, SessionId, Store,
    StoreError, StoredPreamble, Summary, Version, ViewMessage,
};
use throughline_tokens::Calibrator;
use tokio::task::{JoinError, JoinHandle};

use super::{SessionError, SessionSetup};
use crate::decide::guard::{GUARD_NAME, GuardState};
use crate::host::Host;
use crate::limits::target::ModelTarget;
use crate::prompt::view::LiveView;

/// The name under which a model's calibration is stored.
pub(super) const CALIBRATION: &str = "calibration";
/// The name under which a window stated by an error is stored, with its model and endpoint.
pub(super) const LEARNT_WINDOW: &str = "window";
/// How often to read a conversation that another process keeps writing to.
const READS_IN_A_ROW: usize = 4;
/// The duration of a lock that is held while a session is open, renewed by each call. It is released at once if its holder died.
const LEASE_MS: u64 = 10 * 60 * 1_000;
/// The duration of a lock that is renewed continuously: how long a conversation cannot be compacted after a gateway died on another
/// machine.
const SHORT_LEASE_MS: u64 = 30 * 1_000;

/// Runs a blocking call on another thread.
pub(super) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    joined(tokio::task::spawn_blocking(act).await)
}

/// Returns the result of a call on another thread.
pub(super) fn joined<T>(done: Result<Result<T, StoreError>, JoinError>) -> Result<T, StoreError> {
    done.unwrap_or_else(|error| Err(StoreError::Database { what: "to be asked", source: error.into() }))
}

/// A conversation as loaded from the record.
pub(super) struct LoadedConversation {
    pub(super) view: LiveView,
    pub(super) version: Version,
    pub(super) root: SessionId,
    pub(super) compactions: u64,
    pub(super) guard: GuardState,
    pub(super) calibrator: Calibrator,
}

/// Loads the newest session of a chain.
pub(super) async fn load(
    setup: &SessionSetup,
    id: &SessionId,
    now_ms: Millis,
) -> Result<LoadedConversation, StoreError> {
    let (store, owner, id) = (Arc::clone(&setup.store), setup.owner.clone(), id.clone());
    let scope = setup.target.scope();
    let (session, version, root, compactions, shown, summaries, guard, calibrator) = blocking(move || {
        let (version, chain) = chain_with_version(store.as_ref(), &owner, &id)?;
        let compactions = Session::compactions_in_view(&chain);
        let root = chain.first().map_or_else(|| id.clone(), |first| first.id.clone());
        let tip = chain
            .into_iter()
            .next_back()
            .ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() })?;
        let (shown, summaries) = shown(store.as_ref(), &owner, &tip)?;
        let guard = kept::<GuardState>(
            store.as_ref(),
            &GuardScope::Chain(owner.clone(), tip.id.clone()),
            GUARD_NAME,
            now_ms,
        )?;
        let calibrator = kept::<Calibrator>(store.as_ref(), &scope, CALIBRATION, now_ms)?;
        Ok((tip, version, root, compactions, shown, summaries, guard, calibrator))
    })
    .await?;
    let target = &setup.target;
    let view = LiveView::load(session, shown, summaries, target.token_model(), target.cache)?;
    Ok(LoadedConversation { view, version, root, compactions, guard, calibrator })
}

/// Returns a chain and its version at the same moment.
fn chain_with_version(
    store: &dyn Store,
    owner: &Owner,
    id: &SessionId,
) -> Result<(Version, Vec<Session>), StoreError> {
    // A write between the two queries changes the end of the conversation. If that happens too often, the last pair is used: its version is
    // older than the chain, so the next comparison detects the write and loads again.
    let mut version = store.version(owner, id)?;
    let mut chain = store.chain(owner, id)?;
    for _ in 0..READS_IN_A_ROW {
        let is_end = |tip: &Session| tip.id == version.tip && tip.next_seq == version.next_seq;
        if chain.last().is_some_and(is_end) {
            break;
        }
        version = store.version(owner, id)?;
        chain = store.chain(owner, id)?;
    }
    Ok((version, chain))
}

/// The last answered call of a session.
pub(super) struct LastCall {
    pub(super) call: NewCall,
    /// The end of the view that was sent.
    pub(super) to_seq: u64,
    pub(super) preamble: StoredPreamble,
}

/// Returns the last answered call of a session, if any.
pub(super) async fn last_call(
    setup: &SessionSetup,
    session: &Session,
) -> Result<Option<LastCall>, StoreError> {
    let (store, owner, id) = (Arc::clone(&setup.store), setup.owner.clone(), session.id.clone());
    blocking(move || {
        let calls = store.calls(&owner, &id)?;
        let mut answered =
            calls.into_iter().rev().filter(|call| call.session == id && call.call.error.is_none());
        // Calls outside the conversation do not record how far they sent it.
        let found =
            answered.find_map(|call| Some((call.call.sent_to_seq?, call.call.preamble.clone()?, call.call)));
        let Some((to_seq, preamble, call)) = found else { return Ok(None) };
        Ok(store.preamble(&preamble)?.map(|preamble| LastCall { call, to_seq, preamble }))
    })
    .await
}

fn shown(
    store: &dyn Store,
    owner: &Owner,
    session: &Session,
) -> Result<(Vec<ViewMessage>, Vec<Summary>), StoreError> {
    let shown = store.view(owner, &session.id, Some(session.next_seq))?;
    let summaries = shown.iter().filter_map(|item| match item {
        ViewMessage::Summary { summary, .. } => Some(store.summary(owner, *summary)),
        _ => None,
    });
    let summaries = summaries.collect::<Result<_, _>>()?;
    Ok((shown, summaries))
}

/// Returns a stored value; the default if there is none, or if a later version wrote it.
fn kept<T: serde::de::DeserializeOwned + Default>(
    store: &dyn Store,
    scope: &GuardScope,
    name: &str,
    now_ms: Millis,
) -> Result<T, StoreError> {
    let guard = store.guard(scope, name, now_ms)?;
    Ok(guard.and_then(|guard| serde_json::from_value(guard.value).ok()).unwrap_or_default())
}

impl ModelTarget {
    /// Returns the window of a model that an error stated, if one did.
    pub fn learnt_window(
        store: &dyn Store,
        scope: &GuardScope,
        now_ms: Millis,
    ) -> Result<Option<u64>, StoreError> {
        let guard = store.guard(scope, LEARNT_WINDOW, now_ms)?;
        Ok(guard.and_then(|guard| guard.value.get("tokens")?.as_u64()))
    }
}

/// Returns a model's calibration factor from the record.
pub(crate) fn learnt_calibration(
    store: &dyn Store,
    scope: &GuardScope,
    now_ms: Millis,
) -> Result<Calibrator, StoreError> {
    kept(store, scope, CALIBRATION, now_ms)
}

/// Returns a model's calibration from the record.
pub(super) async fn calibrator(
    setup: &SessionSetup,
    scope: GuardScope,
    now_ms: Millis,
) -> Result<Calibrator, StoreError> {
    let store = Arc::clone(&setup.store);
    blocking(move || kept(store.as_ref(), &scope, CALIBRATION, now_ms)).await
}

/// Updates a model's calibration with an estimate and a count, together with what other conversations have learnt.
pub(super) async fn learn(
    setup: &SessionSetup,
    scope: GuardScope,
    (estimated_added, measured_added): (u64, u64),
    now_ms: Millis,
) -> Result<Calibrator, StoreError> {
    let store = Arc::clone(&setup.store);
    blocking(move || {
        let mut calibrator = kept::<Calibrator>(store.as_ref(), &scope, CALIBRATION, now_ms)?;
        calibrator.observe(estimated_added, measured_added);
        let guard = Guard {
            name: CALIBRATION.to_owned(),
            value: json!(calibrator),
            set_ms: now_ms,
            expires_ms: None,
        };
        store.set_guard(&scope, CALIBRATION, Some(&guard))?;
        Ok(calibrator)
    })
    .await
}

/// Calls that could not be recorded.
pub(super) struct BookingFailure {
    pub(super) error: StoreError,
    /// The remaining calls.
    pub(super) rest: Vec<(SessionId, NewCall)>,
}

/// Records calls, each for the session whose view it sent. A call is recorded even if its key exists already: some servers give every
/// answer the same one.
pub(super) fn book(
    store: &dyn Store,
    owner: &Owner,
    preamble: Option<StoredPreamble>,
    calls: Vec<(SessionId, NewCall)>,
) -> Result<(), BookingFailure> {
    if let Some(preamble) = preamble
        && let Err(error) = store.put_preamble(&preamble)
    {
        return Err(BookingFailure { error, rest: calls });
    }
    let book = |session: &SessionId, call: &NewCall| {
        if store.record_calls(owner, session, vec![call.clone()])? == 0 {
            store.record_calls(owner, session, vec![NewCall { key: None, ..call.clone() }])?;
        }
        Ok(())
    };
    for (at, (session, call)) in calls.iter().enumerate() {
        if let Err(error) = book(session, call) {
            let rest = calls.get(at..).unwrap_or_default().to_vec();
            return Err(BookingFailure { error, rest });
        }
    }
    Ok(())
}

/// A lock of a conversation against other processes, released when dropped.
pub(super) struct ConversationLock {
    store: Arc<dyn Store>,
    lease: Lease,
    /// Whether the lock is to be renewed. A renewal holds this mutex, so that none happens after the release.
    is_held: Arc<Mutex<bool>>,
    /// The task that renews the lock until it is dropped.
    renewal: Option<JoinHandle<()>>,
}

impl ConversationLock {
    /// Returns the lease that a write under this lock names.
    pub(super) fn lease(&self) -> Lease {
        self.lease.clone()
    }

    /// Extends the lock. If another process held and released it meanwhile, the lease is a new one.
    pub(super) async fn renew(&mut self, setup: &SessionSetup, chain: u64) -> Result<(), SessionError> {
        let (store, host) = (Arc::clone(&setup.store), Arc::clone(&setup.host));
        let request = request(host.as_ref(), LockRequest::conversation_name(chain), LEASE_MS);
        self.lease = blocking(move || Ok(lease(store.as_ref(), host.as_ref(), request))).await??;
        Ok(())
    }
}

impl Drop for ConversationLock {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        *self.is_held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        // Short, and worth blocking for: otherwise others would wait for the lease to expire, as they do after a failure.
        let _ = self.store.unlock(&self.lease.name, &self.lease.holder);
    }
}

/// Locks a conversation until the returned value is dropped. The caller renews it.
pub(super) async fn hold(setup: &SessionSetup, chain: u64) -> Result<ConversationLock, SessionError> {
    take(setup, LockRequest::conversation_name(chain), LEASE_MS).await
}

/// Takes the lock of this name until the returned value is dropped, with a short lease that is renewed meanwhile. If this process dies on a
/// machine that others cannot check, they wait no longer than that.
pub(super) async fn hold_renewing(
    setup: &SessionSetup,
    name: String,
) -> Result<ConversationLock, SessionError> {
    let mut lock = take(setup, name.clone(), SHORT_LEASE_MS).await?;
    lock.renewal = Some(tokio::spawn(renew(setup.clone(), name, Arc::clone(&lock.is_held))));
    Ok(lock)
}

/// Renews a lock until it is released. If a renewal is too late, another process may take the lock, and the write under it fails.
async fn renew(setup: SessionSetup, name: String, is_held: Arc<Mutex<bool>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(SHORT_LEASE_MS / 3)).await;
        let (store, host, is_held) =
            (Arc::clone(&setup.store), Arc::clone(&setup.host), Arc::clone(&is_held));
        let name = name.clone();
        let _ = blocking(move || {
            let is_held = is_held.lock().unwrap_or_else(PoisonError::into_inner);
            match *is_held {
                true => store
                    .lock(&request(host.as_ref(), name, SHORT_LEASE_MS), &|holder| host.is_alive(holder))
                    .map(drop),
                false => Ok(()),
            }
        })
        .await;
    }
}

fn request(host: &dyn Host, name: String, lease_ms: u64) -> LockRequest {
    let now_ms = host.now_ms();
    LockRequest { name, holder: host.holder(), now_ms, expires_ms: now_ms.saturating_add_unsigned(lease_ms) }
}

/// Takes a lock; a process that holds it already renews it. If nobody waits for it any more when it is taken, it is released at once.
async fn take(setup: &SessionSetup, name: String, lease_ms: u64) -> Result<ConversationLock, SessionError> {
    let (store, host) = (Arc::clone(&setup.store), Arc::clone(&setup.host));
    let request = request(host.as_ref(), name, lease_ms);
    blocking(move || {
        let lease = lease(store.as_ref(), host.as_ref(), request);
        let lock =
            |lease| ConversationLock { store, lease, is_held: Arc::new(Mutex::new(true)), renewal: None };
        Ok(lease.map(lock))
    })
    .await?
}

/// Takes a lock and returns its lease.
fn lease(store: &dyn Store, host: &dyn Host, request: LockRequest) -> Result<Lease, SessionError> {
    match store.lock(&request, &|holder| host.is_alive(holder))? {
        LockOutcome::Taken { fence, .. } => Ok(Lease { name: request.name, holder: request.holder, fence }),
        LockOutcome::HeldBy(held) => {
            Err(SessionError::Locked { holder: held.holder, until_ms: held.expires_ms })
        }
    }
}
