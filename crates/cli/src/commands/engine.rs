//! `throughline engine --stdio`: Throughline as the context engine of another agent.

use std::sync::Arc;

use clap::Args;
use throughline_engine::{Host, RouteHealth};
use throughline_plugin::serve_engine;
use throughline_store::MemoryStore;

use crate::app::Context;
use crate::commands::config::load_settings;
use crate::engines::{EngineParts, Engines};
use crate::error::{Exit, Failure, io_words};
use crate::host::ThisMachine;
use crate::model_client::{catalogue, client_for_any};

/// Be the context engine of another agent, over standard input and output
#[derive(Debug, Args)]
#[command(after_help = "\
The agent starts this program and asks it in JSON-RPC 2.0, a line a message;
docs/engine-protocol.md has every method. Summaries are written by the models of
`auxiliary.compression`, or by rules where none is configured. Nothing is recorded:
the conversation is the agent's.")]
pub(crate) struct EngineArgs {
    /// Speak over standard input and output
    #[arg(long, required = true)]
    stdio: bool,
}

/// Carries out the command.
pub(crate) fn run(_args: &EngineArgs, context: &Context) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::OutputFailed, "the engine cannot be started").because(io_words(&error))
    })?;
    runtime.block_on(serve(context))
}

async fn serve(context: &Context) -> Result<(), Failure> {
    let settings = load_settings(context, &[])?.settings;
    let context = Arc::new(context.clone());
    let host: Arc<dyn Host> = Arc::new(ThisMachine::new(&context, "engine"));
    let (catalogue, client) = (catalogue(&context)?, client_for_any(&context)?);
    let parts = EngineParts {
        context: &context,
        settings: &settings,
        catalogue: &catalogue,
        store: Arc::new(MemoryStore::new()),
        host,
        client: &client,
        health: Arc::<RouteHealth>::default(),
        recall: None,
    };
    let (engines, problems) = Engines::find(parts).await?;
    problems.iter().for_each(|problem| context.warn(problem));
    // Whatever `context.engine` says: an agent that asks for Throughline's engine means this one.
    let engine = engines.without_own_model().built_in();
    let served = serve_engine(engine, env!("CARGO_PKG_VERSION"), tokio::io::stdin(), tokio::io::stdout());
    served.await.map_err(|error| {
        Failure::new(Exit::OutputFailed, "the agent cannot be answered").because(io_words(&error))
    })
}
