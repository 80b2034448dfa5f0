//! `throughline plugins check`: runs the conformance tests of the engine protocol against an engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use serde_json::json;
use throughline_engine::EngineDirectory;
use throughline_plugin::{CheckVerdict, ConformanceCheck, EngineBounds, HostServices, Launch, PlainServices};

use crate::app::App;
use crate::engines::manifest::{missing_program, read_manifest};
use crate::error::{CliError, Exit, io_words, path_words};
use crate::ui::output::print_json;
use crate::ui::text::on_one_line;

/// The number of last stderr lines that are shown if the engine fails.
const SHOWN_LOG_LINES: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline plugins check ~/.throughline/plugins/context_engine/window
  throughline plugins check -- python3 engine.py       # without a plugin.yaml
  throughline plugins check -- throughline engine --stdio

The engine is started and run through whole conversations in all three wire formats, as a
host does it, with a scripted model: no network, no key, and nothing is recorded. The
exit code is 3 if a check fails.")]
pub(crate) struct CheckArgs {
    /// The engine's directory, with a plugin.yaml in it
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "command")]
    directory: Option<PathBuf>,
    /// The program and its arguments, in place of a directory
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "directory")]
    command: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The engine to check.
struct Subject {
    name: String,
    launch: Launch,
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs, app: &App) -> Result<(), CliError> {
    let subject = subject(args, app)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::OutputFailed, "the engine cannot be checked").because(io_words(&error))
    })?;
    let plain = Arc::<PlainServices>::default();
    let services: Arc<dyn HostServices> = Arc::<PlainServices>::clone(&plain);
    let bounds = EngineBounds::default();
    let checks =
        runtime.block_on(ConformanceCheck::of_process(&subject.name, &subject.launch, bounds, &services));
    let failed = checks.iter().filter(|check| check.has_failed()).count();
    let log = plain.log_lines();
    let log = log.get(log.len().saturating_sub(SHOWN_LOG_LINES)..).unwrap_or_default();
    if args.json {
        let passes = failed == 0;
        print_json(app, &json!({ "engine": subject.name, "passes": passes, "checks": checks, "log": log }))?;
    } else {
        app.print(&render(&subject.name, &checks, if failed > 0 { log } else { &[] }))?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(CliError::new(Exit::BadInput, format!("{} of {} checks failed", failed, checks.len()))
            .hint("docs/engine-protocol.md has the protocol, `throughline plugins schema` its messages")),
    }
}

fn subject(args: &CheckArgs, app: &App) -> Result<Subject, CliError> {
    let unreadable = |directory: &Path, why: String| {
        CliError::new(Exit::InputUnreadable, format!("{} is not an engine", path_words(directory)))
            .because(why)
    };
    let here = std::path::absolute(".").map_err(|error| {
        CliError::new(Exit::InputUnreadable, "this folder cannot be read").because(io_words(&error))
    })?;
    let (name, launch, place) = match (&args.directory, args.command.split_first()) {
        (Some(directory), _) => {
            let path = here.join(directory);
            // `.` and `..` contain no directory name.
            let path = path.canonicalize().map_err(|error| unreadable(directory, io_words(&error)))?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let found = EngineDirectory { name, path };
            let manifest = read_manifest(&found).map_err(|why| unreadable(directory, why))?;
            (found.name, manifest.launch(&found.path, Path::is_file), directory.clone())
        }
        (None, Some((program, arguments))) => {
            let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
            let launch =
                Launch { program: PathBuf::from(program), arguments: arguments.to_vec(), folder: here };
            (name.unwrap_or_default(), launch, PathBuf::from(program))
        }
        (None, None) => return Err(CliError::new(Exit::Usage, "name a directory or a command to check")),
    };
    match missing_program(app, &launch) {
        Some(why) => Err(unreadable(&place, why)),
        None => Ok(Subject { name, launch }),
    }
}

fn render(name: &str, checks: &[ConformanceCheck], log: &[String]) -> String {
    let mut out = format!("{}\n", on_one_line(name));
    let mut counts = [0_usize; 3];
    for check in checks {
        let (count, word, why) = match &check.verdict {
            CheckVerdict::Passed => (0, "passed", None),
            CheckVerdict::LeftOut { why } => (1, "left out", Some(why)),
            CheckVerdict::Failed { why } => (2, "FAILED", Some(why)),
        };
        if let Some(count) = counts.get_mut(count) {
            *count += 1;
        }
        out.push_str(&format!("  {word:9} {}\n", check.name));
        if let Some(why) = why {
            out.push_str(&format!("            {}\n", on_one_line(why)));
        }
        if check.has_failed() {
            out.push_str(&format!("            the protocol says: {}\n", check.rule));
        }
    }
    for (index, line) in log.iter().enumerate() {
        let head = if index == 0 { "what it wrote to its log, at the end:\n" } else { "" };
        out.push_str(&format!("{head}  {}\n", on_one_line(line)));
    }
    let [passed, left_out, failed] = counts;
    out.push_str(&format!(
        "{} checks: {passed} passed, {left_out} left out, {failed} failed\n",
        checks.len()
    ));
    out
}
