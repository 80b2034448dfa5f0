//! Search by meaning and automatic recall: opens the embedding model that the settings name.

use std::sync::Arc;

use throughline_config::Settings;
use throughline_engine::AutomaticRecall;
use throughline_models::{ConfiguredEmbedder, EmbeddingWorker};

use crate::app::App;
use crate::error::{CliError, Exit};
use crate::record::RecordStore;

/// Returns the embedding model of the settings, if they name one.
pub(crate) fn embedder(app: &App, settings: &Settings) -> Result<Option<Arc<ConfiguredEmbedder>>, CliError> {
    let variable = |name: &str| app.variable(name).map(str::to_owned);
    ConfiguredEmbedder::of(settings, &app.home, &variable).map_err(|problem| {
        CliError::new(Exit::BadConfig, "the embedding model cannot be used").because(problem)
    })
}

/// Enables search by meaning for a record, if it is configured. A model that cannot be used is reported, and search uses words.
pub(crate) fn search_by_meaning(app: &App, settings: &Settings, store: &RecordStore) {
    let _ = attach(app, settings, store);
}

/// Does the same for a long-running program: vectors of new messages are computed in the background.
pub(crate) fn make_vectors(
    app: &App,
    settings: &Settings,
    store: &RecordStore,
    report: impl Fn(&str) + Send + 'static,
) {
    let Some(embedder) = attach(app, settings, store) else { return };
    let Some(path) = store.in_file().map(|store| store.path().to_owned()) else { return };
    if let Err(error) = EmbeddingWorker::start(path, &embedder, report) {
        app.warn(&format!("vectors for search are not made: {error}"));
    }
}

fn attach(app: &App, settings: &Settings, store: &RecordStore) -> Option<Arc<ConfiguredEmbedder>> {
    let configured = embedder(app, settings);
    let embedder = configured.unwrap_or_else(|error| {
        app.warn(&format!("only words are searched: {}", error.whole_on_one_line()));
        None
    })?;
    let Some(store) = store.in_file() else {
        app.warn("only words are searched: search by meaning is not available on PostgreSQL yet");
        return None;
    };
    store.use_embedder(Arc::<ConfiguredEmbedder>::clone(&embedder));
    Some(embedder)
}

/// The settings for passages of the record that are sent along with a human message.
pub(crate) fn automatic_recall(settings: &Settings) -> Option<AutomaticRecall> {
    let recall = &settings.recall;
    recall.automatic.then_some(AutomaticRecall { tokens: recall.automatic_tokens as u64 })
}
