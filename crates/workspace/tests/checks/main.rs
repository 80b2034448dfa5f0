//! What holds for the whole workspace: its documents and its structure. Its name comes before that of `skipped`, which runs last.

mod documents;
mod layers;
