//! `throughline plugins`: the installed context engines, and their problems.

mod check;

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;
use throughline_engine::{Compressor, EngineDirectory};
use throughline_lcm::LcmEngine;
use throughline_plugin::{Manifest, PROTOCOL_SCHEMA};

use crate::app::App;
use crate::engines::manifest::{missing_program, read_manifest};
use crate::error::{CliError, path_words};
use crate::files::engine_directories;
use crate::settings::load_settings;
use crate::ui::output::print_json;
use crate::ui::text::on_one_line;
use check::CheckArgs;

/// List the context engines: built in or installed, the selected one, and their problems
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
To install an engine, put its directory into plugins/context_engine in the home
directory. To use it, run `throughline config set context.engine NAME`. Its
plugin.yaml must have `command` (the program with its arguments) and may have
`name`, `version` and `description`."
)]
pub(crate) struct PluginsArgs {
    #[command(subcommand)]
    command: Option<PluginsCommand>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PluginsCommand {
    /// Run the protocol's conformance tests against an engine
    Check(CheckArgs),
    /// Print the JSON Schema of the engine protocol's messages
    Schema,
}

/// A context engine in the list.
struct EngineRow {
    name: String,
    /// Its directory; `None` for the built-in engine.
    directory: Option<EngineDirectory>,
    manifest: Option<Manifest>,
    problem: Option<String>,
    is_selected: bool,
}

/// Runs the command.
pub(crate) fn run(args: &PluginsArgs, app: &App) -> Result<(), CliError> {
    match &args.command {
        Some(PluginsCommand::Check(check)) => check::run(check, app),
        Some(PluginsCommand::Schema) => app.print(PROTOCOL_SCHEMA),
        None => list(args, app),
    }
}

/// Returns the available engines as JSON objects.
pub(crate) fn listed(app: &App) -> Result<Vec<serde_json::Value>, CliError> {
    let settings = load_settings(app, &[])?.settings;
    Ok(rows(app, selected(&settings.context.engine)).iter().map(as_json).collect())
}

/// The name of the engine that a setting selects.
fn selected(setting: &str) -> &str {
    let name = setting.trim();
    if name.is_empty() { Compressor::NAME } else { name }
}

fn list(args: &PluginsArgs, app: &App) -> Result<(), CliError> {
    let settings = load_settings(app, &[])?.settings;
    let selected = selected(&settings.context.engine);
    let listed = rows(app, selected);
    if args.json {
        let engines: Vec<_> = listed.iter().map(as_json).collect();
        return print_json(app, &json!({ "selected": selected, "engines": engines }));
    }
    app.print(&render(&listed))?;
    if !listed.iter().any(|one| one.is_selected) {
        app.warn(&format!("`context.engine` names `{selected}`, which does not exist"));
    }
    Ok(())
}

fn rows(app: &App, selected: &str) -> Vec<EngineRow> {
    let mut directories = engine_directories(&app.home);
    directories.retain(|directory| !directory.name.starts_with(['.', '_']));
    directories.sort_by(|a, b| a.name.cmp(&b.name));
    let goes_before = |name: &str| directories.iter().any(|directory| directory.name == name);
    let mut listed: Vec<EngineRow> = [Compressor::NAME, LcmEngine::NAME]
        .into_iter()
        .map(|name| EngineRow {
            name: name.to_owned(),
            directory: None,
            manifest: None,
            problem: None,
            is_selected: selected == name && (name == Compressor::NAME || !goes_before(name)),
        })
        .collect();
    listed.extend(directories.into_iter().map(|directory| installed(app, directory, selected)));
    listed
}

fn installed(app: &App, directory: EngineDirectory, selected: &str) -> EngineRow {
    let name = directory.name.clone();
    let is_selected = name == selected && name != Compressor::NAME;
    let (manifest, problem) = match read_manifest(&directory) {
        Ok(_) if name == Compressor::NAME => {
            (None, Some("the name belongs to the built-in engine; rename the directory".to_owned()))
        }
        Ok(manifest) => {
            let problem = missing_program(app, &manifest.launch(&directory.path, Path::is_file));
            (Some(manifest), problem)
        }
        Err(problem) => (None, Some(problem)),
    };
    EngineRow { name, directory: Some(directory), manifest, problem, is_selected }
}

fn as_json(one: &EngineRow) -> serde_json::Value {
    let manifest = one.manifest.as_ref();
    json!({
        "name": one.name,
        "place": one.directory.as_ref().map_or_else(|| "built in".to_owned(), |directory| directory.path.display().to_string()),
        "version": manifest.map(|manifest| manifest.version.as_str()),
        "description": manifest.map(|manifest| manifest.description.as_str()),
        "command": manifest.map(|manifest| manifest.command.as_slice()),
        "selected": one.is_selected,
        "problem": one.problem,
    })
}

fn render(listed: &[EngineRow]) -> String {
    let mut out = String::new();
    for one in listed {
        let mark = if one.is_selected { "*" } else { " " };
        let place = match &one.directory {
            None => "built in".to_owned(),
            Some(directory) => path_words(&directory.path),
        };
        let version = one.manifest.as_ref().map(|manifest| manifest.version.as_str()).unwrap_or_default();
        let name = [one.name.as_str(), version].join(" ");
        out.push_str(&format!("{mark} {:24} {place}\n", on_one_line(name.trim_end())));
        let description = one.manifest.as_ref().map(|manifest| on_one_line(&manifest.description));
        for line in description.into_iter().filter(|line| !line.is_empty()) {
            out.push_str(&format!("    {line}\n"));
        }
        if let Some(problem) = &one.problem {
            out.push_str(&format!("    broken: {problem}\n"));
        }
    }
    out.push_str("\n* is the one in use (context.engine)\n");
    out
}
