//! The cost of recorded sessions in each mode of `economy`, compared with the prompts of their own client under the same rules and with
//! the same cache lifetime. Also measures a threshold that is merely lower, and notes that are paid for.

mod memory;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{ToolOutputPolicy, ToolSchema};
use throughline_lcm::{RecallToolset, RecordTools};
use throughline_replay::{Bill, ClientPrompt, Recording, ReplayOptions, SessionReplay, SummaryCost};
use throughline_tokens::{Catalogue, Economy, LimitPolicy, ToolDeferral};

use crate::anchor::AnchorFinder;
use crate::client_prompt::captured;
use crate::recorded::{Recorded, read, sessions};
use crate::takeover::sent::Marks;
use memory::{ModeMemory, Watched};

/// The window of the recorded client.
const WINDOW_TOKENS: u64 = 200_000;
/// The trivial alternative: the same low threshold for every session.
const LOW_THRESHOLD_TOKENS: u64 = 70_000;
/// The most a session may cost more than without Throughline, in percent: with notes by rules, with notes by a model.
const DEARER_PERCENT: (f64, f64) = (1.0, 3.0);
/// The most that may have been paid after any call, in thousandths of the cost without Throughline.
const WORST_PERMILLE: u64 = 1_050;

/// How long a gateway's client waits for a model's notes.
const CLIENT_WAIT: Duration = Duration::from_secs(2);

/// The detail of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One line for each mode.
    Sums,
    /// Also a line for each session.
    Sessions,
}

/// Who writes the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Author {
    /// Rules, at no cost.
    Rules,
    /// A model, at the client's expense.
    Model,
}

impl Author {
    fn words(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Model => "a model",
        }
    }

    fn cost(self) -> SummaryCost {
        match self {
            Self::Rules => SummaryCost::Free,
            Self::Model => SummaryCost::ByModel,
        }
    }
}

/// A mode that is measured.
struct Policy {
    name: &'static str,
    economy: Economy,
    threshold_tokens: Option<u64>,
    /// Whether the client has tools of MCP servers.
    has_generated: bool,
    /// The most it may cost, in percent: with notes by rules, with notes by a model.
    limit_percent: Option<(f64, f64)>,
}

/// Deferred tools are loaded by reference, as by Anthropic's own API.
const BY_REFERENCE: Economy = Economy { tools: ToolDeferral::ByReference, ..Economy::THRIFT };
const PLAIN: Policy = Policy {
    name: "off",
    economy: Economy::OFF,
    threshold_tokens: None,
    has_generated: true,
    limit_percent: None,
};

const POLICIES: [Policy; 8] = [
    PLAIN,
    Policy { name: "off, threshold 70,000", threshold_tokens: Some(LOW_THRESHOLD_TOKENS), ..PLAIN },
    Policy { name: "balanced", economy: Economy::BALANCED, limit_percent: Some((72.0, 75.0)), ..PLAIN },
    Policy {
        name: "balanced, tools",
        economy: Economy { tools: ToolDeferral::ByReference, ..Economy::BALANCED },
        ..PLAIN
    },
    Policy {
        name: "balanced, results",
        economy: Economy { tool_results: true, ..Economy::BALANCED },
        ..PLAIN
    },
    Policy { name: "thrift", economy: BY_REFERENCE, limit_percent: Some((50.0, 53.0)), ..PLAIN },
    Policy { name: "thrift, tools by list", economy: Economy::THRIFT, ..PLAIN },
    Policy { name: "thrift, no MCP tools", economy: BY_REFERENCE, has_generated: false, ..PLAIN },
];

/// The replays of all sessions under one policy.
#[derive(Default)]
struct PolicyRun {
    rows: Vec<(String, SessionReplay)>,
    without: Bill,
    with: Bill,
}

impl PolicyRun {
    fn percent(&self) -> f64 {
        percent(&self.with, &self.without)
    }

    fn dearer(&self, by_percent: f64) -> usize {
        let dear = |one: &SessionReplay| percent(&one.with, &one.without) > 100.0 + by_percent;
        self.rows.iter().filter(|(_, one)| dear(one)).count()
    }

    fn worst_permille(&self) -> u64 {
        self.rows.iter().map(|(_, one)| one.worst_permille).max().unwrap_or(0)
    }
}

/// The options of the benchmark.
pub(crate) struct EconomyRun<'a> {
    /// The folder of recorded sessions.
    pub(crate) folder: &'a Path,
    /// The detail of the output.
    pub(crate) detail: Detail,
    /// The modes to measure; all if empty.
    pub(crate) only: &'a [String],
    /// Only notes of this author.
    pub(crate) notes: Option<Author>,
    /// A client whose system prompt and tools are used.
    pub(crate) client: Option<&'a Path>,
    /// The folder of marks, for the contents of views.
    pub(crate) truth: Option<&'a Path>,
    /// The model of conversations that name none.
    pub(crate) model: Option<&'a str>,
}

