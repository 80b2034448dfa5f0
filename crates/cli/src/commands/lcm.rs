//! `throughline lcm`: the summaries of a conversation, from the newest down to the messages they cover.

use clap::{Args, Subcommand};
use serde_json::json;
use throughline_compaction::thousands;
use throughline_lcm::{
    ExpandQuery, ExpandedItem, Expansion, NodeDescription, RecallError, RecallLimits, RecallReader, TreeNode,
};
use throughline_store::{NodeHead, StoreError, SummaryId};
use throughline_transcript::noun;

use crate::app::App;
use crate::engines::lcm_limits;
use crate::error::{CliError, Exit};
use crate::record::{OpenRecord, refused};
use crate::settings::load_settings;
use crate::ui::output::print_json;
use crate::ui::text::{counted, on_one_line};

/// Show the summaries of a conversation, down to the messages they cover
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline lcm tree last
  throughline lcm show n12
  throughline lcm show n12 --messages

Summaries of the engine `lcm` (context.engine) form a tree: leaves cover messages,
condensed ones cover leaves. A summary of another engine is shown as a leaf. ID is
an id, any unique prefix of one, a title, or `last`.")]
pub(crate) struct LcmArgs {
    #[command(subcommand)]
    command: LcmCommand,
}

#[derive(Debug, Subcommand)]
enum LcmCommand {
    /// Show the tree of summaries of a conversation
    Tree(LcmTreeArgs),
    /// Show a summary: its text, its sources, or the messages it covers
    Show(LcmShowArgs),
}

#[derive(Debug, Args)]
struct LcmTreeArgs {
    /// The conversation
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct LcmShowArgs {
    /// The summary, such as n12
    #[arg(value_name = "NODE")]
    node: String,
    /// Show the messages it covers
    #[arg(long)]
    messages: bool,
    /// With --messages: begin with the message of this number
    #[arg(long, value_name = "NUMBER", requires = "messages")]
    from: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &LcmArgs, app: &App) -> Result<(), CliError> {
    let limits = lcm_limits(&load_settings(app, &[])?.settings.lcm).recall;
    match &args.command {
        LcmCommand::Tree(args) => tree(args, app, &limits),
        LcmCommand::Show(args) => show(args, app, &limits),
    }
}

fn tree(args: &LcmTreeArgs, app: &App, limits: &RecallLimits) -> Result<(), CliError> {
    let record = OpenRecord::open_to_read(app, &args.id)?;
    let tip = record.tip(&args.id)?;
    let recall = RecallReader { store: &record.store, owner: &record.owner, limits };
    let tree = recall.tree(&tip.id).map_err(told)?;
    if args.json {
        return print_json(app, &tree);
    }
    let mut out = String::new();
    for node in &tree.nodes {
        write_tree(node, 0, &mut out);
    }
    if tree.nodes.is_empty() {
        out.push_str(&format!("Nothing of {} is compacted: all its messages are in view.\n", tree.session));
    } else {
        let compacted: u64 = tree.nodes.iter().map(|node| node.head.node.messages).sum();
        let messages = counted(tree.messages, "message", "messages");
        out.push_str(&format!(
            "\n{} of {messages} {} compacted\n",
            thousands(compacted),
            noun(compacted, "is", "are")
        ));
    }
    app.print(&out)
}

fn write_tree(node: &TreeNode, depth: usize, out: &mut String) {
    out.push_str(&format!("{}{}\n", "  ".repeat(depth), line(&node.head)));
    for below in &node.took_up {
        write_tree(below, depth + 1, out);
    }
}

/// Formats a node on one line.
fn line(head: &NodeHead) -> String {
    let (first, end) = head.between();
    let node = &head.node;
    let mut line = format!(
        "{} messages {first} to {}, {} -> {} tokens, by {}",
        head.id,
        end.saturating_sub(1).max(first),
        thousands(node.source_tokens),
        thousands(node.tokens),
        head.author
    );
    if !node.expand_for.is_empty() {
        line.push_str(&format!("; {}", node.expand_for));
    }
    on_one_line(&line)
}

fn show(args: &LcmShowArgs, app: &App, limits: &RecallLimits) -> Result<(), CliError> {
    let id: SummaryId = args.node.parse().map_err(|error: StoreError| {
        CliError::new(Exit::Usage, error.to_string()).hint("`throughline lcm tree ID` names them")
    })?;
    let record = OpenRecord::open_to_read(app, &args.node)?;
    let recall = RecallReader { store: &record.store, owner: &record.owner, limits };
    let found = recall.describe(id).map_err(told)?;
    if args.messages {
        return messages(args, app, &recall, &found);
    }
    if args.json {
        return print_json(app, &found);
    }
    let mut out = format!("{}\n", line(&found.head));
    for child in &found.took_up {
        out.push_str(&format!("  {}\n", line(child)));
    }
    if !found.head.node.files.is_empty() {
        out.push_str(&format!("files: {}\n", on_one_line(&found.head.node.files.join(", "))));
    }
    out.push_str(&format!("\n{}\n", found.document.trim_end()));
    app.print(&out)
}

/// Prints all messages that a node covers, page by page.
fn messages(
    args: &LcmShowArgs,
    app: &App,
    recall: &RecallReader<'_>,
    found: &NodeDescription,
) -> Result<(), CliError> {
    let mut items: Vec<ExpandedItem> = Vec::new();
    let mut ask = ExpandQuery {
        node: Some(found.head.id),
        expansion: Expansion::Messages,
        from: args.from,
        ..ExpandQuery::default()
    };
    loop {
        let page = recall.expand(&found.head.session, &ask).map_err(told)?;
        items.extend(page.items);
        match (page.next_offset, page.next_from) {
            // The rest of a long message comes before the next message.
            (Some(offset), _) => {
                ask.from = items.last().map(number);
                ask.offset = Some(offset);
            }
            (None, Some(from)) => {
                ask.from = Some(from);
                ask.offset = None;
            }
            (None, None) => break,
        }
    }
    if args.json {
        return print_json(app, &json!({ "node": found.head, "messages": items }));
    }
    let mut out = String::new();
    let mut last = None;
    for item in &items {
        if let ExpandedItem::Message { message, role, text, .. } = item {
            if last != Some(*message) {
                out.push_str(&format!("{}--- {message} {role}\n", if last.is_some() { "\n\n" } else { "" }));
            }
            out.push_str(text);
            last = Some(*message);
        }
    }
    out.push('\n');
    app.print(&out)
}

fn number(item: &ExpandedItem) -> u64 {
    match item {
        ExpandedItem::Message { message, .. } => *message,
        ExpandedItem::Node { head, .. } => head.between().0,
    }
}

/// Converts a recall error, with a hint.
fn told(error: RecallError) -> CliError {
    match error {
        RecallError::Store(error) => refused(error),
        RecallError::UnknownNode { id } => CliError::new(Exit::BadInput, format!("there is no summary {id}"))
            .hint("`throughline lcm tree ID` names those of a conversation"),
        other => CliError::new(Exit::BadInput, other.to_string()),
    }
}
