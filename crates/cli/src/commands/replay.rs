//! `throughline replay`: the cost of recorded conversations, as they were and as managed calls.

mod view;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use serde_json::{Value, json};
use throughline_engine::{SessionError, ToolOutputPolicy};
use throughline_provider::{CacheTtl, EndpointKind};
use throughline_replay::{
    Bill, ClientPrompt, Recording, ReplayError, ReplayOptions, SessionReplay, SummaryCost, replay,
};
use throughline_tokens::{Catalogue, Cost, Limits, ToolDeferral};
use throughline_transcript::{DecodeOptions, Note, Transcript, WireFormat};

use crate::app::App;
use crate::args::WindowArgs;
use crate::error::{CliError, Exit, path_words};
use crate::files::{input_name, transcript_files};
use crate::input::{Original, read_transcript};
use crate::limits::{CountMethod, TranscriptLimits};
use crate::model_catalogue::catalogue;
use crate::model_client::wait_for;
use crate::settings::SettingFlag;
use crate::ui::output::print_json;
use crate::ui::progress::ProgressLine;
use crate::ui::text::{counted, on_one_line};

/// The most failed files that are named.
const MAX_FAILURES_TOLD: usize = 10;

/// Price recorded conversations: as their own client sent them, and through Throughline
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline replay session.jsonl
  throughline replay ~/.claude/projects --tool-result-chars 8000
  throughline replay ~/.claude/projects --economy balanced --summaries rules
  throughline replay *.jsonl.gz --threshold 0.7 --cache-ttl 1h --json

Each conversation is repeated: its messages go through the managed call one by one,
at their recorded times, with the recorded answers. Prompts are priced by the
published rules of the provider's cache, with list prices and estimated tokens.
Nothing is sent anywhere and nothing is recorded.")]
pub(crate) struct ReplayArgs {
    /// Transcripts and folders of them; - for stdin; gzip is detected
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, required = true)]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    window: WindowArgs,

    /// Share of the window at which Throughline compacts (for compression.threshold)
    #[arg(long, value_name = "RATIO", help_heading = "Limits")]
    threshold: Option<String>,

    /// The longest tool result, in characters (for tool_output.result_max_chars)
    #[arg(long, value_name = "CHARS", help_heading = "Limits")]
    tool_result_chars: Option<String>,

    /// The cache lifetime that Throughline requests, 5m or 1h (for prompt_caching.cache_ttl)
    #[arg(long, value_name = "TTL", help_heading = "Limits")]
    cache_ttl: Option<String>,

    /// Measures that save money: off, balanced or thrift (for economy.mode)
    #[arg(long, value_name = "MODE", help_heading = "Limits")]
    economy: Option<String>,

    /// Who writes summaries
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Summaries::Model)]
    summaries: Summaries,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Who writes summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Summaries {
    /// The conversation's own model, at its price
    Model,
    /// The built-in rules, which cost nothing
    Rules,
}

impl From<Summaries> for SummaryCost {
    fn from(who: Summaries) -> Self {
        match who {
            Summaries::Model => Self::ByModel,
            Summaries::Rules => Self::Free,
        }
    }
}

/// A replayed conversation, with the terms of the replay.
pub(crate) struct ReplayedSession {
    /// The name of the file, and of the sub-agent if the conversation is one's.
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) window_tokens: u64,
    pub(crate) window_origin: String,
    pub(crate) threshold_tokens: u64,
    pub(crate) report: SessionReplay,
}

