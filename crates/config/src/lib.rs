//! Typed settings, their defaults, and where each value came from.
