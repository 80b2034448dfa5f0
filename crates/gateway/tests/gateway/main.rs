//! The gateway over real HTTP, between a client and an upstream that answers by script.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod api;
mod compactions;
mod conversations;
mod daily;
mod described;
mod doors;
mod draining;
mod faithful;
mod fleet;
mod golden_lists;
mod golden_requests;
mod hostile;
mod hygiene;
mod long;
mod operations;
mod page;
mod previous;
mod recall;
mod refusals;
mod secret;
mod sessions;
mod shared_record;
mod stage;
mod talk;
mod tenants;
mod tokens;
mod tools;
mod traced;
mod translated;
