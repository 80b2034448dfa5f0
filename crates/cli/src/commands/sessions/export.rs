//! `throughline sessions export`: writes a conversation to a file that other programs read.

use throughline_redact::Redactor;
use throughline_store::{Export, ExportForm, ExportOptions, ExportSide};

use super::args::{ExportArgs, FormatArg, ViewArg};
use crate::app::App;
use crate::error::{CliError, path_words};
use crate::files::{STANDARD_STREAM, write_private};
use crate::record::{OpenRecord, refused};
use crate::ui::text::counted;

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_to_read(app, &args.id)?;
    let session = record.session(&args.id)?;
    let redactor = args.redact.then(Redactor::new);
    let options = ExportOptions {
        side: match args.view {
            ViewArg::Human => ExportSide::Said,
            ViewArg::Model => ExportSide::Shown,
        },
        form: match args.format {
            FormatArg::Messages => ExportForm::List,
            FormatArg::Jsonl => ExportForm::Lines,
            FormatArg::Body => ExportForm::Body,
        },
        redactor: redactor.as_ref(),
    };
    let exported = Export::of(&record.store, &record.owner, &session.id, &options).map_err(refused)?;
    match args.out.as_deref().filter(|path| path.as_os_str() != STANDARD_STREAM) {
        None => app.print_bytes(exported.text.as_bytes())?,
        Some(path) => {
            write_private(path, exported.text.as_bytes())?;
            app.note(&format!(
                "wrote {} of {} to {}",
                counted(exported.messages as u64, "message", "messages"),
                session.id,
                path_words(path)
            ));
        }
    }
    if args.redact {
        app.note(&match exported.masked {
            0 => "no secrets were found".to_owned(),
            masked => format!("secrets were masked in {}", counted(masked as u64, "message", "messages")),
        });
    }
    Ok(())
}
