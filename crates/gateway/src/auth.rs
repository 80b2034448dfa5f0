//! Who may use the gateway: access tokens with their limits, browser cookies, and checks of requests from this machine.

pub(crate) mod access_tokens;
pub(crate) mod admission;
pub(crate) mod login;
pub(crate) mod policy;
pub(crate) mod rate_limit;
pub(crate) mod spend;
pub(crate) mod token_headers;
