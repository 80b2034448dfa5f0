//! Agents that hold conversations over real HTTP with a scripted model.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod boundary;
mod context;
mod hostile;
mod long;
mod stage;
mod turns;
