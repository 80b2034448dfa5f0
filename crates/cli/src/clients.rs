//! The table of clients that are tested with the gateway: how each is started, how it is configured to use a gateway, how its sessions
//! are recognised, and what it does when the window overflows. `run`, `serve` and `status` read it; a new client is a new entry.
//!
//! In the texts, `{url}` is the address of the gateway.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::app::App;
use crate::setup::FileFormat;

/// A client program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientProgram {
    /// The name on the command line and in the record.
    pub(crate) name: &'static str,
    /// Other names on the command line.
    aliases: &'static [&'static str],
    /// The name that people know.
    pub(crate) title: &'static str,
    /// How it is started; `None` if it has no command.
    pub(crate) launch: Option<ClientLaunch>,
    /// The settings files and the values that `setup` writes into them, the address of the gateway first.
    pub(crate) settings: &'static [SettingsFile],
    /// The wire formats it uses.
    pub(crate) wires: &'static str,
    /// How the gateway distinguishes its sessions.
    pub(crate) sessions: &'static str,
    /// What it does when the window overflows without a gateway.
    pub(crate) overflow: &'static str,
    /// The versions it was tested with, through a compaction: the oldest and the newest.
    pub(crate) tested: Option<(&'static str, &'static str)>,
    /// How to configure it for a gateway, in one line.
    in_short: &'static str,
    /// How to configure it for a gateway, step by step.
    how_to: &'static str,
}

/// How a client is started behind a gateway without a change of its settings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientLaunch {
    /// The command.
    pub(crate) program: &'static str,
    /// How to install it.
    pub(crate) install: &'static str,
    /// Environment variables for this process only.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// Arguments before those of the user.
    pub(crate) arguments: &'static [&'static str],
    /// A file that is written for clients that read the address only from a file.
    pub(crate) file: Option<LaunchFile>,
    /// Further arguments for clients whose settings name an address that overrides the variables.
    pub(crate) override_arguments: &'static [&'static str],
    /// The login with a subscription, which sends requests to another address.
    pub(crate) subscription: Option<Subscription>,
}

/// A file for one run, in the folder of the gateways. `{file}` in variables and arguments is its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LaunchFile {
    /// A file with this name and text.
    Text { name: &'static str, text: &'static str },
    /// A copy of the client's first settings file with the gateway's address at these paths. Changes that the client makes to the copy
    /// are written back when it ends.
    Copy { addresses: &'static [(&'static [&'static str], &'static str)] },
}

/// A login whose requests go to another address than those with a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    /// The folder of the login file: the value of this variable, or else `folder` below the home directory.
    pub(crate) folder_variable: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) file: &'static str,
    /// The member that the file contains with a subscription.
    pub(crate) member: &'static str,
    /// The variable whose key overrides the subscription.
    pub(crate) key_variable: &'static str,
    /// The address of its requests.
    pub(crate) upstream: &'static str,
}

/// A settings file of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    /// The variable that names the folder; without it, `folder` below the home directory. Empty if there is none.
    pub(crate) folder_variable: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) file: &'static str,
    /// An alternative name of the file.
    pub(crate) other_file: Option<&'static str>,
    pub(crate) format: FileFormat,
    /// Paths in the file, and values as JSON. `{program}` is the path of this program, escaped for a JSON string.
    pub(crate) values: &'static [(&'static [&'static str], &'static str)],
}

/// Variables that most SDKs read, for programs that are not in the table.
pub(crate) const ANY_PROGRAM: &[(&str, &str)] =
    &[("ANTHROPIC_BASE_URL", "{url}"), ("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_API_BASE", "{url}/v1")];

const MCP: &str = r#"{"command": "{program}", "args": ["mcp"]}"#;

