//! The terms of a replay.

use std::time::Duration;

use throughline_engine::{ToolOutputPolicy, ToolSchema};
use throughline_provider::CacheTtl;
use throughline_tokens::{Catalogue, LimitPolicy};

use crate::bill::SummaryCost;
use crate::client_prompt::ClientPrompt;

/// The terms of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The model whose prices, window and tokens count.
    pub model: String,
    /// Its window, and when the conversation is compacted.
    pub limits: LimitPolicy,
    /// The cache lifetime Throughline asks for; `None` for the one the recorded client asked for.
    pub ttl: Option<CacheTtl>,
    /// The policy for long results, beside their limits.
    pub tool_output: ToolOutputPolicy,
    /// What summaries cost.
    pub summaries: SummaryCost,
    /// How a model's notes come: as in the gateway, asked for once before each compaction and waited for so long; none for
    /// notes that are brought up to date until they are needed, as `chat` does.
    pub summary_wait: Option<Duration>,
    /// Prices and sizes.
    pub catalogue: Catalogue,
    /// What the client sends before its messages, where the log leaves that out and definitions of tools can leave; none for
    /// text of the same size.
    pub client: Option<ClientPrompt>,
    /// Tools of ours that stand behind the client's where results are shortened or tools leave.
    pub own_tools: Vec<ToolSchema>,
}
