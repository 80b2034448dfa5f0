//! Arguments for the model and its context window, and token counts as people type them.

use clap::Args;

/// What the transcript has to fit into.
#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    /// The model's window in tokens, such as 200000, 200k or 1m
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens, help_heading = "Limits")]
    pub(crate) context_length: Option<u64>,

    /// The model, when the transcript does not name it; its window is looked up
    #[arg(long, value_name = "NAME", help_heading = "Limits")]
    pub(crate) model: Option<String>,

    /// Tokens to keep free for the answer
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens, help_heading = "Limits")]
    pub(crate) max_output_tokens: Option<u64>,
}

/// The largest accepted number of tokens; settings have the same limit.
const MAX_TOKENS: u64 = 100_000_000;

/// Parses `200000`, `200_000`, `200,000`, `200k` and `1.5m`.
pub(crate) fn parse_tokens(typed: &str) -> Result<u64, String> {
    let wanted =
        || format!("expected a number of tokens between 1 and {MAX_TOKENS}, such as 200000, 200k or 1m");
    let lower = typed.trim().to_ascii_lowercase().replace(['_', ','], "");
    let (digits, scale) = match lower.strip_suffix(['k', 'm']) {
        Some(digits) if lower.ends_with('k') => (digits, 1_000.0),
        Some(digits) => (digits, 1_000_000.0),
        None => (lower.as_str(), 1.0),
    };
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = digits.parse().ok().filter(|_| is_plain).ok_or_else(wanted)?;
    let tokens = number * scale;
    if tokens.fract() != 0.0 || !(1.0..=MAX_TOKENS as f64).contains(&tokens) {
        return Err(wanted());
    }
    Ok(tokens as u64)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