/// All clients.
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
            file: None,
            override_arguments: &["--settings", r#"{"env":{"ANTHROPIC_BASE_URL":"{url}"}}"#],
            subscription: None,
        }),
        settings: &[
            SettingsFile {
                folder_variable: "CLAUDE_CONFIG_DIR",
                folder: ".claude",
                file: "settings.json",
                other_file: None,
                format: FileFormat::Json,
                values: &[(&["env", "ANTHROPIC_BASE_URL"], r#""{url}""#)],
            },
            SettingsFile {
                folder_variable: "CLAUDE_CONFIG_DIR",
                folder: "",
                file: ".claude.json",
                other_file: None,
                format: FileFormat::Json,
                values: &[(
                    &["mcpServers", "throughline"],
                    r#"{"type": "stdio", "command": "{program}", "args": ["mcp"]}"#,
                )],
            },
        ],
        wires: "anthropic",
        sessions: "its header `x-claude-code-session-id`, else the conversation itself",
        overflow: "compacts by itself with a summary by the model; stops if the prompt is still too long",
        tested: Some(("2.1.197", "2.1.197")),
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
            file: None,
            override_arguments: &[],
            subscription: Some(Subscription {
                folder_variable: "CODEX_HOME",
                folder: ".codex",
                file: "auth.json",
                member: "tokens",
                key_variable: "OPENAI_API_KEY",
                upstream: "https://chatgpt.com/backend-api/codex",
            }),
        }),
        settings: &[SettingsFile {
            folder_variable: "CODEX_HOME",
            folder: ".codex",
            file: "config.toml",
            other_file: None,
            format: FileFormat::Toml,
            values: &[(&["openai_base_url"], r#""{url}/v1""#), (&["mcp_servers", "throughline"], MCP)],
        }],
        wires: "responses",
        sessions: "its `prompt_cache_key`, else the conversation itself",
        overflow: "asks the server to compact or to write a summary; stops if the context is still too long",
        tested: Some(("0.166.0", "0.166.0")),
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
            // Merged with the other settings, which stay unchanged.
            variables: &[(
                "OPENCODE_CONFIG_CONTENT",
                r#"{"provider":{"anthropic":{"options":{"baseURL":"{url}/v1"}},"openai":{"options":{"baseURL":"{url}/v1"}}}}"#,
            )],
            arguments: &[],
            file: None,
            override_arguments: &[],
            subscription: None,
        }),
        settings: &[SettingsFile {
            folder_variable: "",
            folder: ".config/opencode",
            file: "opencode.json",
            other_file: Some("opencode.jsonc"),
            format: FileFormat::Json,
            values: &[
                (&["provider", "anthropic", "options", "baseURL"], r#""{url}/v1""#),
                (&["provider", "openai", "options", "baseURL"], r#""{url}/v1""#),
                (
                    &["mcp", "throughline"],
                    r#"{"type": "local", "command": ["{program}", "mcp"], "enabled": true}"#,
                ),
            ],
        }],
        wires: "anthropic, responses",
        sessions: "its header `x-session-affinity`, else the conversation itself",
        overflow: "compacts by itself with a summary by the model",
        tested: Some(("1.18.33", "1.18.33")),
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
            file: None,
            override_arguments: &["--openai-api-base", "{url}/v1"],
            subscription: None,
        }),
        settings: &[SettingsFile {
            folder_variable: "",
            folder: "",
            file: ".aider.conf.yml",
            other_file: None,
            format: FileFormat::Yaml,
            values: &[
                (&["openai-api-base"], r#""{url}/v1""#),
                (&["set-env"], r#"["ANTHROPIC_API_BASE={url}"]"#),
            ],
        }],
        wires: "chat, anthropic",
        sessions: "the conversation itself",
        overflow: "summarises its own history; stops with advice if the context is still too long",
        tested: Some(("0.86.2", "0.86.2")),
        in_short: "OPENAI_API_BASE={url}/v1 aider --model openai/MODEL",
        how_to: "export OPENAI_API_BASE={url}/v1\naider --model openai/MODEL\n",
    },
    ClientProgram {
        name: "hermes",
        aliases: &[],
        title: "Hermes",
        launch: Some(ClientLaunch {
            program: "hermes",
            install: "pip install hermes-agent",
            // The first overrides the settings file; the others are for single providers.
            variables: &[
                ("CUSTOM_BASE_URL", "{url}/v1"),
                ("OPENROUTER_BASE_URL", "{url}/v1"),
                ("OPENAI_BASE_URL", "{url}/v1"),
                ("ANTHROPIC_BASE_URL", "{url}"),
            ],
            arguments: &[],
            file: None,
            override_arguments: &[],
            subscription: None,
        }),
        settings: &[SettingsFile {
            folder_variable: "HERMES_HOME",
            folder: ".hermes",
            file: "config.yaml",
            other_file: None,
            format: FileFormat::Yaml,
            values: &[
                (&["model", "base_url"], r#""{url}/v1""#),
                (&["model", "provider"], r#""custom""#),
                (&["compression", "enabled"], "false"),
                (&["mcp_servers", "throughline"], MCP),
            ],
        }],
        wires: "chat, anthropic",
        sessions: "the conversation itself",
        overflow: "compacts by itself with a summary by the model, which `setup` turns off",
        tested: Some(("0.19.0", "0.19.0")),
        in_short: "throughline serve --show hermes",
        how_to: "# ~/.hermes/config.yaml\nmodel:\n  provider: custom\n  base_url: {url}/v1\n  default: MODEL\n\n# Hermes compacts conversations too, and pays for its summaries. The gateway does it already and\n# keeps the whole record, so turn Hermes' own compaction off:\ncompression:\n  enabled: false\n",
    },
    ClientProgram {
        name: "pi",
        aliases: &[],
        title: "pi",
        launch: Some(ClientLaunch {
            program: "pi",
            install: "npm install -g @earendil-works/pi-coding-agent",
            variables: &[("THROUGHLINE_GATEWAY", "{url}")],
            arguments: &["--extension", "{file}"],
            file: Some(LaunchFile::Text {
                name: "pi-extension.js",
                text: "// Written by `throughline run pi`: sends the requests of these providers to the gateway of the run.\nexport default function (pi) {\n  const url = process.env.THROUGHLINE_GATEWAY;\n  if (!url) return;\n  pi.registerProvider(\"anthropic\", { baseUrl: url });\n  pi.registerProvider(\"openai\", { baseUrl: `${url}/v1` });\n}\n",
            }),
            override_arguments: &[],
            subscription: None,
        }),
        settings: &[SettingsFile {
            folder_variable: "PI_CODING_AGENT_DIR",
            folder: ".pi/agent",
            file: "models.json",
            other_file: None,
            format: FileFormat::Json,
            values: &[
                (&["providers", "anthropic", "baseUrl"], r#""{url}""#),
                (&["providers", "openai", "baseUrl"], r#""{url}/v1""#),
            ],
        }],
        wires: "anthropic, responses",
        sessions: "the conversation itself",
        overflow: "compacts by itself with a summary by the model",
        tested: Some(("0.74.2", "0.74.2")),
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
            variables: &[("OPENAI_BASE_URL", "{url}/v1"), ("ANTHROPIC_BASE_URL", "{url}")],
            arguments: &[],
            file: None,
            override_arguments: &[],
            subscription: None,
        }),
        settings: &[SettingsFile {
            folder_variable: "",
            folder: ".qwen",
            file: "settings.json",
            other_file: None,
            format: FileFormat::Json,
            values: &[(&["env", "OPENAI_BASE_URL"], r#""{url}/v1""#), (&["mcpServers", "throughline"], MCP)],
        }],
        wires: "chat, anthropic",
        sessions: "the conversation itself",
        overflow: "compacts by itself with a summary by the model",
        tested: Some(("0.15.10", "0.15.10")),
        in_short: "OPENAI_BASE_URL={url}/v1 OPENAI_MODEL=MODEL qwen",
        how_to: "export OPENAI_BASE_URL={url}/v1\nexport OPENAI_API_KEY=KEY\nexport OPENAI_MODEL=MODEL\nqwen\n",
    },
    ClientProgram {
        name: "cline",
        aliases: &[],
        title: "Cline",
        launch: Some(ClientLaunch {
            program: "cline",
            install: "npm install -g cline",
            variables: &[("CLINE_PROVIDER_SETTINGS_PATH", "{file}")],
            arguments: &[],
            file: Some(LaunchFile::Copy {
                addresses: &[
                    (&["providers", "openai-compatible", "settings", "baseUrl"], "{url}/v1"),
                    (&["providers", "openai-native", "settings", "baseUrl"], "{url}/v1"),
                    (&["providers", "anthropic", "settings", "baseUrl"], "{url}/v1"),
                ],
            }),
            override_arguments: &[],
            subscription: None,
        }),
        settings: &[SettingsFile {
            folder_variable: "",
            folder: ".cline/data/settings",
            file: "providers.json",
            other_file: None,
            format: FileFormat::Json,
            values: &[],
        }],
        wires: "chat, anthropic",
        sessions: "the conversation itself",
        overflow: "compacts by itself with a summary by the model",
        tested: Some(("3.0.65", "3.0.65")),
        in_short: "throughline serve --show cline",
        how_to: "Settings of Cline, API Configuration:\n  API Provider   OpenAI Compatible\n  Base URL       {url}/v1\n  API Key        the key of the provider\n  Model ID       MODEL\nFor models of Anthropic: API Provider Anthropic, \"Use custom base URL\" {url}\nAt the command line: cline auth openai -k KEY -m MODEL -b {url}/v1\n",
    },
    ClientProgram {
        name: "python",
        aliases: &["sdk"],
        title: "Python SDKs",
        launch: None,
        settings: &[],
        wires: "chat, responses, anthropic",
        sessions: "the conversation itself",
        overflow: "raises the error of the server",
        tested: None,
        in_short: "base_url=\"{url}/v1\" (openai), \"{url}\" (anthropic)",
        how_to: "import openai, anthropic\n\nopenai.OpenAI(base_url=\"{url}/v1\")\nanthropic.Anthropic(base_url=\"{url}\")\n",
    },
];

/// The argument that selects all clients.
pub(crate) const ALL: &str = "all";

impl ClientProgram {
    /// Returns the client with this name or alias.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name || client.aliases.contains(&name))
    }

    /// The other names of the client.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = &'static str> {
        self.aliases.iter().copied()
    }

    /// The one-line instructions for a gateway at this address.
    pub(crate) fn in_short(&self, url: &str) -> String {
        at(self.in_short, url)
    }

    /// The complete instructions for a gateway at this address.
    pub(crate) fn how_to(&self, url: &str) -> String {
        at(self.how_to, url)
    }
}

impl Subscription {
    /// Whether the client is logged in with a subscription and no key overrides it.
    pub(crate) fn is_used(&self, app: &App) -> bool {
        if app.variable(self.key_variable).is_some_and(|key| !key.is_empty()) {
            return false;
        }
        let folder = match app.variable(self.folder_variable).filter(|folder| !folder.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => match &app.user_home {
                Some(home) => home.join(self.folder),
                None => return false,
            },
        };
        let text = std::fs::read_to_string(folder.join(self.file)).unwrap_or_default();
        let login: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        login.get(self.member).is_some_and(|member| !member.is_null())
            && login.get(self.key_variable).is_none_or(serde_json::Value::is_null)
    }
}

impl SettingsFile {
    /// The path of the file; `None` without a home directory.
    pub(crate) fn path(&self, app: &App) -> Option<PathBuf> {
        let folder = match app.variable(self.folder_variable) {
            Some(folder) if !self.folder_variable.is_empty() => PathBuf::from(folder),
            _ => app.user_home.as_ref()?.join(self.folder),
        };
        let other = self.other_file.map(|name| folder.join(name)).filter(|path| path.exists());
        let usual = folder.join(self.file);
        Some(match other {
            Some(other) if !usual.exists() => other,
            _ => usual,
        })
    }
}

/// Inserts the address of the gateway into a text of the table.
pub(crate) fn at(text: &str, url: &str) -> String {
    text.replace("{url}", url)
}

/// Returns the one-line instructions of all clients.
pub(crate) fn list(url: &str) -> String {
    let line = |client: &ClientProgram| {
        format!("  {:<12} {:<12} {}\n", client.title, client.name, client.in_short(url))
    };
    CLIENTS.iter().map(line).collect()
}

/// Describes all clients.
pub(crate) fn described() -> String {
    let mut out = String::new();
    for client in CLIENTS {
        let names: Vec<&str> = std::iter::once(client.name).chain(client.aliases()).collect();
        out.push_str(&format!("{} ({})\n", client.title, names.join(", ")));
        if let Some(launch) = &client.launch {
            out.push_str(&format!("  install       {}\n", launch.install));
        }
        let tested = match client.tested {
            Some((oldest, newest)) if oldest == newest => newest.to_owned(),
            Some((oldest, newest)) => format!("{oldest} to {newest}"),
            None => "-".to_owned(),
        };
        out.push_str(&format!(
            "  tried with    {tested}\n  wire formats  {}\n  sessions      {}\n  on overflow   {}\n",
            client.wires, client.sessions, client.overflow
        ));
        for file in client.settings.iter().filter(|file| !file.values.is_empty()) {
            let folder = if file.folder.is_empty() { "~".to_owned() } else { format!("~/{}", file.folder) };
            out.push_str(&format!("  setup writes  {folder}/{}\n", file.file));
        }
    }
    out
}

/// The names of the clients that `run` can start, separated by commas.
pub(crate) fn launchable() -> String {
    let names = CLIENTS.iter().filter_map(|client| client.launch.as_ref()).map(|launch| launch.program);
    names.collect::<Vec<_>>().join(", ")
}

/// Parses the name of a client, or `all`.
pub(crate) fn name_parser() -> PossibleValuesParser {
    let named =
        CLIENTS.iter().map(|client| PossibleValue::new(client.name).aliases(client.aliases.iter().copied()));
    PossibleValuesParser::new(named.chain([PossibleValue::new(ALL).hide(true)]))
}

#[cfg(test)]
mod tests {
    //! The consistency of the table.

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
            let copied: &[_] = match launch.file {
                Some(LaunchFile::Copy { addresses }) => addresses,
                _ => &[],
            };
            let mut values = values.chain(copied.iter().map(|(_, value)| *value));
            assert!(values.any(|value| at(value, url).contains(url)), "{}", client.name);
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
