//! What an operator does to a record as a whole: `store expire`, `export-owner`, `erase-owner`, `log`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use throughline_store::{
    ArtifactRange, Owner, RemovalReport, SessionId, Store as _, StoreError, StoreProgress, apply_retention,
    erase_owner as erase_everything_of, note_action,
};

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_private;
use crate::record::retention::{RetentionOutcome, action, apply, policy};
use crate::record::{OpenRecord, refused};
use crate::settings::load_settings;
use crate::ui::output::print_json;
use crate::ui::progress::{ProgressLine, progress_words};
use crate::ui::text::{counted, on_one_line};

/// Remove conversations that are older than `store.retention` allows
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline store expire --dry-run
  throughline --set store.retention.days=90 store expire

A conversation is removed with its branches, sub-agents and side calls, once none of
them has had a message for that many days. `throughline serve` does this once an
hour, on one gateway at a time.")]
pub(super) struct ExpireArgs {
    /// Report what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Export all data of one owner into a new folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline store export-owner ann --to ann-export

One file of JSON lines for each conversation (its sessions, messages byte for byte,
summaries and calls), one text file for each large text, and `export.json` with the
counts. The export is noted in the record: `throughline store log` shows it.")]
pub(super) struct ExportOwnerArgs {
    /// The owner: the name of an access token's owner; `local` for everything without one
    owner: String,
    /// The folder, which must not exist
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Delete all data of one owner permanently
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline store export-owner ann --to ann-export
  throughline store erase-owner ann --yes

Deletes the owner's conversations, messages, summaries, calls and large texts. Revoke
the owner's access tokens first: messages that arrive during the command may remain.
Backups keep everything until they are deleted. The deletion is noted in the record
with the owner's name: `throughline store log` shows it.")]
pub(super) struct EraseOwnerArgs {
    /// The owner
    owner: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show what operators did to the record: expired, exported and erased
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn expire(args: &ExpireArgs, app: &App) -> Result<(), CliError> {
    let settings = load_settings(app, &[])?.settings;
    let policy = policy(&settings.store.retention);
    if policy.is_empty() {
        return Err(CliError::new(Exit::BadConfig, "nothing expires")
            .because("`store.retention` does not set a number of days")
            .hint("set store.retention.days, or days of an owner under store.retention.owners"));
    }
    let Some(record) = OpenRecord::open_existing(app)? else { return Ok(()) };
    let mut line = ProgressLine::new(app);
    let mut follow = |progress: StoreProgress| {
        if line.is_due() {
            line.show(&progress_words(progress));
        }
    };
    let report = if args.dry_run {
        let mut go_on = |progress| {
            follow(progress);
            Ok(())
        };
        let counted = apply_retention(record.store.upkeep(), &policy, app.now().ms, true, &mut go_on);
        counted.map(RetentionOutcome::Done)
    } else {
        drop(record);
        let record = OpenRecord::open(app)?;
        apply(&record.store, app, &policy, "store expire", false, &mut follow)
    };
    line.end();
    let report = match report.map_err(refused)? {
        RetentionOutcome::Done(report) => report,
        RetentionOutcome::DoneLately => RemovalReport::default(),
        RetentionOutcome::HeldBy(held) => {
            return Err(CliError::new(Exit::Busy, "another process is removing old conversations")
                .because(format!("it is {}", on_one_line(&held.holder.to_string())))
                .hint("wait until it is done"));
        }
    };
    if args.json {
        return print_json(app, &report);
    }
    let what = if args.dry_run { "Would remove" } else { "Removed" };
    app.print(&format!("{what} {}\n", removed_words(&report)))
}

fn removed_words(report: &RemovalReport) -> String {
    format!(
        "{}, {}, {}",
        counted(report.conversations, "conversation", "conversations"),
        counted(report.sessions, "session", "sessions"),
        counted(report.messages, "message", "messages")
    )
}

pub(super) fn erase_owner(args: &EraseOwnerArgs, app: &App) -> Result<(), CliError> {
    let owner = Owner::new(args.owner.clone());
    let record = OpenRecord::open(app)?;
    let sessions = record.store.upkeep().sessions_of(&owner).map_err(refused)?.len() as u64;
    if !args.yes {
        let what = format!("everything of `{}` ({})", args.owner, counted(sessions, "session", "sessions"));
        if !app.can_ask {
            return Err(CliError::new(Exit::Usage, "nothing was deleted")
                .because(format!("this would delete {what} permanently, and there is no terminal to ask at"))
                .hint("--yes deletes without asking"));
        }
        let answer = app.ask(&format!("Delete {what} permanently? Type yes: "));
        if !matches!(answer.as_deref(), Some("yes" | "y")) {
            return Err(CliError::new(Exit::Usage, "nothing was deleted").because("the answer was not yes"));
        }
    }
    let mut line = ProgressLine::new(app);
    let mut follow = |progress: StoreProgress| {
        if line.is_due() {
            line.show(&progress_words(progress));
        }
    };
    let report = erase_everything_of(record.store.upkeep(), &owner, &mut follow);
    line.end();
    let report = report.map_err(refused)?;
    let noted = action("erase-owner", &args.owner, &report, app);
    note_action(record.store.upkeep(), &noted).map_err(refused)?;
    if args.json {
        return print_json(app, &report);
    }
    app.print(&format!("Deleted {}\n", removed_words(&report)))
}

pub(super) fn log(args: &LogArgs, app: &App) -> Result<(), CliError> {
    let Some(record) = OpenRecord::open_existing(app)? else { return Ok(()) };
    let actions = record.store.upkeep().actions().map_err(refused)?;
    if args.json {
        return print_json(app, &json!({ "actions": actions }));
    }
    if actions.is_empty() {
        return app.print("Nothing was expired, exported or erased.\n");
    }
    let lines: String = actions
        .iter()
        .map(|noted| {
            let owner = match noted.owner.is_empty() {
                true => String::new(),
                false => format!(" {}", on_one_line(&noted.owner)),
            };
            format!(
                "{}  {}{owner}: {}, {}, by {}\n",
                record.now.date_time(noted.at_ms),
                noted.action,
                counted(noted.conversations, "conversation", "conversations"),
                counted(noted.messages, "message", "messages"),
                on_one_line(&noted.by)
            )
        })
        .collect();
    app.print(&lines)
}

pub(super) fn export_owner(args: &ExportOwnerArgs, app: &App) -> Result<(), CliError> {
    let owner = Owner::new(args.owner.clone());
    let record = OpenRecord::open(app)?;
    let sessions = record.store.upkeep().sessions_of(&owner).map_err(refused)?;
    make_folder(&args.to)?;
    make_folder(&args.to.join("conversations"))?;
    make_folder(&args.to.join("artifacts"))?;
    let mut export =
        OwnerExport { record: &record, owner: &owner, to: &args.to, counts: ExportCounts::default() };
    let mut line = ProgressLine::new(app);
    let mut written = std::collections::HashSet::new();
    for (done, id) in (0..).zip(&sessions) {
        if line.is_due() {
            line.show(&progress_words(StoreProgress {
                what: "exporting",
                done,
                total: sessions.len() as u64,
            }));
        }
        let session = record.store.session(&owner, id).map_err(refused)?;
        if written.insert(session.chain) {
            export.conversation(id)?;
        }
    }
    line.end();
    let ExportCounts { conversations, sessions, messages, calls, artifacts } = export.counts;
    let counts = json!({
        "owner": args.owner, "at_ms": app.now().ms, "conversations": conversations, "sessions": sessions,
        "messages": messages, "calls": calls, "artifacts": artifacts,
    });
    write_private(&args.to.join("export.json"), format!("{counts}\n").as_bytes())?;
    let report = RemovalReport { conversations, sessions, messages };
    note_action(record.store.upkeep(), &action("export-owner", &args.owner, &report, app))
        .map_err(refused)?;
    if args.json {
        return print_json(app, &counts);
    }
    app.print(&format!(
        "Exported {}, {} and {} to {}\n",
        removed_words(&report),
        counted(calls, "call", "calls"),
        counted(artifacts, "large text", "large texts"),
        path_words(&args.to)
    ))
}

fn make_folder(path: &Path) -> Result<(), CliError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| {
        CliError::new(Exit::OutputFailed, format!("the folder {} was not made", path_words(path)))
            .because(io_words(&error))
            .hint("--to names a folder that does not exist")
    })
}

#[derive(Default)]
struct ExportCounts {
    conversations: u64,
    sessions: u64,
    messages: u64,
    calls: u64,
    artifacts: u64,
}

/// An export of one owner's data in progress.
struct OwnerExport<'a> {
    record: &'a OpenRecord<'a>,
    owner: &'a Owner,
    to: &'a Path,
    counts: ExportCounts,
}