/// All replayed conversations.
#[derive(Default)]
pub(crate) struct ReplayPage {
    pub(crate) conversations: Vec<ReplayedSession>,
    pub(crate) without: Bill,
    pub(crate) with: Bill,
    pub(crate) logged: Bill,
    pub(crate) summaries: Option<SummaryCost>,
}

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs, app: &App) -> Result<(), CliError> {
    let catalogue = catalogue(app)?;
    let files = transcript_files(&args.paths)?;
    let mut page = ReplayPage { summaries: Some(args.summaries.into()), ..ReplayPage::default() };
    let mut failures: Vec<(String, CliError)> = Vec::new();
    let mut line = ProgressLine::new(app);
    for (number, file) in files.iter().enumerate() {
        line.show(&format!("{} of {}  {}", number + 1, files.len(), path_words(&file.path)));
        match replay_file(args, app, &catalogue, &file.path, &mut line) {
            Ok(replayed) => replayed.into_iter().for_each(|one| page.add(one)),
            // Folders may also contain other files.
            Err(failure) if !file.was_named && failure.exit() == Exit::BadInput => {
                line.end();
                app.note(&format!("{} is left out: {}", path_words(&file.path), failure.words()));
            }
            Err(failure) if failure.exit() == Exit::BadConfig => return Err(failure),
            Err(failure) => failures.push((input_name(&file.path), failure)),
        }
    }
    line.end();
    if page.conversations.is_empty() && failures.len() == 1 {
        return Err(failures.swap_remove(0).1);
    }
    if args.json {
        print_json(app, &page_json(&page, &failures))?;
    } else if !page.conversations.is_empty() {
        app.print(&view::render(&page, app.width))?;
    }
    outcome(&page, &failures)
}

/// Replays all conversations of a file.
fn replay_file(
    args: &ReplayArgs,
    app: &App,
    catalogue: &Catalogue,
    file: &Path,
    line: &mut ProgressLine<'_>,
) -> Result<Vec<ReplayedSession>, CliError> {
    let input = read_transcript(file, &DecodeOptions::default(), Original::Drop)?;
    for note in &input.transcript.notes {
        // The replay takes both into account.
        let is_known = note.text == Note::COMPACTION || note.text.starts_with(Note::SUB_AGENTS);
        if !is_known {
            let place = note.line.map(|line| format!(":{line}")).unwrap_or_default();
            line.end();
            app.note(&format!("{}{place}: {}", input.name, on_one_line(&note.text)));
        }
    }
    let mut found = Vec::new();
    for (agent, talk) in Recording::all_of(&input.transcript) {
        if talk.calls.is_empty() {
            continue;
        }
        let name = agent.map_or_else(|| input.name.clone(), |agent| format!("{} ({agent})", input.name));
        found.push(replay_talk(args, app, catalogue, &input.transcript, &talk, name, line)?);
    }
    if found.is_empty() {
        return Err(CliError::new(Exit::BadInput, format!("cannot replay {}", input.name))
            .because(ReplayError::NoCalls.to_string())
            .hint("a replay needs a conversation with answers, not a single request"));
    }
    Ok(found)
}