/// Runs the benchmark and formats the tables.
pub(crate) fn run(asked: &EconomyRun<'_>) -> Result<String, String> {
    let EconomyRun { folder, detail, only, notes, client, truth, model } = *asked;
    let prompt = client.map_or_else(|| Ok(ClientPrompt::claude_code()), captured)?;
    let error_text = |error: std::io::Error| error.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(error_text)?;
    let sessions = sessions(folder)?;
    let memory = truth.map(|truth| Watch::of(folder, truth, &sessions)).transpose()?;
    let mut memories: Vec<(&str, ModeMemory)> = Vec::new();
    let mut out = String::from(
        "The bill in percent of the recorded client's own prompts, priced by the rules of the provider's cache\n\n",
    );
    let (mut verdicts, mut splits) = (String::new(), String::new());
    for author in
        [Author::Rules, Author::Model].into_iter().filter(|author| notes.is_none_or(|only| only == *author))
    {
        let (who, summaries) = (author.words(), author.cost());
        let _ = writeln!(
            out,
            "{:<22} {:>6} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7}",
            format!("notes by {who}"),
            "bill",
            "compacted",
            "notes",
            "reread",
            "tools",
            "fixed",
            "read",
            "written",
            "answers",
            "dearer",
            "worst"
        );
        let is_asked = |policy: &&Policy| only.is_empty() || only.iter().any(|name| name == policy.name);
        for policy in POLICIES.iter().filter(is_asked) {
            let mut run = PolicyRun::default();
            let watch = memory.as_ref().filter(|_| summaries == SummaryCost::Free);
            let mut seen = ModeMemory::default();
            for recorded in &sessions {
                let watching = watch.map(|watch| (watch, &mut seen));
                for (name, report) in
                    runtime.block_on(replayed(recorded, policy, &prompt, summaries, model, watching))?
                {
                    run.without.add(&report.without);
                    run.with.add(&report.with);
                    run.rows.push((name, report));
                }
            }
            if run.without.unpriced_calls > 0 {
                return Err(format!(
                    "{} of {} calls have no price: name a model with --model for conversations that name none",
                    run.without.unpriced_calls, run.without.calls
                ));
            }
            if watch.is_some() {
                memories.push((policy.name, seen));
            }
            let allowed = if summaries == SummaryCost::Free { DEARER_PERCENT.0 } else { DEARER_PERCENT.1 };
            let share = |of: fn(&Bill) -> u64| 100.0 * of(&run.with) as f64 / of(&run.without).max(1) as f64;
            let _ = writeln!(
                out,
                "{:<22} {:>5.1}% {:>9} {:>6} {:>6} {:>6} {:>5.1}% {:>5.1}% {:>6.1}% {:>6.1}% {:>6} {:>6.1}%",
                policy.name,
                run.percent(),
                run.with.compactions,
                run.with.summary_calls,
                run.with.reread_calls,
                run.with.found_tools,
                share(|bill| bill.fixed_read),
                share(|bill| bill.usage.cache_read.saturating_sub(bill.fixed_read)),
                share(|bill| bill.usage.cache_write + bill.usage.input),
                share(|bill| bill.usage.output),
                run.dearer(allowed),
                run.worst_permille() as f64 / 10.0,
            );
            if summaries == SummaryCost::Free
                && let Some(words) = split_words(&run)
            {
                splits.push_str(&format!("{}: {words}\n", policy.name));
            }
            if detail == Detail::Sessions {
                out.push_str(&lines(&run));
            }
            if let Some((by_rules, by_model)) = policy.limit_percent {
                let limit = if summaries == SummaryCost::Free { by_rules } else { by_model };
                let holds = run.percent() <= limit
                    && run.dearer(allowed) == 0
                    && run.worst_permille() <= WORST_PERMILLE;
                let verdict = if holds { "holds" } else { "MISSED" };
                let _ = writeln!(
                    verdicts,
                    "{}, notes by {who}: at most {limit:.0} %, no session more than {allowed:.0} % dearer, at most 5 % \
                     more paid after any call: {verdict}",
                    policy.name
                );
            }
        }
        out.push('\n');
    }
    out.push_str(
        "Calls: notes by a model; reread, what had been shortened; tools, brought back. Tokens against without: fixed, system \
         prompt and tools read from the cache; read, messages; written; answers.\n\
         dearer: sessions that cost more than without; worst: the most that had been paid after any call, against without.\n\n",
    );
    if let Some(watch) = memory.as_ref().filter(|_| !memories.is_empty()) {
        out.push_str(&memory::table(&memories, &watch.recordings, detail == Detail::Sessions)?);
        out.push('\n');
    }
    let whose = client.map_or_else(
        || format!("texts of the sizes of Claude Code {}", ClientPrompt::version()),
        |program| format!("as {} sends them", program.display()),
    );
    let _ = writeln!(out, "System prompt and tools: {whose}. Tokens of each on average:\n{splits}");
    out.push_str(&verdicts);
    Ok(out)
}

