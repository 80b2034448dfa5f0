//! The clients that are known to work with the gateway, as a table: how each is started, how it is pointed at a gateway,
//! how its sessions are recognised and what it does when the window overflows. `run`, `serve` and `status` read it; a new
//! client is a new entry.
//!
//! In the texts, `{url}` is the address of the gateway.

use clap::builder::{PossibleValue, PossibleValuesParser};

/// A program that talks to a model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientProgram {
    /// What it is called on the command line and in the record, ...
    pub(crate) name: &'static str,
    /// ... other names for it on the command line, ...
    aliases: &'static [&'static str],
    /// ... and what people call it.
    pub(crate) title: &'static str,
    /// How it is started; `None` where it has no command of its own, or none that takes an address for one run.
    pub(crate) launch: Option<ClientLaunch>,
    /// How it is pointed at a gateway, in one line, ...
    in_short: &'static str,
    /// ... and everything that has to be typed or written.
    how_to: &'static str,
}

/// How a client is started so that it talks to a gateway, and nothing of its own settings changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientLaunch {
    /// The command.
    pub(crate) program: &'static str,
    /// How to get it.
    pub(crate) install: &'static str,
    /// Variables for this process only.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// Arguments in front of those of the person.
    pub(crate) arguments: &'static [&'static str],
    /// How the client sends its requests elsewhere when its login is a subscription.
    pub(crate) subscription: Option<Subscription>,
}

/// A login whose requests go to another address than those with a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    /// The file of the login, below the folder that the variable names or, without it, below the home directory.
    pub(crate) folder_variable: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) file: &'static str,
    /// The member that is there with a subscription, ...
    pub(crate) member: &'static str,
    /// ... and the variable whose key is used instead of it.
    pub(crate) key_variable: &'static str,
    /// Where its requests go.
    pub(crate) upstream: &'static str,
}

/// Variables that most SDKs read, for programs that are not in the table.
pub(crate) const ANY_PROGRAM: &[(&str, &str)] =
    &[("ANTHROPIC_BASE_URL", "{url}"), ("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_API_BASE", "{url}/v1")];

/// All of them.
pub(crate) static CLIENTS: &[ClientProgram] = &[
    ClientProgram {
        name: "claude-code",
        aliases: &["claude"],
        title: "Claude Code",
        launch: Some(ClientLaunch {
            program: "claude",
            install: "npm install -g @anthropic-ai/claude-code",
            variables: &[("ANTHROPIC_BASE_URL", "{url}")],
            arguments: &[],
            subscription: None,
        }),
        in_short: "ANTHROPIC_BASE_URL={url} claude",
        how_to: "export ANTHROPIC_BASE_URL={url}\nclaude\n",
    },
    ClientProgram {
        name: "codex",
        aliases: &[],
        title: "Codex",
        launch: Some(ClientLaunch {
            program: "codex",
            install: "npm install -g @openai/codex",
            variables: &[],
            arguments: &["-c", "openai_base_url=\"{url}/v1\""],
            subscription: Some(Subscription {
                folder_variable: "CODEX_HOME",
                folder: ".codex",
                file: "auth.json",
                member: "tokens",
                key_variable: "OPENAI_API_KEY",
                upstream: "https://chatgpt.com/backend-api/codex",
            }),
        }),
        in_short: "throughline serve --show codex",
        how_to: "# ~/.codex/config.toml\nmodel_provider = \"throughline\"\n\n[model_providers.throughline]\nname = \"Throughline\"\nbase_url = \"{url}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n",
    },
    ClientProgram {
        name: "opencode",
        aliases: &[],
        title: "opencode",
        launch: Some(ClientLaunch {
            program: "opencode",
            install: "npm install -g opencode-ai",
            // Merged over its other settings, which stay as they are.
            variables: &[(
                "OPENCODE_CONFIG_CONTENT",
                r#"{"provider":{"anthropic":{"options":{"baseURL":"{url}/v1"}},"openai":{"options":{"baseURL":"{url}/v1"}}}}"#,
            )],
            arguments: &[],
            subscription: None,
        }),
        in_short: "throughline serve --show opencode",
        how_to: "// opencode.json\n{\n  \"provider\": {\n    \"anthropic\": { \"options\": { \"baseURL\": \"{url}/v1\" } },\n    \"openai\": { \"options\": { \"baseURL\": \"{url}/v1\" } }\n  }\n}\n",
    },
    ClientProgram {
        name: "aider",
        aliases: &[],
        title: "aider",
        launch: Some(ClientLaunch {
            program: "aider",
            install: "pip install aider-chat",
            variables: &[("OPENAI_API_BASE", "{url}/v1"), ("ANTHROPIC_API_BASE", "{url}")],
            arguments: &[],
            subscription: None,
        }),
        in_short: "OPENAI_API_BASE={url}/v1 aider --model openai/MODEL",
        how_to: "export OPENAI_API_BASE={url}/v1\naider --model openai/MODEL\n",
    },
    ClientProgram {
        name: "hermes",
        aliases: &[],
        title: "Hermes",
        // Its address is in its settings file alone.
        launch: None,
        in_short: "throughline serve --show hermes",
        how_to: "# ~/.hermes/config.yaml\nmodel:\n  provider: custom\n  base_url: {url}/v1\n  default: MODEL\n\n# Hermes compacts conversations too, and pays for its summaries. The gateway does it already and\n# keeps the whole record, so turn Hermes' own compaction off:\ncompression:\n  enabled: false\n",
    },
    ClientProgram {
        name: "pi",
        aliases: &[],
        title: "pi",
        // Its address is in its settings file alone.
        launch: None,
        in_short: "throughline serve --show pi",
        how_to: "// ~/.pi/agent/models.json\n{\n  \"providers\": {\n    \"anthropic\": { \"baseUrl\": \"{url}\" },\n    \"openai\": { \"baseUrl\": \"{url}/v1\" }\n  }\n}\n",
    },
    ClientProgram {
        name: "qwen",
        aliases: &["qwen-code"],
        title: "Qwen Code",
        launch: Some(ClientLaunch {
            program: "qwen",
            install: "npm install -g @qwen-code/qwen-code",
            variables: &[("OPENAI_BASE_URL", "{url}/v1")],
            arguments: &[],
            subscription: None,
        }),
        in_short: "OPENAI_BASE_URL={url}/v1 OPENAI_MODEL=MODEL qwen",
        how_to: "export OPENAI_BASE_URL={url}/v1\nexport OPENAI_API_KEY=KEY\nexport OPENAI_MODEL=MODEL\nqwen\n",
    },
    ClientProgram {
        name: "cline",
        aliases: &[],
        title: "Cline",
        // It runs in an editor.
        launch: None,
        in_short: "throughline serve --show cline",
        how_to: "Settings of Cline, API Configuration:\n  API Provider   OpenAI Compatible\n  Base URL       {url}/v1\n  API Key        the key of the provider\n  Model ID       MODEL\nFor models of Anthropic: API Provider Anthropic, \"Use custom base URL\" {url}\n",
    },
    ClientProgram {
        name: "python",
        aliases: &["sdk"],
        title: "Python SDKs",
        launch: None,
        in_short: "base_url=\"{url}/v1\" (openai), \"{url}\" (anthropic)",
        how_to: "import openai, anthropic\n\nopenai.OpenAI(base_url=\"{url}/v1\")\nanthropic.Anthropic(base_url=\"{url}\")\n",
    },
];

