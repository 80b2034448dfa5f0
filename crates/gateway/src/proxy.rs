//! Requests for providers: managed calls, and requests that pass through unchanged.

pub(crate) mod call;
pub(crate) mod client_history;
pub(crate) mod count_tokens;
pub(crate) mod end_buffer;
mod engine_call;
pub(crate) mod managed_request;
pub(crate) mod passthrough;
pub(crate) mod provider_objects;
pub(crate) mod provider_paths;
pub(crate) mod response_stream;
pub(crate) mod targets;
pub(crate) mod upstreams;
pub(crate) mod whole_events;
