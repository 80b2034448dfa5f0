//! `throughline search`: searches the whole record, by words or as a substring.

mod view;

use std::collections::HashMap;

use clap::{Args, ValueEnum};
use throughline_store::{SearchAnswer, SearchMode, SearchQuery, SessionId, Store as _};
use throughline_transcript::Role;

use crate::app::App;
use crate::args::time::{TimeArg, parse_time};
use crate::error::CliError;
use crate::meaning::search_by_meaning;
use crate::record::{OpenRecord, refused};
use crate::settings::load_settings;
use crate::ui::output::print_json;

/// Search everything that is recorded, by words or as a substring
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline search \"why did we drop the retry queue?\"
  throughline search \"waiting list\"
  throughline search parse_header --since 7d
  throughline search '\"connection refused\"' --tool Bash --context 1
  throughline search 待機リスト --role user
  throughline search 'a_very_odd?!substring' --substring --json

Messages with all words come first, in any order; words in double quotes stand
together. Then come passages with some of the words or other forms of them, best
first. When no message holds the words, they are also looked for as a substring.
--all-words shows only exact matches. Any question is safe: there are no
operators.")]
pub(crate) struct SearchArgs {
    /// The words to search for
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    query: String,
    /// Only in this conversation: an id, a unique prefix of one, a title, or last
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only messages of this role
    #[arg(long, value_name = "ROLE", value_enum)]
    role: Option<RoleArg>,
    /// Only messages with calls of this tool or its results
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only conversations of this project: its folder, or the last parts of its path
    #[arg(long, value_name = "FOLDER")]
    project: Option<String>,
    /// Only messages that name this file
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Only messages since then: 7d, 12h, today, 2026-11-15
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    since: Option<TimeArg>,
    /// Only messages until then; a day counts to its end
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    until: Option<TimeArg>,
    /// The most hits to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// How many messages to show before and after each hit
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=20))]
    context: u16,
    /// Only messages with all words, unstemmed
    #[arg(long, conflicts_with = "substring")]
    all_words: bool,
    /// Search by words alone, even if an embedding model is set
    #[arg(long)]
    words_only: bool,
    /// Search for exactly these characters, anywhere in a text
    #[arg(long)]
    substring: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Roles by the names users type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleArg {
    User,
    Assistant,
    Tool,
    System,
    Developer,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::User => Self::User,
            RoleArg::Assistant => Self::Assistant,
            RoleArg::Tool => Self::Tool,
            RoleArg::System => Self::System,
            RoleArg::Developer => Self::Developer,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &SearchArgs, app: &App) -> Result<(), CliError> {
    let record = match &args.session {
        Some(reference) => Some(OpenRecord::open_to_read(app, reference)?),
        None => OpenRecord::open_existing(app)?,
    };
    let now = app.now();
    let session = match (&record, &args.session) {
        (Some(record), Some(reference)) => Some(record.session(reference)?.id),
        _ => None,
    };
    let query = SearchQuery {
        text: args.query.clone(),
        mode: match (args.substring, args.all_words) {
            (true, _) => SearchMode::Substring,
            (false, true) => SearchMode::AllWords,
            (false, false) => SearchMode::Words,
        },
        session,
        role: args.role.map(Role::from),
        tool: args.tool.clone(),
        project: args.project.clone(),
        file: args.file.clone(),
        since_ms: args.since.map(|moment| moment.start(&now)),
        until_ms: args.until.map(|moment| moment.end(&now)),
        words_only: args.words_only,
        limit: usize::from(args.limit),
        neighbours: usize::from(args.context),
    };
    if let (Some(record), false) = (&record, args.words_only) {
        search_by_meaning(app, &load_settings(app, &[])?.settings, &record.store);
    }
    let mut answer = match &record {
        Some(record) => record.store.search(&record.owner, &query).map_err(refused)?,
        None => SearchAnswer::default(),
    };
    if args.json {
        return print_json(app, &answer);
    }
    if let Some(record) = &record {
        name_hits(record, &mut answer)?;
    }
    app.print(&view::render(&answer, &now, app.width))?;
    if record.is_some() {
        view::notes(&answer, usize::from(args.limit)).iter().for_each(|note| app.note(note));
        view::how_to_open(&answer).iter().for_each(|note| app.note(note));
    }
    Ok(())
}

/// Sets the first words as the title of conversations without one.
fn name_hits(record: &OpenRecord<'_>, answer: &mut SearchAnswer) -> Result<(), CliError> {
    let mut names: HashMap<SessionId, Option<String>> = HashMap::new();
    for hit in answer.hits.iter_mut().filter(|hit| hit.title.is_none()) {
        let name = match names.get(&hit.session) {
            Some(name) => name.clone(),
            None => {
                let session = record.store.session(&record.owner, &hit.session).map_err(refused)?;
                let name = record.name_of(&session)?;
                names.insert(hit.session.clone(), name.clone());
                name
            }
        };
        hit.title = name;
    }
    Ok(())
}
