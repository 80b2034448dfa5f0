//! A layer over the store that counts failures and recorded calls, and measures durations. It changes no result.

use std::sync::Arc;
use std::time::Instant;

use throughline_store::{NewCall, Result, Store, StoreLayer, StoreMethod};

use crate::telemetry::metrics::Metrics;

/// Counts failures and recorded calls of the inner store.
pub(crate) struct InstrumentedStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) metrics: Arc<Metrics>,
}

impl StoreLayer for InstrumentedStore {
    type Inner = dyn Store;

    fn around<T>(&self, method: StoreMethod, run: impl FnOnce(&Self::Inner) -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let done = run(self.inner.as_ref());
        self.metrics.record_operation(method.writes, began.elapsed());
        done.inspect_err(|error| self.metrics.record_error(error))
    }

    fn calls_recorded(&self, calls: &[NewCall]) {
        self.metrics.count_calls(calls);
    }
}
