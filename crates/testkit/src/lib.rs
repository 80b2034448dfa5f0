//! For tests only: generated conversations in every wire format.
//!
//! [`conversation`] and [`conversation_with`] are proptest strategies of lists that a provider accepts, from nothing to a few hundred
//! messages, which shrink to the few messages that matter; [`broken_conversation`] generates lists with one fault. [`from_picture`]
//! writes small lists from a row of letters. [`big_transcript`] generates a coding session of any size for benchmarks.
//! [`topic_conversation`] generates a conversation about several topics and knows which words belong to which topic. [`scenario()`]
//! generates a conversation in which the fate of every request is known.
//! [`claude_code_log`] and [`codex_log`] wrap a list in the log format of those clients.
//! With the feature `upstream`, [`ScriptedUpstream`] answers over HTTP as a test scripts it.
//! [`check_golden`] compares a text with its golden file, byte for byte.
//! [`still_host!`] defines a host with a fixed clock.
//! [`PostgresServer`] is a server for tests of the record on PostgreSQL.
//! [`skip`] reports that a test cannot run on this machine.
//! [`Coverage`] counts what a run reached, [`cases`] returns the number of cases of a property. [`mutate`] alters bytes like a fuzzer,
//! but the same way on every machine.
//!
//! ```
//! use throughline_testkit::from_picture;
//! use throughline_transcript::WireFormat;
//!
//! // A system prompt, a question, an answer.
//! assert_eq!(from_picture(WireFormat::Chat, "sua").json.len(), 3);
//! ```
//!
//! Not for: anything that ships.

mod anthropic_wire;
mod big;
mod broken;
mod cases;
mod chat_wire;
mod code;
mod coverage;
mod golden;
mod host;
mod json_text;
mod list;
mod logs;
mod mutate;
mod notation;
mod object_storage;
mod pen;
mod plan;
mod postgres;
mod responses_wire;
mod rng;
mod scenario;
mod skip;
mod strategy;
mod tools;
mod topics;
#[cfg(feature = "upstream")]
mod upstream;
mod words;

pub use big::big_transcript;
pub use broken::{BrokenList, Fault, break_list, broken_conversation};
pub use cases::cases;
pub use coverage::{Coverage, Seam, possible_seams};
pub use golden::{check_golden, check_golden_folder, json_lines, updates_golden};
pub use list::GeneratedList;
pub use logs::{claude_code_log, codex_log};
pub use mutate::mutate;
pub use notation::{from_picture, group_kinds, group_picture, picture};
pub use object_storage::ObjectStorage;
pub use plan::{ConversationOptions, Ending};
pub use postgres::PostgresServer;
pub use rng::Rng;
pub use scenario::{RequestFate, Scenario, ScenarioOptions, ScenarioRequest, scenario};
pub use skip::{Missing, SkipReport, skip, skip_file};
pub use strategy::{
    ConversationTree, Conversations, any_conversation, conversation, conversation_from_seed,
    conversation_with,
};
pub use topics::{TopicConversation, TopicOptions, TopicShape, topic_conversation};
#[cfg(feature = "upstream")]
pub use upstream::{
    Fault as ReplyFault, Form, Gate, Pace, RecordedRequest, Reply, Script, ScriptedUpstream, ServedModel,
    ServerKind, SummarisingClient, TestClock, UpstreamOptions, refused_url,
};
