//! Several gateways on one record: the latency they add to a call, the speed of a record on PostgreSQL compared with a file, and the load
//! at which its latency degrades.
//!
//! Parts: `record` appends, searches and continuations; `simulate` generated owners at growing load; `machine` the load of the machine
//! meanwhile. `gateway::fleet` measures the gateways.

mod machine;
#[cfg(feature = "postgres")]
mod record;
#[cfg(feature = "postgres")]
mod simulate;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::gateway;

#[derive(Args)]
pub(crate) struct FleetArgs {
    /// The program, built with the feature `postgres`.
    #[arg(long, default_value = "target/release/throughline")]
    program: PathBuf,
    /// Numbers of gateways; 0 for none.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    gateways: Vec<usize>,
    /// Messages of the record that is written and searched; 0 for none.
    #[arg(long, default_value_t = 1_000_000)]
    messages: usize,
    /// Instead: conversations of generated owners, at a load that grows until latency degrades.
    #[arg(long)]
    simulate: bool,
    /// How many owners.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), requires = "simulate")]
    owners: u32,
    /// How long each load lasts, in seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3_600), requires = "simulate")]
    seconds: u32,
    /// The first load, in calls a second; the next is twice as much.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "simulate")]
    first: u32,
    /// An empty database to use instead of a server that is started for this run.
    #[arg(long, requires = "simulate")]
    url: Option<String>,
    /// Print figures as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the selected measurements and formats tables.
pub(crate) fn run(args: &FleetArgs) -> Result<String, String> {
    if args.simulate {
        return simulated(args);
    }
    let counts: Vec<usize> = args.gateways.iter().copied().filter(|count| *count > 0).collect();
    let (mut tables, mut figures) = (Vec::new(), json!({}));
    if !counts.is_empty() {
        let (load, measured) = machine::with_load(|| gateway::fleet::run(&args.program, &counts));
        let measured = measured?;
        tables.push(format!("{}\n{load}\n", measured.print()));
        figures["gateways"] = measured.json();
        figures["gateways_load"] = json!(load);
    }
    if args.messages > 0 {
        let (load, measured) = machine::with_load(|| recorded(args.messages));
        let (file, server) = measured?;
        tables.push(format!(
            "The record with {} messages of one owner\n\n{}\n{load}\n",
            args.messages,
            server.print_beside("PostgreSQL", &file, "SQLite")
        ));
        figures["record"] =
            json!({ "messages": args.messages, "sqlite": file.json(), "postgresql": server.json() });
        figures["record_load"] = json!(load);
    }
    match args.json {
        true => serde_json::to_string_pretty(&figures).map_err(|error| error.to_string()),
        false => Ok(tables.join("\n")),
    }
}

#[cfg(feature = "postgres")]
fn recorded(messages: usize) -> Result<(crate::table::Table, crate::table::Table), String> {
    record::run(messages)
}

#[cfg(feature = "postgres")]
fn simulated(args: &FleetArgs) -> Result<String, String> {
    let simulation = simulate::run(&simulate::SimulateOptions {
        owners: args.owners as usize,
        seconds: args.seconds,
        first: args.first,
        url: args.url.clone(),
    })?;
    match args.json {
        true => serde_json::to_string_pretty(&simulation.json()).map_err(|error| error.to_string()),
        false => Ok(simulation.print()),
    }
}

#[cfg(not(feature = "postgres"))]
const WITHOUT: &str = "this build has no PostgreSQL: build it with --features throughline-bench/postgres";

#[cfg(not(feature = "postgres"))]
fn recorded(_: usize) -> Result<(crate::table::Table, crate::table::Table), String> {
    Err(WITHOUT.to_owned())
}

#[cfg(not(feature = "postgres"))]
fn simulated(args: &FleetArgs) -> Result<String, String> {
    let _ = (args.owners, args.seconds, args.first, &args.url);
    Err(WITHOUT.to_owned())
}
