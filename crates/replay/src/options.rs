//! The options of a replay.

use std::time::Duration;

use throughline_engine::{ToolOutputPolicy, ToolSchema};
use throughline_provider::CacheTtl;
use throughline_tokens::{Catalogue, LimitPolicy};

use crate::bill::SummaryCost;
use crate::client_prompt::ClientPrompt;

/// The options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The model whose prices, window and token counts are used.
    pub model: String,
    /// Its window, and when the conversation is compacted.
    pub limits: LimitPolicy,
    /// The cache lifetime that Throughline requests; `None` for the recorded client's.
    pub ttl: Option<CacheTtl>,
    /// The policy for long results, besides their limits.
    pub tool_output: ToolOutputPolicy,
    /// The assumed cost of summaries.
    pub summaries: SummaryCost,
    /// How a model's notes are requested: `Some` as in the gateway, once before each compaction with this wait; `None` for notes that are
    /// kept up to date until needed, as in `chat`.
    pub summary_wait: Option<Duration>,
    /// Prices and sizes.
    pub catalogue: Catalogue,
    /// The client's prompt before its messages, if the log leaves it out and tools can be deferred; `None` for text of the same size.
    pub client: Option<ClientPrompt>,
    /// Our tools after the client's, if results are shortened or tools deferred.
    pub own_tools: Vec<ToolSchema>,
}