fn replay_talk(
    args: &ReplayArgs,
    app: &App,
    catalogue: &Catalogue,
    transcript: &Transcript,
    talk: &Recording,
    name: String,
    line: &mut ProgressLine<'_>,
) -> Result<ReplayedSession, CliError> {
    let flags: Vec<SettingFlag<'_>> = [
        ("--threshold", "compression.threshold", &args.threshold),
        ("--tool-result-chars", "tool_output.result_max_chars", &args.tool_result_chars),
        ("--cache-ttl", "prompt_caching.cache_ttl", &args.cache_ttl),
        ("--economy", "economy.mode", &args.economy),
    ]
    .into_iter()
    .filter_map(|(flag, key, value)| Some((flag, key, value.clone()?)))
    .collect();
    let situation = TranscriptLimits::of(app, &args.window, &flags, transcript, CountMethod::Estimate)?;
    if !situation.notes.is_empty() {
        // Notes are printed on separate lines.
        line.end();
        situation.print_notes(app);
    }
    let (window_tokens, window_origin) = (situation.window.value, situation.window.origin.clone());
    let mut limits = situation.policy;
    let model = situation.model.as_ref().map(|model| model.value.as_str()).unwrap_or_default();
    let kind = match transcript.wire_format {
        WireFormat::Anthropic => EndpointKind::Anthropic,
        WireFormat::Chat | WireFormat::Responses => EndpointKind::Custom,
    };
    if limits.economy.tools == ToolDeferral::ByList
        && situation.settings.economy.tool_references.is_none()
        && kind.loads_tools_by_reference(transcript.wire_format, model)
    {
        limits.economy.tools = ToolDeferral::ByReference;
    }
    let leaves = limits.economy.tools != ToolDeferral::Off;
    let options = ReplayOptions {
        model: situation.model.as_ref().map(|model| model.value.clone()).unwrap_or_default(),
        limits,
        ttl: Some(match situation.settings.prompt_caching.cache_ttl {
            throughline_config::CacheTtl::FiveMinutes => CacheTtl::FiveMinutes,
            throughline_config::CacheTtl::OneHour => CacheTtl::OneHour,
        }),
        tool_output: ToolOutputPolicy::default(),
        summaries: args.summaries.into(),
        summary_wait: None,
        client: leaves.then(ClientPrompt::claude_code),
        own_tools: crate::serve::recall::schemas(false),
        catalogue: catalogue.clone(),
    };
    let report = wait_for(replay(talk, &options))?.map_err(|error| {
        let cannot = format!("cannot replay {name}");
        match error {
            ReplayError::Managed(error @ SessionError::FixedTooLarge { .. }) => {
                CliError::new(Exit::BadInput, error.to_string()).because(cannot)
            }
            error => CliError::new(Exit::BadInput, cannot).because(error.to_string()),
        }
    })?;
    let threshold_tokens = Limits::beside(&situation.policy, report.fixed_tokens)
        .map_or(situation.budgets.threshold_tokens, |limits| limits.threshold_tokens.effective);
    Ok(ReplayedSession { name, model: options.model, window_tokens, window_origin, threshold_tokens, report })
}

impl ReplayPage {
    fn add(&mut self, replayed: ReplayedSession) {
        self.without.add(&replayed.report.without);
        self.with.add(&replayed.report.with);
        self.logged.add(&replayed.report.logged);
        self.conversations.push(replayed);
    }
}

fn outcome(page: &ReplayPage, failures: &[(String, CliError)]) -> Result<(), CliError> {
    if failures.is_empty() && page.conversations.is_empty() {
        return Err(CliError::new(Exit::BadInput, "there is nothing to replay")
            .because("none of the files is a transcript with answers")
            .hint("pass session logs, for example `throughline replay ~/.claude/projects`"));
    }
    let Some((_, first)) = failures.first() else { return Ok(()) };
    let mut causes: Vec<String> = failures
        .iter()
        .take(MAX_FAILURES_TOLD)
        .map(|(name, failure)| format!("{name}: {}", failure.words()))
        .collect();
    if failures.len() > MAX_FAILURES_TOLD {
        causes.push(format!("and {} more; --json lists them all", failures.len() - MAX_FAILURES_TOLD));
    }
    let count = counted(failures.len() as u64, "file", "files");
    Err(CliError::new(first.exit(), format!("{count} could not be replayed"))
        .because(causes.join("\n"))
        .hint("the other files are in the figures above"))
}

fn page_json(page: &ReplayPage, failures: &[(String, CliError)]) -> Value {
    let conversations: Vec<Value> = page
        .conversations
        .iter()
        .map(|one| {
            json!({
                "name": one.name,
                "model": one.model,
                "window_tokens": one.window_tokens,
                "window_origin": one.window_origin,
                "threshold_tokens": one.threshold_tokens,
                "replay": one.report,
            })
        })
        .collect();
    let failures: Vec<Value> =
        failures.iter().map(|(name, failure)| json!({ "name": name, "reason": failure.words() })).collect();
    json!({
        "summaries": page.summaries,
        "prices_as_of": Cost::prices_as_of(),
        "conversations": conversations,
        "total": { "without": page.without, "with": page.with, "logged": page.logged },
        "failures": failures,
    })
}
