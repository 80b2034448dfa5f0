//! What every record must do, whatever it is kept in. Each promise is one function over the trait; all of them run on
//! every implementation.
//!
//! Not for: how one implementation survives crashes, damage or other processes; those tests stand beside it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

#[macro_use]
pub(crate) mod support;

mod artifacts;
mod branches;
mod calls;
mod chains;
mod deleting;
mod guards;
mod listing;
mod locks;
mod messages;
mod nodes;
mod owners;
mod questions;
mod resolving;
mod search;
mod selecting;
mod sessions;
mod versions;
mod views;