/// The average parts of prompts before their messages.
fn split_words(run: &PolicyRun) -> Option<String> {
    let (mut sums, mut count) = ([0_u64; 4], 0_u64);
    for one in run.rows.iter().filter_map(|(_, one)| one.fixed_split) {
        let parts = [one.system_tokens, one.tools_tokens, one.generated_tools, one.generated_tokens];
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        count += 1;
    }
    let [system, tools, generated, generated_tokens] = sums.map(|sum| sum.checked_div(count));
    Some(format!(
        "system {}, tools {}, {} generated tools {}",
        system?, tools?, generated?, generated_tokens?
    ))
}

/// Formats a line for each session.
fn lines(run: &PolicyRun) -> String {
    let mut out = String::new();
    for (name, one) in &run.rows {
        let _ = writeln!(
            out,
            "  {:<22} {:>6.1}% {:>9} calls {:>5} fixed {:>6} worst {:>6.1}% ${:.2}",
            name,
            percent(&one.with, &one.without),
            one.with.compactions,
            one.without.calls,
            one.fixed_tokens,
            one.worst_permille as f64 / 10.0,
            one.without.micro_usd as f64 / 1e6,
        );
    }
    out
}

/// The recall tools that the gateway offers.
fn recall_tools() -> Vec<ToolSchema> {
    const ACROSS: [&str; 3] = ["recall_search", "recall_messages", "recall_artifact"];
    let within = RecallToolset::schemas().into_iter().filter(|tool| tool.name != RecallToolset::QUESTION);
    within
        .chain(RecordTools::schemas().into_iter().filter(|tool| ACROSS.contains(&tool.name.as_str())))
        .collect()
}

/// Sessions whose views are checked.
struct Watch {
    marks: Marks,
    sessions: Vec<(String, Arc<Watched>)>,
    recordings: Vec<(String, Recording)>,
}

impl Watch {
    fn of(folder: &Path, truth: &Path, sessions: &[Recorded]) -> Result<Self, String> {
        let marks = Marks::read(truth)?;
        let finder = AnchorFinder::new().map_err(|error| error.to_string())?;
        let mut found = Self { marks, sessions: Vec::new(), recordings: Vec::new() };
        for recorded in sessions {
            let recording = Recording::of(&recorded.transcript);
            let log = read(&folder.join(&recorded.name))?;
            let name = short_name(recorded);
            let watched = Watched::new(name, &recording, &log, &found.marks, &finder);
            found.sessions.push((name.to_owned(), Arc::new(watched)));
            found.recordings.push((name.to_owned(), recording));
        }
        Ok(found)
    }

    /// The session with this name, unless it is a sub-agent's.
    fn session(&self, name: &str) -> Option<&Arc<Watched>> {
        self.sessions.iter().find(|(one, _)| one == name).map(|(_, watched)| watched)
    }
}

fn short_name(recorded: &Recorded) -> &str {
    recorded.name.split('.').next().unwrap_or_default()
}

async fn replayed(
    recorded: &Recorded,
    policy: &Policy,
    prompt: &ClientPrompt,
    summaries: SummaryCost,
    model: Option<&str>,
    mut watch: Option<(&Watch, &mut ModeMemory)>,
) -> Result<Vec<(String, SessionReplay)>, String> {
    let client = match policy.has_generated {
        true => prompt.clone(),
        false => prompt.clone().without_generated_tools(),
    };
    let mut rows = Vec::new();
    for (agent, recording) in Recording::all_of(&recorded.transcript) {
        if recording.calls.is_empty() {
            continue;
        }
        let limits = LimitPolicy {
            economy: policy.economy,
            threshold_tokens: policy.threshold_tokens,
            ..LimitPolicy::for_window(WINDOW_TOKENS)
        };
        let options = ReplayOptions {
            model: recording.model.clone().or(model.map(str::to_owned)).unwrap_or_default(),
            limits,
            ttl: None,
            tool_output: ToolOutputPolicy::default(),
            summaries,
            catalogue: Catalogue::shipped(),
            summary_wait: Some(CLIENT_WAIT),
            client: Some(client.clone()),
            own_tools: recall_tools(),
        };
        let name = short_name(recorded);
        let watched = watch.as_mut().filter(|_| agent.is_none());
        let watched =
            watched.and_then(|(watch, seen)| Some((watch.session(name)?.watch(), &watch.marks, seen)));
        let report = match watched {
            Some((watched, marks, seen)) => {
                let report = recording.replay_observed(&options, watched.observer()).await;
                watched.end(marks, seen)?;
                report
            }
            None => recording.replay(&options).await,
        };
        let report = report.map_err(|error| format!("{}: {error}", recorded.name))?;
        rows.push((agent.map_or_else(|| name.to_owned(), |agent| format!("{name}/{agent}")), report));
    }
    Ok(rows)
}

fn percent(with: &Bill, without: &Bill) -> f64 {
    100.0 * with.micro_usd as f64 / without.micro_usd.max(1) as f64
}
