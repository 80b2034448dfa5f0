//! How each client is pointed at the gateway.

use clap::ValueEnum;

/// A client that is known to work with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ClientProgram {
    #[value(alias = "claude")]
    ClaudeCode,
    Codex,
    Opencode,
    Aider,
    Hermes,
    Pi,
    #[value(alias = "qwen-code")]
    Qwen,
    Cline,
    #[value(alias = "sdk")]
    Python,
    /// The names of all of them
    #[value(hide = true)]
    All,
}

/// How all of them are pointed at the gateway, a line each.
pub(super) fn list(at: &str) -> String {
    let mut out = String::new();
    for client in ClientProgram::value_variants().iter().filter(|client| **client != ClientProgram::All) {
        let word = client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        out.push_str(&format!("  {:<12} {:<12} {}\n", client.name(), word, client.in_short(at)));
    }
    out
}

impl ClientProgram {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
            Self::Aider => "aider",
            Self::Hermes => "Hermes",
            Self::Pi => "pi",
            Self::Qwen => "Qwen Code",
            Self::Cline => "Cline",
            Self::Python => "Python SDKs",
            Self::All => "all clients",
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
            Self::Pi => "throughline serve --show pi".to_owned(),
            Self::Qwen => format!("OPENAI_BASE_URL={at}/v1 OPENAI_MODEL=MODEL qwen"),
            Self::Cline => "throughline serve --show cline".to_owned(),
            Self::All => "throughline serve --show".to_owned(),
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
                "# ~/.hermes/config.yaml\nmodel:\n  provider: custom\n  base_url: {at}/v1\n  default: MODEL\n\n# Hermes compacts conversations too, and pays for its summaries. The gateway does it already and\n# keeps the whole record, so turn Hermes' own compaction off:\ncompression:\n  enabled: false\n"
            ),
            Self::Pi => format!(
                "// ~/.pi/agent/models.json\n{{\n  \"providers\": {{\n    \"anthropic\": {{ \"baseUrl\": \"{at}\" }},\n    \"openai\": {{ \"baseUrl\": \"{at}/v1\" }}\n  }}\n}}\n"
            ),
            Self::Qwen => format!(
                "export OPENAI_BASE_URL={at}/v1\nexport OPENAI_API_KEY=KEY\nexport OPENAI_MODEL=MODEL\nqwen\n"
            ),
            Self::Cline => format!(
                "Settings of Cline, API Configuration:\n  API Provider   OpenAI Compatible\n  Base URL       {at}/v1\n  API Key        the key of the provider\n  Model ID       MODEL\nFor models of Anthropic: API Provider Anthropic, \"Use custom base URL\" {at}\n"
            ),
            Self::All => list(at),
            Self::Python => format!(
                "import openai, anthropic\n\nopenai.OpenAI(base_url=\"{at}/v1\")\nanthropic.Anthropic(base_url=\"{at}\")\n"
            ),
        }
    }
}
