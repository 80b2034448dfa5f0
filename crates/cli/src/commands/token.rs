//! `throughline token`: creates, lists and revokes access tokens for the gateway.

use clap::{Args, Subcommand};
use serde_json::json;
use throughline_gateway::{AccessTokens, TokenEntry, TokenLimits};

use crate::access_token_list::AccessTokenList;
use crate::app::App;
use crate::error::{CliError, Exit};
use crate::ui::figures::dollars;
use crate::ui::output::print_json;
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{on_one_line, thousands};

const MICROS_IN_A_DOLLAR: f64 = 1_000_000.0;
/// The largest accepted amount, in dollars.
const MOST_DOLLARS: f64 = 1_000_000.0;

/// Make, list and revoke tokens for the gateway
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline token new laptop
  throughline token new ci --per-minute 60 --concurrent 4 --usd-per-day 5
  throughline token new desk --owner local --operator
  throughline token list
  throughline token revoke ci
  throughline token off

A token is shown once; only its hash is stored. It gives access to the
conversations of its owner only. The owner `local` is you: all other commands use
it. Once a token exists, the gateway requires one from everybody, even after the
last one was revoked, until `token off`. Changes apply at once, also to a running
gateway.")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token and show it once
    New(NewArgs),
    /// List tokens and what each may use
    List(TokenListArgs),
    /// Revoke a token
    Revoke(RevokeArgs),
    /// Stop requiring tokens, after all of them were revoked
    Off,
}

#[derive(Debug, Args)]
struct NewArgs {
    /// The name of the token
    #[arg(value_name = "NAME")]
    name: String,
    /// The owner whose conversations it gives access to [default: NAME]
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// An operator's token: its holder may also see the gateway's health and settings, change settings, and make and revoke tokens
    #[arg(long)]
    operator: bool,
    /// Most requests per minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_minute: Option<u32>,
    /// Most concurrent requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrent: Option<u32>,
    /// Dollars its owner's calls may cost in a day (UTC)
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    usd_per_day: Option<u64>,
    /// Dollars its owner's calls may cost in thirty days
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    usd_per_month: Option<u64>,
    /// Largest request body, in bytes
    #[arg(long, value_name = "BYTES")]
    max_body: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct TokenListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The name of the token
    #[arg(value_name = "NAME")]
    name: String,
}

/// Parses an amount in dollars; returns millionths of a dollar.
fn parse_dollars(typed: &str) -> Result<u64, String> {
    let wanted = || "expected dollars, such as 5 or 0.50".to_owned();
    let typed = typed.trim().trim_start_matches('$');
    let is_plain = typed.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = typed.parse().ok().filter(|_| is_plain).ok_or_else(wanted)?;
    if !(0.0..=MOST_DOLLARS).contains(&number) {
        return Err(wanted());
    }
    Ok((number * MICROS_IN_A_DOLLAR).round() as u64)
}

/// Runs the command.
pub(crate) fn run(args: &TokenArgs, app: &App) -> Result<(), CliError> {
    match &args.command {
        TokenCommand::New(args) => new(args, app),
        TokenCommand::List(args) => list(args, app),
        TokenCommand::Revoke(args) => revoke(args, app),
        TokenCommand::Off => off(app),
    }
}

fn new(args: &NewArgs, app: &App) -> Result<(), CliError> {
    let limits = TokenLimits {
        requests_per_minute: args.per_minute,
        concurrent: args.concurrent,
        micro_usd_per_day: args.usd_per_day,
        micro_usd_per_month: args.usd_per_month,
        body_bytes: args.max_body,
    };
    let random = AccessTokens::random_bytes().ok_or_else(|| {
        CliError::new(Exit::Internal, "cannot create a token").because("the system's random source failed")
    })?;
    let owner = args.owner.as_deref().unwrap_or(&args.name);
    let secret = AccessTokenList::of(app)?.change(|book| {
        let added = book.add(&args.name, owner, &random, app.now().ms, limits).map_err(|error| {
            CliError::new(Exit::BadInput, "the token was not created").because(error.to_string())
        })?;
        if args.operator {
            book.make_operator(&args.name);
        }
        Ok(added)
    })?;
    if args.json {
        return print_json(
            app,
            &json!({
                "name": args.name,
                "owner": owner,
                "token": secret,
                "limits": limits,
                "operator": args.operator,
            }),
        );
    }
    app.print(&format!("{secret}\n"))?;
    app.note("this is the only time it is shown");
    app.note("a client sends it as x-throughline-token, or in place of its provider's key");
    Ok(())
}

fn list(args: &TokenListArgs, app: &App) -> Result<(), CliError> {
    let book = AccessTokenList::of(app)?.read()?;
    if args.json {
        let tokens: Vec<_> = book.entries().iter().map(entry_json).collect();
        return print_json(app, &json!({ "tokens": tokens }));
    }
    if book.entries().is_empty() {
        app.note("there are no tokens; create one with `throughline token new NAME`");
        return Ok(());
    }
    app.print(&table(&book, app))
}

fn entry_json(entry: &TokenEntry) -> serde_json::Value {
    json!({
        "name": entry.name,
        "owner": entry.owner,
        "created_ms": entry.created_ms,
        "operator": entry.operator,
        "limits": entry.limits,
    })
}

fn table(book: &AccessTokens, app: &App) -> String {
    let now = app.now();
    let mut table = TextTable::new(&[
        ("name", Side::Left),
        ("owner", Side::Left),
        ("made", Side::Left),
        ("limits", Side::Left),
    ])
    .wrapping();
    for entry in book.entries() {
        table.row([
            on_one_line(&entry.name),
            on_one_line(entry.owner.as_str()),
            now.date_time(entry.created_ms),
            match entry.operator {
                true => format!("operator; {}", limit_words(&entry.limits)),
                false => limit_words(&entry.limits),
            },
        ]);
    }
    table.render(app.width, 0)
}

fn limit_words(limits: &TokenLimits) -> String {
    let words = [
        limits.requests_per_minute.map(|count| format!("{} a minute", thousands(u64::from(count)))),
        limits.concurrent.map(|count| format!("{} at once", thousands(u64::from(count)))),
        limits.micro_usd_per_day.map(|micro_usd| format!("{} a day", dollars(micro_usd))),
        limits.micro_usd_per_month.map(|micro_usd| format!("{} in thirty days", dollars(micro_usd))),
        limits.body_bytes.map(|bytes| format!("bodies of {} bytes", thousands(bytes as u64))),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn revoke(args: &RevokeArgs, app: &App) -> Result<(), CliError> {
    let list = AccessTokenList::of(app)?;
    list.change(|book| {
        if book.revoke(&args.name) {
            return Ok(());
        }
        Err(CliError::new(Exit::BadInput, format!("there is no token `{}`", on_one_line(&args.name)))
            .hint("`throughline token list` shows them"))
    })?;
    app.note(&format!("{} is revoked; a running gateway applies this within a second", args.name));
    if list.read()?.entries().is_empty() {
        app.note("that was the last one: the gateway refuses every request until there is another");
        app.note("`throughline token off` lets programs of this user in without tokens again");
    }
    Ok(())
}

fn off(app: &App) -> Result<(), CliError> {
    let list = AccessTokenList::of(app)?;
    if !list.exists()? {
        app.note("no tokens are required");
        return Ok(());
    }
    list.remove()?;
    app.note("no tokens are required from the next start of a gateway on; it serves programs of this user");
    Ok(())
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
