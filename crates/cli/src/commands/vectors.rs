//! `throughline vectors`: the progress and cost of the vectors for search by meaning, and computing them now.

use clap::Args;
use serde_json::json;
use throughline_store::{Embedder as _, VectorState};

use crate::app::App;
use crate::error::CliError;
use crate::meaning;
use crate::record::{OpenRecord, refused};
use crate::settings::load_settings;
use crate::ui::output::print_json;
use crate::ui::progress::ProgressLine;
use crate::ui::text::{counted, thousands};

/// Show the vectors for search by meaning, or compute those that are missing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline vectors
  throughline vectors --make
  throughline vectors --json

The model is set with recall.embeddings; without one, search uses words alone.
`chat`, `serve` and `mcp` compute vectors in the background while they run.")]
pub(crate) struct VectorsArgs {
    /// Compute all missing vectors
    #[arg(long)]
    make: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &VectorsArgs, app: &App) -> Result<(), CliError> {
    let settings = load_settings(app, &[])?.settings;
    let Some(embedder) = meaning::embedder(app, &settings)? else {
        if args.json {
            return print_json(app, &json!({ "model": null }));
        }
        return app.print("No embedding model is set (recall.embeddings): only words are searched.\n");
    };
    let record = match args.make {
        true => Some(OpenRecord::open(app)?),
        false => OpenRecord::open_existing(app)?,
    };
    let Some(record) = record else { return Ok(()) };
    let store = record.store.file("vectors", "search on PostgreSQL goes by words, phrases and substrings")?;
    let mut is_elsewhere = false;
    if args.make {
        let mut line = ProgressLine::new(app);
        let made = loop {
            match store.embed_next(embedder.as_ref()) {
                Ok(step) if step.messages == 0 => {
                    is_elsewhere = step.is_elsewhere;
                    break Ok(());
                }
                Ok(_) if line.is_due() => {
                    let waiting = store.vector_state(embedder.model()).map_err(refused)?.waiting;
                    line.show(&format!("making vectors: {} to go", counted(waiting, "message", "messages")));
                }
                Ok(_) => {}
                Err(error) => break Err(refused(error)),
            }
        };
        line.end();
        made?;
    }
    let state = store.vector_state(embedder.model()).map_err(refused)?;
    let cost = embedder.cost(state.tokens);
    if args.json {
        return print_json(app, &json!({ "vectors": state, "cost_usd": cost }));
    }
    let elsewhere = match is_elsewhere {
        true => "Another process is making the vectors that are missing.\n",
        false => "",
    };
    app.print(&format!("{}{elsewhere}", page(&state, cost)))
}

fn page(state: &VectorState, cost: Option<f64>) -> String {
    let cost = match cost {
        Some(0.0) => "nothing: it runs on this machine".to_owned(),
        Some(cost) => format!("${cost:.4}"),
        None => "unknown; recall.embeddings.price_per_million sets the price".to_owned(),
    };
    format!(
        "Model     {}\nVectors   {} of {} numbers, {} KB\nWaiting   {}\nRead      {} tokens\nCost      {cost}\n",
        state.model,
        thousands(state.passages),
        thousands(state.dimensions),
        thousands(state.bytes / 1_000),
        counted(state.waiting, "message", "messages"),
        thousands(state.tokens),
    )
}
