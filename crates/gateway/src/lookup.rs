//! Finds the session that a request continues.

pub(crate) mod client_info;
pub(crate) mod message_key;
pub(crate) mod open_session;
pub(crate) mod prefix_match;
pub(crate) mod previous_response;
pub(crate) mod quotes;
pub(crate) mod relations;
pub(crate) mod session_lookup;
pub(crate) mod session_pool;
