//! Events, metrics and traces.

pub(crate) mod activity;
pub(crate) mod event;
pub(crate) mod event_feed;
pub(crate) mod metrics;
pub(crate) mod outbox;
pub(crate) mod relay;
pub(crate) mod request_context;
pub(crate) mod runs;
pub(crate) mod store;
pub(crate) mod traces;
pub(crate) mod upstream;
