//! Removes conversations that are older than `store.retention` allows, in one process at a time.

use throughline_store::{
    Guard, GuardScope, LockOutcome, LockRecord, LockRequest, Millis, OperatorAction, RemovalReport,
    RetentionPolicy, Store as _, StoreError, StoreProgress, apply_retention, note_action,
};

use throughline_config::RetentionSettings;

use crate::app::App;
use crate::host::process::{is_alive, this_process};
use crate::record::RecordStore;

/// The lock of the removing process. It expires unless renewed, and at once if its holder was killed on this machine.
const LOCK: &str = "retention";
const LIFETIME_MS: Millis = 10 * 60 * 1000;
/// The guard with the time of the last removal.
const LAST_RUN: &str = "retention_ran";
/// The interval of removals by gateways.
pub(crate) const EVERY_MS: Millis = 60 * 60 * 1000;

/// The result of an attempt.
#[derive(Debug)]
pub(crate) enum RetentionOutcome {
    Done(RemovalReport),
    /// Another process is removing conversations.
    HeldBy(LockRecord),
    /// The last removal was a short time ago.
    DoneLately,
}

/// Converts the settings to a policy.
pub(crate) fn policy(settings: &RetentionSettings) -> RetentionPolicy {
    let owners = settings.owners.iter().map(|(owner, retention)| (owner.clone(), retention.days));
    RetentionPolicy { days: settings.days, owners: owners.collect() }
}

/// Removes what is older than the policy allows, unless another process does. `unless_lately` is for callers that ask often.
pub(crate) fn apply(
    store: &RecordStore,
    app: &App,
    policy: &RetentionPolicy,
    what: &str,
    unless_lately: bool,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<RetentionOutcome, StoreError> {
    let mut request = LockRequest {
        name: LOCK.to_owned(),
        holder: this_process(what),
        now_ms: app.now().ms,
        expires_ms: app.now().ms + LIFETIME_MS,
    };
    if let LockOutcome::HeldBy(held) = store.lock(&request, &is_alive)? {
        return Ok(RetentionOutcome::HeldBy(held));
    }
    let mut run = || -> Result<RetentionOutcome, StoreError> {
        let now_ms = request.now_ms;
        let last = store.guard(&GuardScope::Global, LAST_RUN, now_ms)?;
        if unless_lately && last.is_some_and(|last| last.set_ms > now_ms - EVERY_MS && last.set_ms <= now_ms)
        {
            return Ok(RetentionOutcome::DoneLately);
        }
        let report = apply_retention(store.upkeep(), policy, now_ms, false, &mut |state| {
            progress(state);
            let now_ms = app.now().ms;
            if now_ms >= request.now_ms + LIFETIME_MS / 10 {
                (request.now_ms, request.expires_ms) = (now_ms, now_ms + LIFETIME_MS);
                if let LockOutcome::HeldBy(held) = store.lock(&request, &is_alive)? {
                    return Err(StoreError::Locked { name: LOCK.to_owned(), holder: held.holder });
                }
            }
            Ok(())
        })?;
        if report.conversations > 0 {
            note_action(store.upkeep(), &action("retention", "", &report, app))?;
        }
        let ran = Guard { name: LAST_RUN.to_owned(), value: true.into(), set_ms: now_ms, expires_ms: None };
        store.set_guard(&GuardScope::Global, LAST_RUN, Some(&ran))?;
        Ok(RetentionOutcome::Done(report))
    };
    let outcome = run();
    store.unlock(&request.name, &request.holder)?;
    outcome
}

/// The log entry of an operator's action.
pub(crate) fn action(action: &str, owner: &str, report: &RemovalReport, app: &App) -> OperatorAction {
    let user = app.env.iter().find(|(name, _)| name == "USER").map_or("", |(_, user)| user.as_str());
    OperatorAction {
        action: action.to_owned(),
        owner: owner.to_owned(),
        at_ms: app.now().ms,
        by: format!("{user}@{}", this_process("").host),
        conversations: report.conversations,
        messages: report.messages,
    }
}
