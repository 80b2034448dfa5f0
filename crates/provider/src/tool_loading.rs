//! Which providers load tool definitions at a reference in a result.

use throughline_transcript::WireFormat;

use crate::endpoint::EndpointKind;

impl EndpointKind {
    /// Whether definitions marked `defer_loading` are left out of the prompt and loaded by a `tool_reference`, which leaves the cached
    /// prompt before it unchanged: Anthropic's own API, Opus and Sonnet from 4.5 on and all models from 5 on.
    #[must_use]
    pub fn loads_tools_by_reference(self, wire_format: WireFormat, model: &str) -> bool {
        self == Self::Anthropic && wire_format == WireFormat::Anthropic && is_recent(model)
    }
}

/// Whether a name is that of a recent Claude: `claude-opus-4-5-20251101`. Older names have the version before the family.
fn is_recent(model: &str) -> bool {
    let Some(name) = model.strip_prefix("claude-") else { return false };
    let mut words = name.split('-');
    let family = words.next().unwrap_or_default();
    if family.parse::<u32>().is_ok() {
        return false;
    }
    let mut version = words.map_while(|word| word.parse::<u32>().ok().filter(|_| word.len() <= 2));
    let major = version.next().unwrap_or(0);
    let minor = version.next().unwrap_or(0);
    major >= 5 || (major == 4 && minor >= 5 && matches!(family, "opus" | "sonnet"))
}

#[cfg(test)]
#[path = "tool_loading_tests.rs"]
mod tests;
