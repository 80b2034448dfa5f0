//! `throughline mcp`: recall for agents that speak the Model Context Protocol, over standard input and output.

mod tool_server;

use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use throughline_engine::{RouteHealth, ToolAnswer, ToolRequest, ToolSchema};
use throughline_lcm::{RecallToolset, RecordToolError, RecordTools};
use throughline_store::{Owner, Store};

use crate::app::App;
use crate::commands::mcp::tool_server::{ToolOutcome, Tools};
use crate::engines::{EngineParts, Engines};
use crate::error::{CliError, Exit, io_words};
use crate::host::LocalHost;
use crate::meaning::make_vectors;
use crate::model_catalogue::catalogue;
use crate::model_client::{boxed, client_for_any};
use crate::record::RecordStore;
use crate::settings::load_settings;
use crate::ui::output::print_json;

/// How to add the server to common agents.
const HOW_TO_ADD: &str = "\
Recall for other agents: search over everything recorded, and reading it again.
An agent starts this program itself; add it once:

  Claude Code   claude mcp add throughline -- throughline mcp
  Codex         codex mcp add throughline -- throughline mcp
  Gemini CLI    gemini mcp add throughline throughline mcp
  opencode      in opencode.json:
                  \"mcp\": { \"throughline\": { \"type\": \"local\", \"command\": [\"throughline\", \"mcp\"] } }
  others        in their list of MCP servers:
                  \"mcpServers\": { \"throughline\": { \"command\": \"throughline\", \"args\": [\"mcp\"] } }

Conversations are recorded by the gateway (`throughline serve`), by `throughline chat`,
or with `throughline import`.
";

/// The same as JSON.
fn how_to_add() -> Value {
    let server = json!({ "command": "throughline", "args": ["mcp"] });
    json!({
        "server": server,
        "clients": [
            { "name": "Claude Code", "command": "claude mcp add throughline -- throughline mcp" },
            { "name": "Codex", "command": "codex mcp add throughline -- throughline mcp" },
            { "name": "Gemini CLI", "command": "gemini mcp add throughline throughline mcp" },
            {
                "name": "opencode",
                "file": "opencode.json",
                "settings": { "mcp": { "throughline": { "type": "local", "command": ["throughline", "mcp"] } } },
            },
            { "name": "others", "settings": { "mcpServers": { "throughline": server } } },
        ],
    })
}

/// Serve recall to other agents as an MCP server
#[derive(Debug, Args)]
#[command(after_help = "\
Agents start this program themselves. At a terminal, and with --show, it prints how to add
it to them. It only reads the record. The tool lcm_expand_query needs a model in
`auxiliary.compression`.")]
pub(crate) struct McpArgs {
    /// Print how to add it to an agent, instead of serving
    #[arg(long)]
    show: bool,
    /// Print it as one JSON object
    #[arg(long, requires = "show")]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &McpArgs, app: &App) -> Result<(), CliError> {
    if args.json {
        return print_json(app, &how_to_add());
    }
    if args.show || app.can_ask {
        return app.print(HOW_TO_ADD);
    }
    let failed =
        |what: String| CliError::new(Exit::OutputFailed, "the agent cannot be answered").because(what);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| failed(io_words(&error)))?;
    runtime.block_on(boxed(async {
        let recall = Arc::new(RecallServer::open(app).await?);
        match tool_server::serve(recall, tokio::io::stdin(), tokio::io::stdout()).await {
            // A client that disconnected needs no answer.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(failed(io_words(&error))),
            _ => Ok(()),
        }
    }))
}

/// The tools of the lossless engine for one conversation, with a parameter that names the conversation.
fn tools_of_one_session(answers_questions: bool) -> impl Iterator<Item = ToolSchema> {
    let all = RecallToolset::schemas().into_iter();
    all.filter(move |tool| answers_questions || tool.name != RecallToolset::QUESTION).map(|mut tool| {
        tool.parameters["properties"]["session"] =
            json!({ "type": "string", "description": RecordTools::SESSION });
        match tool.parameters.get_mut("required").and_then(Value::as_array_mut) {
            Some(required) => required.push(json!("session")),
            None => tool.parameters["required"] = json!(["session"]),
        }
        ToolSchema { description: tool.description.replace("this conversation", "a conversation"), ..tool }
    })
}