/// The word for all of them.
pub(crate) const ALL: &str = "all";

impl ClientProgram {
    /// The client of this name or alias.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name || client.aliases.contains(&name))
    }

    /// One line, for a gateway at this address.
    pub(crate) fn in_short(&self, url: &str) -> String {
        at(self.in_short, url)
    }

    /// Everything that has to be typed or written.
    pub(crate) fn how_to(&self, url: &str) -> String {
        at(self.how_to, url)
    }
}

/// A text of the table for a gateway at this address.
pub(crate) fn at(text: &str, url: &str) -> String {
    text.replace("{url}", url)
}

/// How all of them are pointed at the gateway, a line each.
pub(crate) fn list(url: &str) -> String {
    let line = |client: &ClientProgram| {
        format!("  {:<12} {:<12} {}\n", client.title, client.name, client.in_short(url))
    };
    CLIENTS.iter().map(line).collect()
}

/// The names of those that `run` can start, separated by commas.
pub(crate) fn launchable() -> String {
    let names = CLIENTS.iter().filter(|client| client.launch.is_some());
    names.map(|client| client.aliases.first().unwrap_or(&client.name)).copied().collect::<Vec<_>>().join(", ")
}

/// Parses the name of a client, or the word for all of them.
pub(crate) fn name_parser() -> PossibleValuesParser {
    let named =
        CLIENTS.iter().map(|client| PossibleValue::new(client.name).aliases(client.aliases.iter().copied()));
    PossibleValuesParser::new(named.chain([PossibleValue::new(ALL).hide(true)]))
}

#[cfg(test)]
mod tests {
    //! The table itself.

    use super::*;

    #[test]
    fn every_client_is_told_where_the_gateway_is() {
        let url = "https://127.0.0.1:9000";
        for client in CLIENTS {
            assert!(client.how_to(url).contains(url), "{}", client.name);
            assert!(
                list(url).lines().any(|line| line.contains(&format!(" {} ", client.name))),
                "{}",
                client.name
            );
            assert_eq!(ClientProgram::named(client.name), Some(client));
            let Some(launch) = &client.launch else { continue };
            let values =
                launch.variables.iter().map(|(_, value)| *value).chain(launch.arguments.iter().copied());
            assert!(values.into_iter().any(|value| at(value, url).contains(url)), "{}", client.name);
        }
        assert_eq!(ClientProgram::named("claude").map(|client| client.name), Some("claude-code"));
        assert_eq!(ClientProgram::named("emacs"), None);
    }

    #[test]
    fn names_are_unique() {
        let names: Vec<&str> =
            CLIENTS.iter().flat_map(|client| client.aliases.iter().copied().chain([client.name])).collect();
        let unique: std::collections::HashSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len());
        assert!(!unique.contains(ALL));
    }
}
