//! `throughline engine --stdio`: serves Throughline as the context engine of another agent.

use std::sync::Arc;

use clap::Args;
use throughline_engine::{Host, RouteHealth};
use throughline_plugin::serve_engine;
use throughline_store::MemoryStore;

use crate::app::App;
use crate::engines::{EngineParts, Engines};
use crate::error::{CliError, Exit, io_words};
use crate::host::LocalHost;
use crate::model_catalogue::catalogue;
use crate::model_client::{boxed, client_for_any};
use crate::settings::load_settings;

/// Serve as the context engine of another agent, over standard input and output
#[derive(Debug, Args)]
#[command(after_help = "\
The agent starts this program and sends it JSON-RPC 2.0, one message per line;
docs/engine-protocol.md has every method. Summaries are written by the models of
`auxiliary.compression`, or by rules if none is configured. Nothing is recorded:
the conversation is the agent's.")]
pub(crate) struct EngineArgs {
    /// Use standard input and output
    #[arg(long, required = true)]
    stdio: bool,
}

/// Runs the command.
pub(crate) fn run(_args: &EngineArgs, app: &App) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::OutputFailed, "the engine cannot be started").because(io_words(&error))
    })?;
    runtime.block_on(boxed(serve(app)))
}

async fn serve(app: &App) -> Result<(), CliError> {
    let settings = load_settings(app, &[])?.settings;
    let app = Arc::new(app.clone());
    let host: Arc<dyn Host> = Arc::new(LocalHost::new(&app, "engine"));
    let (catalogue, client) = (catalogue(&app)?, client_for_any(&app)?);
    let parts = EngineParts {
        app: &app,
        settings: &settings,
        catalogue: &catalogue,
        store: Arc::new(MemoryStore::new()),
        host,
        client: &client,
        health: Arc::<RouteHealth>::default(),
        recall: None,
    };
    let (engines, problems) = Engines::find(parts).await?;
    problems.iter().for_each(|problem| app.warn(problem));
    // Independent of `context.engine`: an agent that starts this command wants Throughline's own engine.
    let engine = engines.without_own_model().built_in();
    let served = serve_engine(engine, env!("CARGO_PKG_VERSION"), tokio::io::stdin(), tokio::io::stdout());
    served.await.map_err(|error| {
        CliError::new(Exit::OutputFailed, "the agent cannot be answered").because(io_words(&error))
    })
}
