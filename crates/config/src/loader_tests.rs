//! Tests of loader.
