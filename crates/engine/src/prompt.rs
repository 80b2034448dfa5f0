//! The request to a model: the view, the envelope around it, and the bytes of both.
//!
//! `view` has the messages with their sizes and bytes, `envelope` the system prompt, tools and parameters. `encode` writes
//! the request body. `pairs`, `tool_output` and `images` adjust messages before their first send, `tool_list` writes lists
//! of tools without those that are deferred.

pub(crate) mod cached_prompt;
pub(crate) mod encode;
pub(crate) mod envelope;
pub(crate) mod estimate;
pub(crate) mod images;
pub(crate) mod pairs;
pub(crate) mod request_extras;
pub(crate) mod spare_body;
pub(crate) mod tool_list;
pub(crate) mod tool_output;
pub(crate) mod view;
pub(crate) mod wire_form;
pub(crate) mod wire_tools;
