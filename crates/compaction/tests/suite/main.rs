//! Compaction from outside: what must hold for every conversation, named cases, and what the model sees.

mod harness;
mod invariants;
mod properties;