/// The record, served to an agent.
struct RecallServer {
    store: Arc<dyn Store>,
    owner: Owner,
    engines: Engines,
}

impl RecallServer {
    async fn open(app: &App) -> Result<Self, CliError> {
        let settings = load_settings(app, &[])?.settings;
        let store = RecordStore::open(app)?;
        make_vectors(app, &settings, &store, |_| ());
        let store = store.shared();
        let parts = EngineParts {
            app,
            settings: &settings,
            catalogue: &catalogue(app)?,
            store: Arc::clone(&store),
            host: Arc::new(LocalHost::new(&Arc::new(app.clone()), "mcp")),
            client: &client_for_any(app)?,
            health: Arc::<RouteHealth>::default(),
            recall: None,
        };
        let (engines, problems) = Engines::find(parts).await?;
        problems.iter().for_each(|problem| app.warn(problem));
        // No conversation's own model is available here.
        Ok(Self { store, owner: Owner::default(), engines: engines.without_own_model() })
    }

    /// Runs a tool for one conversation, which the arguments name.
    async fn within(&self, name: &str, mut arguments: Map<String, Value>) -> Result<String, RecordToolError> {
        let Some(Value::String(reference)) = arguments.remove("session") else {
            return Err(RecordToolError::Refused(
                "`session` says which conversation is meant, such as `last`".to_owned(),
            ));
        };
        let (store, owner) = (Arc::clone(&self.store), self.owner.clone());
        let found =
            tokio::task::spawn_blocking(move || RecordTools::new(store.as_ref(), &owner).tip(&reference))
                .await;
        let session = found.map_err(|error| RecordToolError::Refused(error.to_string()))??.id;
        let call = ToolRequest {
            session,
            name: name.to_owned(),
            arguments: Value::Object(arguments),
            max_chars: None,
        };
        match self.engines.recaller(&self.owner).call(&call).await {
            None => Err(RecordToolError::UnknownTool),
            Some(ToolAnswer { text, is_error: false }) => Ok(text),
            Some(ToolAnswer { text, is_error: true }) => Err(RecordToolError::Refused(text)),
        }
    }

    async fn across(&self, name: &str, arguments: Map<String, Value>) -> Result<String, RecordToolError> {
        let (store, owner, name) = (Arc::clone(&self.store), self.owner.clone(), name.to_owned());
        let looking = move || RecordTools::new(store.as_ref(), &owner).call(&name, Value::Object(arguments));
        tokio::task::spawn_blocking(looking)
            .await
            .map_err(|error| RecordToolError::Refused(error.to_string()))?
    }
}

impl Tools for RecallServer {
    const INSTRUCTIONS: &'static str = "Recalls what was said in earlier and in this conversation, also what is no longer in view: \
        recall_search finds it in all conversations, recall_messages and recall_artifact show the whole of it; lcm_grep, \
        lcm_describe and lcm_expand search one conversation, list its summaries with the messages they replace, and expand them.";

    fn schemas(&self) -> Vec<ToolSchema> {
        let of_one_session = tools_of_one_session(self.engines.answers_questions());
        RecordTools::schemas().into_iter().chain(of_one_session).collect()
    }

    async fn call(&self, name: &str, arguments: Map<String, Value>) -> ToolOutcome {
        let answered = if RecallToolset::NAMES.contains(&name) {
            self.within(name, arguments).await
        } else {
            self.across(name, arguments).await
        };
        match answered {
            Ok(text) => ToolOutcome::Answered(text),
            Err(RecordToolError::Refused(words)) => ToolOutcome::Refused(words),
            Err(RecordToolError::UnknownTool) => ToolOutcome::Unknown,
        }
    }
}
