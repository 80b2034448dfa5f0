//! A conversation: messages of every wire format in one model, groups, and the rules that providers enforce.
//!
//! A [`Message`] has its original JSON and the positions of its role, text, tool calls and results inside it; nothing is re-serialised, so
//! an untouched message is written byte for byte as it was read. [`Transcript::decode`] reads request bodies, message lists and session logs;
//! [`Groups`] says which messages belong together; [`cuts`](CutPoints::of) says where a conversation may be cut; [`Violation::find`] lists what
//! a provider would refuse.
//!
//! For programs that read or write conversations with models: importers, checkers, compactors.
//!
//! ```
//! use throughline_transcript::{DecodeOptions, Groups, Transcript, Violation, WireFormat};
//!
//! let list = br#"[{"role":"user","content":"Hi"},{"role":"tool","tool_call_id":"c1","content":"42"}]"#;
//! let transcript = Transcript::decode(list.to_vec(), &DecodeOptions::default())?;
//! assert_eq!(transcript.wire_format, WireFormat::Chat);
//! assert_eq!(transcript.messages[0].json(), r#"{"role":"user","content":"Hi"}"#);
//!
//! let groups = Groups::of(&transcript.messages);
//! let broken = Violation::find(transcript.wire_format, &transcript.messages, &groups);
//! assert_eq!(broken[0].message, 1, "a result without its call");
//! # Ok::<(), throughline_transcript::DecodeError>(())
//! ```
//!
//! Not for: sockets, files, clocks, token counts.

mod blocks;
mod check;
mod claude_facts;
mod claude_log;
mod codex_facts;
mod codex_log;
mod counted;
mod cuts;
mod decode;
mod detect;
mod group;
mod hidden;
mod human;
mod json;
mod layout;
mod lines;
mod log_facts;
mod log_reading;
mod log_time;
mod log_trace;
mod members;
mod message;
mod quotes;
mod shared_text;
mod transcript;
mod validate;
mod write;

pub use blocks::{decode_message, decode_message_text};
pub use counted::{counted, noun};
pub use cuts::{CutPoints, CutRule};
pub use decode::{DecodeError, DecodeOptions};
pub use detect::WireFormatChoice;
pub use group::{Group, GroupKind, Groups};
pub use hidden::is_hidden;
pub use json::{JsonStr, Span, compact_json_string};
pub use log_facts::{LogCall, LogFacts, NewView, SubAgent};
pub use log_time::parse_rfc3339_millis;
pub use members::RawJson;
pub use message::{Arguments, ContentHash, Message, Part, Role};
pub use shared_text::SharedText;
pub use transcript::{Note, Preamble, Source, Transcript};
pub use validate::{Violation, ViolationKind};
pub use write::{WireFormat, text_message, tool_result_stub};