impl OwnerExport<'_> {
    /// Writes the conversation that begins with a session.
    fn conversation(&mut self, id: &SessionId) -> Result<(), CliError> {
        let store = &self.record.store;
        let mut lines = String::new();
        let mut line = |value: &Value| {
            lines.push_str(&value.to_string());
            lines.push('\n');
        };
        let chain = store.chain(self.owner, id).map_err(refused)?;
        let mut messages = String::new();
        for session in &chain {
            line(&json!({ "session": session }));
            for message in store.messages(self.owner, &session.id).map_err(refused)? {
                let about = json!({
                    "of_session": session.id, "seq": message.seq, "role": message.role.name(), "at_ms": message.at_ms,
                    "tools": message.tools,
                });
                // The message keeps its bytes.
                let about = about.to_string();
                let about = about.strip_suffix('}').unwrap_or(&about);
                messages.push_str(&format!("{about},\"message\":{}}}\n", message.json.as_str()));
                self.counts.messages += 1;
            }
            self.counts.sessions += 1;
        }
        for summary in store.summaries(self.owner, id).map_err(refused)? {
            line(&json!({ "summary": summary }));
        }
        let mut preambles = std::collections::BTreeSet::new();
        for stored in store.calls(self.owner, id).map_err(refused)? {
            let (session, call) = (stored.session, stored.call);
            line(&json!({ "call": {
                "session": session, "at_ms": call.at_ms, "model": call.model, "provider": call.provider,
                "task": call.task, "usage": call.usage_raw, "cost_micro_usd": call.cost_micro_usd,
                "error": call.error, "access_token": call.access_token, "preamble": call.preamble,
            } }));
            self.counts.calls += 1;
            preambles.extend(call.preamble);
        }
        for preamble in preambles {
            if let Some(found) = store.preamble(&preamble).map_err(refused)? {
                line(&json!({ "preamble": {
                    "id": preamble, "system": found.system, "tools": found.tools, "parameters": found.parameters,
                } }));
            }
        }
        for artifact in store.artifacts(self.owner, id).map_err(refused)? {
            line(&json!({ "artifact": artifact }));
            let path = self.to.join("artifacts").join(format!("{}.txt", artifact.id));
            if path.exists() {
                continue;
            }
            match store.read_artifact(self.owner, &artifact.id, ArtifactRange::All) {
                Ok(text) => write_private(&path, text.as_bytes())?,
                Err(error @ StoreError::ArtifactDamaged { .. }) => self.record.app.warn(&error.to_string()),
                Err(other) => return Err(refused(other)),
            }
            self.counts.artifacts += 1;
        }
        lines.push_str(&messages);
        self.counts.conversations += 1;
        write_private(&self.to.join("conversations").join(format!("{id}.jsonl")), lines.as_bytes())
    }
}
