//! Selects the calls for `usage` and `savings`: those of one conversation or of all, since a time or from the beginning.

use clap::Args;
use throughline_store::{CallFilter, Session};

use crate::app::App;
use crate::args::time::{TimeArg, parse_time};
use crate::error::CliError;
use crate::record::OpenRecord;

/// The arguments that choose the calls.
#[derive(Debug, Args)]
pub(crate) struct CallScopeArgs {
    /// The conversation: an id, a unique prefix of one, a title, or last; without it, everything
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only calls since then: 7d, 12h, today, 2026-11-15
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    since: Option<TimeArg>,
}

/// The selected calls.
pub(crate) struct CallScope<'a> {
    /// `None` if nothing is recorded yet.
    pub(crate) record: Option<OpenRecord<'a>>,
    /// The newest session of the conversation, if one was named.
    pub(crate) tip: Option<Session>,
    pub(crate) filter: CallFilter,
}

/// Which title of a session is shown: the stored one for programs, or one made from its first words for people.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TitleFor {
    Programs,
    People,
}

impl CallScopeArgs {
    pub(crate) fn open<'a>(&self, app: &'a App, title: TitleFor) -> Result<CallScope<'a>, CliError> {
        let (record, tip) = match &self.id {
            Some(reference) => {
                let record = OpenRecord::open_to_read(app, reference)?;
                let mut tip = record.tip(reference)?;
                if title == TitleFor::People {
                    tip.title = record.name_of(&tip)?;
                }
                (Some(record), Some(tip))
            }
            None => (OpenRecord::open_existing(app)?, None),
        };
        let filter = CallFilter {
            chain_of: tip.as_ref().map(|tip| tip.id.clone()),
            since_ms: self.since.map(|moment| moment.start(&app.now())),
            until_ms: None,
        };
        Ok(CallScope { record, tip, filter })
    }
}

impl TitleFor {
    /// Selects the title for JSON output or for text.
    pub(crate) fn json(is_json: bool) -> Self {
        if is_json { Self::Programs } else { Self::People }
    }
}
