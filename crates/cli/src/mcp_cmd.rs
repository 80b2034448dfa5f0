//! `throughline mcp`: recall for any agent that speaks the Model Context Protocol, over standard input and output.

use std::sync::Arc;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use serde_json::Value;
use throughline_store::{Owner, SqliteStore};

use crate::context::Context;
use crate::failure::{Exit, Failure, io_words};
use crate::mcp_tools::{NoResult, call, tools};
use crate::record::open_store;

/// How to add the server to the agents people use.
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

What was said gets into the record through the gateway (`throughline serve`), through
`throughline chat`, or with `throughline import`.
";

const INSTRUCTIONS: &str = "Recalls what was said in earlier and in this conversation, also what is no longer in view: \
    recall_search finds it, recall_messages and recall_artifact show the whole of it.";

/// Serve recall to other agents as an MCP server
#[derive(Debug, Args)]
#[command(after_help = "\
Agents start this program themselves. At a terminal, and with --show, it says how to add
it to them. It reads the record and changes nothing in it.")]
pub(crate) struct McpArgs {
    /// Say how to add it to an agent, in place of serving
    #[arg(long)]
    show: bool,
}

/// Carries out the command.
pub(crate) fn run(args: &McpArgs, context: &Context) -> Result<(), Failure> {
    if args.show || context.can_ask {
        return context.print(HOW_TO_ADD);
    }
    let recall = Recall { store: Arc::new(open_store(context)?), owner: Owner::default() };
    let failed =
        |what: String| Failure::new(Exit::OutputFailed, "the agent cannot be answered").because(what);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| failed(io_words(&error)))?;
    runtime.block_on(async {
        let serving = recall.serve(rmcp::transport::io::stdio()).await;
        // An agent that leaves before it has said who it is needs no answer.
        let Ok(serving) = serving else { return Ok(()) };
        serving.waiting().await.map(drop).map_err(|error| failed(error.to_string()))
    })
}

/// The record, for whoever asks.
#[derive(Clone)]
struct Recall {
    store: Arc<SqliteStore>,
    owner: Owner,
}

impl ServerHandler for Recall {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("throughline", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = tools().into_iter().map(|tool| {
            let parameters = match tool.parameters {
                Value::Object(parameters) => parameters,
                _ => JsonObject::default(),
            };
            Tool::new(tool.name, tool.description, parameters)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (store, owner) = (Arc::clone(&self.store), self.owner.clone());
        let name = request.name.into_owned();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let asked = name.clone();
        let looking = tokio::task::spawn_blocking(move || call(store.as_ref(), &owner, &asked, arguments));
        let result = match looking.await {
            Ok(Ok(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Ok(Err(NoResult::Words(words))) => CallToolResult::error(vec![ContentBlock::text(words)]),
            Ok(Err(NoResult::UnknownTool)) => {
                return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None));
            }
            Err(error) => return Err(ErrorData::internal_error(error.to_string(), None)),
        };
        Ok(result.into())
    }
}
