//! Talking to models: what went wrong with a call, where the prompt is cached and why it was not, how large a window is.
//!
//! [`classify`] turns a failed call into [`Trouble`] of a kind that says what can be done about it.
//!
//! Not for: deciding what is done about it (that is the engine's), and the form of requests and answers (that is the
//! wire's).

mod cache_marks;
mod cache_miss;
mod cache_policy;
mod classify;
mod codes;
mod failure;
mod fingerprint;
mod json_edit;
mod lexemes;
mod phrases;
mod retry_after;
mod said;
mod sizes;
mod trouble;
mod window;
mod window_answers;
mod wordings;

pub use cache_marks::{
    CacheMarks, MOST_MARKS, Marked, PlacedMarks, Unmarked, block_form, count_marks, without_marks,
};
pub use cache_miss::{CacheOutcome, CacheRules, SentPrompt, cache_outcome, reports_cache};
pub use cache_policy::{CachePolicy, CacheSeller, CacheTtl, MarkLayout, prompt_cache_key};
pub use classify::classify;
pub use failure::{Failure, TransportFault};
pub use fingerprint::{Fingerprint, PieceHash};
pub use sizes::AskedFor;
pub use trouble::{
    ConnectStage, ImageComplaint, RequestComplaint, Retry, Trouble, TroubleKind, WrongWireSign,
};
pub use window::{
    EndpointWindow, ResolvedWindow, WindowCandidate, WindowFacts, WindowQuestion, WindowRoom, WindowSource,
};
pub use window_answers::{
    window_in_llama_props, window_in_lm_studio, window_in_models_list, window_in_ollama_running,
    window_in_ollama_show,
};
