//! For tests only: generators of conversations.
