//! The services for context engines in other processes: summaries by the configured models, storage in the home directory,
//! and messages on the terminal.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use throughline_engine::{Envelope, SummaryRoute, UpstreamFailureCause};
use throughline_plugin::{HostServices, ServiceFuture, SummaryParams, SummaryText};
use throughline_provider::OutgoingCall;
use throughline_transcript::{Role, text_message};
use throughline_wire::{CapMember, RequestParts, Streaming, System};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::files::write_private;
use crate::ui::text::on_one_line;

/// The most bytes that an engine may store.
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// The services for one engine.
pub(crate) struct Services {
    app: Arc<App>,
    engine: String,
    file: PathBuf,
    routes: Vec<SummaryRoute>,
    /// Serialises changes of the file.
    changing: Mutex<()>,
}

impl Services {
    pub(crate) fn new(app: &Arc<App>, engine: &str, routes: Vec<SummaryRoute>) -> Self {
        let file = app.home.join("plugins").join("data").join(format!("{engine}.json"));
        Self { app: Arc::clone(app), engine: engine.to_owned(), file, routes, changing: Mutex::new(()) }
    }

    fn kept(&self) -> Result<BTreeMap<String, Value>, String> {
        match std::fs::read(&self.file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| format!("{} cannot be read: {error}", self.file.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(format!("{} cannot be read: {error}", self.file.display())),
        }
    }

    fn change<'a>(&'a self, act: impl FnOnce(&mut BTreeMap<String, Value>)) -> ServiceFuture<'a, ()> {
        let changed = || -> Result<(), String> {
            let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut kept = self.kept()?;
            act(&mut kept);
            let bytes = serde_json::to_vec(&kept).map_err(|error| error.to_string())?;
            if bytes.len() > MOST_KEPT_BYTES {
                return Err(format!("an engine may keep {MOST_KEPT_BYTES} bytes"));
            }
            if let Some(folder) = self.file.parent() {
                crate::home::make_folder(folder).map_err(|error| error.to_string())?;
            }
            write_private(&self.file, &bytes).map_err(|failure| failure.words())
        };
        Box::pin(std::future::ready(changed()))
    }

    async fn ask(route: &SummaryRoute, wish: &SummaryParams) -> Result<SummaryText, String> {
        let target = &route.target;
        let parts = RequestParts {
            system: Some(System::Text(&wish.instructions)),
            streaming: Streaming::Whole,
            output_cap: wish.max_tokens.map(|tokens| (CapMember::usual(target.wire_format), tokens)),
            ..RequestParts::new(&target.model)
        };
        let envelope = Envelope::build(target.wire_format, &parts).map_err(|error| error.to_string())?;
        let text = text_message(target.wire_format, Role::User, &wish.text);
        let body = envelope.request().with_messages([text.as_str()]);
        let call = OutgoingCall::new(target.wire_format, Streaming::Whole, body);
        let cancel = CancellationToken::new();
        let asked = tokio::time::timeout(route.time_limit, target.upstream.send(call, None, &cancel)).await;
        match asked {
            Ok(Ok(received)) => {
                Ok(SummaryText { text: received.answer.text(), author: target.model.clone() })
            }
            Ok(Err(unanswered)) => Err(match &unanswered.cause {
                UpstreamFailureCause::Trouble(trouble) => format!("{}: {trouble}", target.model),
                UpstreamFailureCause::Cancelled => "it was cancelled".to_owned(),
            }),
            Err(_) => Err(format!("{} did not answer in time", target.model)),
        }
    }
}

impl HostServices for Services {
    fn summarise<'a>(&'a self, wish: &'a SummaryParams) -> ServiceFuture<'a, SummaryText> {
        Box::pin(async move {
            let mut problem = "no model for summaries is configured (auxiliary.compression)".to_owned();
            for route in &self.routes {
                match Self::ask(route, wish).await {
                    Ok(summary) => return Ok(summary),
                    Err(words) => problem = words,
                }
            }
            Err(problem)
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, Option<Value>> {
        Box::pin(std::future::ready(self.kept().map(|mut kept| kept.remove(key))))
    }

    fn put<'a>(&'a self, key: &'a str, value: Value) -> ServiceFuture<'a, ()> {
        self.change(|kept| drop(kept.insert(key.to_owned(), value)))
    }

    fn delete<'a>(&'a self, key: &'a str) -> ServiceFuture<'a, ()> {
        self.change(|kept| drop(kept.remove(key)))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, Vec<String>> {
        let listed = self.kept().map(|kept| kept.into_keys().filter(|key| key.starts_with(prefix)).collect());
        Box::pin(std::future::ready(listed))
    }

    fn log(&self, line: &str) {
        self.app.note(&on_one_line(&format!("{}: {line}", self.engine)));
    }
}
