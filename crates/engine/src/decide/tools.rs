//! Decides by cost which tool definitions are left out of a prompt whose prefix is being rewritten. Pure: computes a verdict from sizes,
//! prices and the history of the conversation.
//!
//! A definition of S tokens is written now and read by each of the N calls to come: `S x (W + N x R)`. A tool that is left out costs the
//! same for its line in the catalogue, plus the cost of bringing it back times the chance that it is needed:
//!
//! - If the provider loads a definition at the position of a reference, bringing a tool back costs a call over the prompt, a few tokens of
//!   answer, and the definition at the end of the prompt.
//! - Otherwise the list of tools precedes everything, so the whole prompt is rewritten.
//!
//! The chance that a tool is needed is unknown. Each of the N calls to come is assumed to use a tool as one of the n calls so far did, and
//! all T tools that were never used share one of n + T uses (the rule of succession): `N / (n + T)`. A tool that was last used n calls ago
//! counts alone: `N / (n + 1)`. The formula contains no constant.
//!
//! Not for: tools that are always sent, and how lists of tools are written (`prompt::tool_list`).

use throughline_tokens::{CachePrices, ToolDeferral};

/// Output tokens of the call that brings a tool back: its own name, and that of the tool.
const CALL_TOKENS: u64 = 60;
const PERMILLE: u64 = 1_000;

/// The figures of a definition that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolFigures {
    /// Tokens of the definition.
    pub(crate) tokens: u64,
    /// Tokens of its line in the catalogue.
    pub(crate) line_tokens: u64,
    /// Number of calls since its last use; `None` if it was never used.
    pub(crate) unused_for: Option<u64>,
}

/// The figures of the prompt it would be left out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptFigures {
    /// Prices of tokens.
    pub(crate) prices: CachePrices,
    /// Tokens of everything else in the prompt.
    pub(crate) prompt_tokens: u64,
    /// Number of calls so far.
    pub(crate) calls: u64,
    /// Number of calls expected from now on, including the current one.
    pub(crate) expected_calls: u64,
    /// Number of definitions that may be left out.
    pub(crate) candidates: u64,
    /// How a definition is brought back when needed.
    pub(crate) deferral: ToolDeferral,
}

impl PromptFigures {
    /// Whether to leave the definition out.
    pub(crate) fn drops(&self, tool: &ToolFigures) -> bool {
        let came_back = match self.deferral {
            ToolDeferral::Off => return false,
            ToolDeferral::ByReference => {
                self.at_read_price(self.prompt_tokens).saturating_add(self.over_calls(tool.tokens))
            }
            ToolDeferral::ByList => self
                .at_read_price(self.prompt_tokens)
                .saturating_add(scaled(self.prompt_tokens, self.prices.write_permille))
                .saturating_add(self.over_calls(tool.tokens)),
        };
        let came_back = came_back.saturating_add(scaled(CALL_TOKENS, self.prices.output_permille));
        let needed = scaled(came_back, self.chance_permille(tool));
        self.over_calls(tool.line_tokens).saturating_add(needed) < self.over_calls(tool.tokens)
    }

    /// Returns the chance that a later call needs the tool, in thousandths.
    fn chance_permille(&self, tool: &ToolFigures) -> u64 {
        let uses = match tool.unused_for {
            Some(calls) => calls.saturating_add(1),
            None => self.calls.saturating_add(self.candidates.max(1)),
        };
        let expected = self.expected_calls.max(1);
        (expected.saturating_mul(PERMILLE) / uses.max(1)).min(PERMILLE)
    }

    /// Returns the cost of tokens written once and read by each expected call.
    fn over_calls(&self, tokens: u64) -> u64 {
        let read = self.prices.read_permille.saturating_mul(self.expected_calls.max(1));
        scaled(tokens, self.prices.write_permille.saturating_add(read))
    }

    fn at_read_price(&self, tokens: u64) -> u64 {
        scaled(tokens, self.prices.read_permille)
    }
}

fn scaled(tokens: u64, permille: u64) -> u64 {
    let product = u128::from(tokens) * u128::from(permille) / u128::from(PERMILLE);
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
