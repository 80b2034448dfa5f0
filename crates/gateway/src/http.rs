//! The HTTP surface: connections, routes, bodies, transport errors.

pub(crate) mod inbound;
pub(crate) mod path;
pub(crate) mod peer;
pub(crate) mod readiness;
pub(crate) mod request_body;
pub(crate) mod response_body;
pub(crate) mod router;
pub(crate) mod server;
pub(crate) mod tls;
