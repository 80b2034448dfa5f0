//! The tools, one file each.

#[cfg(test)]
mod edit_tests;
mod kept;
pub(crate) mod memory;
pub(crate) mod patch;
pub(crate) mod read_file;
pub(crate) mod recall;
pub(crate) mod search_files;
pub(crate) mod terminal;
mod text_file;
pub(crate) mod write_file;
