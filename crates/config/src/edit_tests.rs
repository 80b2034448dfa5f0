//! Tests of edit.
