//! The order in which models are called for summaries, and which of them are skipped for a while.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_store::Millis;

use super::failure::RouteFailure;
use super::form::SummaryForm;
use crate::limits::target::ModelTarget;

/// A model that can be called for summaries.
#[derive(Clone, Debug)]
pub struct SummaryRoute {
    /// The model.
    pub target: ModelTarget,
    /// How long it may be silent.
    pub time_limit: Duration,
}

/// The identity of a route: the model, its endpoint, and the form of the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    model: String,
    endpoint: String,
    form: SummaryForm,
}

impl SummaryRoute {
    /// Returns the key for a form. The standalone form, which is always possible, represents the route as a whole; the inline form may fail
    /// alone.
    pub(crate) fn key(&self, form: SummaryForm) -> RouteKey {
        RouteKey { model: self.target.model.clone(), endpoint: self.target.endpoint.clone(), form }
    }

    /// Whether this is the same model at the same endpoint.
    pub(crate) fn is(&self, other: &ModelTarget) -> bool {
        self.target.model == other.model && self.target.endpoint == other.endpoint
    }
}

impl fmt::Display for SummaryRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.target.model, self.target.provider)
    }
}

/// The recent failures of routes. Shared by all conversations of a process, because a provider that is down is down for all.
#[derive(Debug, Default)]
pub struct RouteHealth {
    known: Mutex<HashMap<RouteKey, RouteHistory>>,
}

#[derive(Clone, Debug, Default)]
struct RouteHistory {
    failures: u32,
    rest: Option<(RouteFailure, Millis)>,
    /// The window stated by a refusal.
    window_tokens: Option<u64>,
}

impl RouteHealth {
    fn known(&self) -> MutexGuard<'_, HashMap<RouteKey, RouteHistory>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the failure because of which a route is skipped now, if it is.
    pub(crate) fn resting(&self, route: &RouteKey, now_ms: Millis) -> Option<RouteFailure> {
        let (failure, until_ms) = self.known().get(route)?.rest.clone()?;
        let for_ms = u64::try_from(until_ms.saturating_sub(now_ms)).ok().filter(|ms| *ms > 0)?;
        Some(RouteFailure::Resting { failure: Box::new(failure), until_ms, for_ms })
    }

    /// Records a failure of a route.
    pub(crate) fn failed(&self, route: RouteKey, failure: &RouteFailure, now_ms: Millis) {
        let mut known = self.known();
        let lately = known.entry(route).or_default();
        if let Some(rest_ms) = failure.rest_ms(lately.failures) {
            lately.failures = lately.failures.saturating_add(1);
            lately.rest = Some((failure.clone(), now_ms.saturating_add_unsigned(rest_ms)));
        }
    }

    /// Records a success of a route.
    pub(crate) fn worked(&self, route: &RouteKey) {
        if let Some(lately) = self.known().get_mut(route) {
            lately.failures = 0;
            lately.rest = None;
        }
    }

    /// Records a window that a refusal stated or implied.
    pub(crate) fn learn_window(&self, route: RouteKey, window_tokens: u64) {
        self.known().entry(route).or_default().window_tokens = Some(window_tokens);
    }

    /// Returns the recorded window of a route.
    pub(crate) fn learnt_window(&self, route: &RouteKey) -> Option<u64> {
        self.known().get(route)?.window_tokens
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
