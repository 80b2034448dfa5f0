//! How each client is pointed at the gateway.

use clap::ValueEnum;

/// A client that is known to work with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeCode,
    Codex,
    Opencode,
    Aider,
    Hermes,
    Python,
}

impl Client {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
            Self::Aider => "aider",
            Self::Hermes => "Hermes",
            Self::Python => "Python SDKs",
        }
    }

    /// One line, for a gateway at this address.
    pub(super) fn in_short(self, at: &str) -> String {
        match self {
            Self::ClaudeCode => format!("ANTHROPIC_BASE_URL={at} claude"),
            Self::Aider => format!("OPENAI_API_BASE={at}/v1 aider --model openai/MODEL"),
            Self::Python => format!("base_url=\"{at}/v1\" (openai), \"{at}\" (anthropic)"),
            Self::Codex => "throughline serve --show codex".to_owned(),
            Self::Opencode => "throughline serve --show opencode".to_owned(),
            Self::Hermes => "throughline serve --show hermes".to_owned(),
        }
    }

    /// Everything that has to be typed or written.
    pub(super) fn how_to(self, at: &str) -> String {
        match self {
            Self::ClaudeCode => format!("export ANTHROPIC_BASE_URL={at}\nclaude\n"),
            Self::Codex => format!(
                "# ~/.codex/config.toml\nmodel_provider = \"throughline\"\n\n[model_providers.throughline]\nname = \"Throughline\"\nbase_url = \"{at}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n"
            ),
            Self::Opencode => format!(
                "// opencode.json\n{{\n  \"provider\": {{\n    \"anthropic\": {{ \"options\": {{ \"baseURL\": \"{at}/v1\" }} }},\n    \"openai\": {{ \"options\": {{ \"baseURL\": \"{at}/v1\" }} }}\n  }}\n}}\n"
            ),
            Self::Aider => format!("export OPENAI_API_BASE={at}/v1\naider --model openai/MODEL\n"),
            Self::Hermes => format!(
                "# ~/.hermes/config.yaml\nmodel:\n  provider: custom\n  base_url: {at}/v1\n  default: MODEL\n"
            ),
            Self::Python => format!(
                "import openai, anthropic\n\nopenai.OpenAI(base_url=\"{at}/v1\")\nanthropic.Anthropic(base_url=\"{at}\")\n"
            ),
        }
    }
}
