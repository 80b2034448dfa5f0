//! Plan, prune, cut, summarise, check, assemble; no I/O.
