//! Queries an endpoint for its models and the size of their windows.
//!
//! These queries have short limits, are tried once, and may fail silently. Not for: conversations.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::timeout;

use crate::client::Client;
use crate::endpoint::{Endpoint, EndpointKind};
use crate::failure::{Failure, TransportFault};
use crate::headers::put_endpoint_headers;
use crate::provider_error::{ProviderError, ProviderErrorKind, WrongWireSign};
use crate::sent_secrets::SentSecrets;
use crate::sizes::RequestLimits;
use crate::transport::{Stage, fault_of};
use crate::window::{EndpointWindow, WindowQuestion, WindowRoom};
use crate::window_answers::slots_in_llama_props;

/// A server on this machine answers immediately or is not running; one on the network may take a few seconds.
const LOCAL_LIMIT: Duration = Duration::from_secs(3);
const REMOTE_LIMIT: Duration = Duration::from_secs(10);
/// The maximum size of a list: lists of thousands of models are a few megabytes.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A model in an endpoint's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name there.
    pub id: String,
    /// The window, if the list states it.
    pub window: Option<EndpointWindow>,
}

/// A way to query for a window.
enum EndpointQuery {
    Models,
    OneModel,
    OllamaRunning,
    OllamaShow,
    LlamaProps,
    LmStudio,
}

impl Client {
    /// Queries an endpoint for the window of a model, by every query its kind supports. An allocated window is preferred to an advertised
    /// one; the first such answer ends the search.
    pub async fn ask_window(&self, endpoint: &Endpoint, model: &str) -> Option<EndpointWindow> {
        let mut advertised = None;
        for question in questions(endpoint) {
            let found = self.ask_one(endpoint, model, &question).await;
            match found {
                Some(window) if window.room == WindowRoom::Allocated => return Some(window),
                Some(window) => advertised = advertised.or(Some(window)),
                None => {}
            }
        }
        advertised
    }

    /// Returns the models of an endpoint.
    pub async fn list_models(&self, endpoint: &Endpoint) -> Result<Vec<ListedModel>, Box<ProviderError>> {
        let body = self.fetch(endpoint, self.http().get(endpoint.models_url())).await?;
        let value: Option<Value> = serde_json::from_str(&body).ok();
        let list =
            value.as_ref().and_then(|value| value.get("data").or_else(|| value.get("models"))?.as_array());
        let Some(list) = list else {
            let kind = ProviderErrorKind::WrongWire { sign: WrongWireSign::OtherShape };
            return Err(Box::new(ProviderError::of(kind)));
        };
        let listed = list.iter().filter_map(|entry| {
            let id = ["id", "name", "model"].iter().find_map(|name| entry.get(*name)?.as_str())?;
            let id = id.strip_prefix("models/").unwrap_or(id).to_owned();
            let window = WindowQuestion::ModelsList.read(&body_of(entry), &id);
            Some(ListedModel { id, window })
        });
        Ok(listed.collect())
    }

    async fn ask_one(
        &self,
        endpoint: &Endpoint,
        model: &str,
        question: &EndpointQuery,
    ) -> Option<EndpointWindow> {
        let root = endpoint.base.root();
        let get = |path: &str| self.http().get(format!("{root}{path}"));
        let request = match question {
            EndpointQuery::Models => self.http().get(endpoint.models_url()),
            EndpointQuery::OneModel => get(&format!("/v1/models/{}", path_segment(model))),
            EndpointQuery::OllamaRunning => get("/api/ps"),
            EndpointQuery::OllamaShow => {
                let body = serde_json::json!({ "model": model }).to_string();
                self.http().post(format!("{root}/api/show")).body(body)
            }
            EndpointQuery::LlamaProps => get("/props"),
            EndpointQuery::LmStudio => get("/api/v0/models"),
        };
        let body = self.fetch(endpoint, request).await.ok()?;
        let question = match question {
            EndpointQuery::Models | EndpointQuery::OneModel => WindowQuestion::ModelsList,
            EndpointQuery::OllamaRunning => WindowQuestion::OllamaRunning,
            EndpointQuery::OllamaShow => WindowQuestion::OllamaShow,
            EndpointQuery::LlamaProps => {
                if let Some(slots) = slots_in_llama_props(&body) {
                    self.slots().learn(endpoint, slots);
                }
                WindowQuestion::LlamaProps
            }
            EndpointQuery::LmStudio => WindowQuestion::LmStudio,
        };
        question.read(&body, model)
    }

    /// Fetches a small document.
    async fn fetch(
        &self,
        endpoint: &Endpoint,
        request: reqwest::RequestBuilder,
    ) -> Result<String, Box<ProviderError>> {
        let transport =
            |fault| Box::new(ProviderError::classify(Failure::Transport(fault), RequestLimits::default()));
        let mut headers = HeaderMap::new();
        if put_endpoint_headers(endpoint, endpoint.wire, &mut headers).is_err() {
            return Err(Box::new(ProviderError::of(ProviderErrorKind::Unknown)));
        }
        let limit = if endpoint.base.is_local() { LOCAL_LIMIT } else { REMOTE_LIMIT };
        let fetching = async {
            let mut response =
                request.headers(headers).send().await.map_err(|error| fault_of(&error, Stage::Sending))?;
            let status = response.status().as_u16();
            let mut body = Vec::new();
            while let Some(bytes) =
                response.chunk().await.map_err(|error| fault_of(&error, Stage::Reading))?
            {
                if body.len() + bytes.len() > MOST_BYTES {
                    return Err(TransportFault::Garbled);
                }
                body.extend_from_slice(&bytes);
            }
            Ok((status, body))
        };
        let (status, body) = match timeout(limit, fetching).await {
            Err(_) => return Err(transport(TransportFault::FirstByteTimeout)),
            Ok(Err(fault)) => return Err(transport(fault)),
            Ok(Ok(answer)) => answer,
        };
        if !(200..300).contains(&status) {
            let mut trouble = ProviderError::classify(
                Failure::Answer { status, headers: &[], body: &body },
                RequestLimits::default(),
            );
            SentSecrets::of(endpoint, &[], None).scrub_trouble(&mut trouble);
            return Err(Box::new(trouble));
        }
        String::from_utf8(body).map_err(|_| transport(TransportFault::Garbled))
    }
}

/// Returns the queries for a window, the most reliable first.
fn questions(endpoint: &Endpoint) -> Vec<EndpointQuery> {
    match endpoint.kind {
        EndpointKind::Anthropic => vec![EndpointQuery::OneModel],
        EndpointKind::OpenRouter => vec![EndpointQuery::Models],
        // Neither states a window.
        EndpointKind::OpenAi | EndpointKind::OpenAiCodex => Vec::new(),
        EndpointKind::Ollama => vec![EndpointQuery::OllamaRunning, EndpointQuery::OllamaShow],
        EndpointKind::LlamaCpp => vec![EndpointQuery::LlamaProps, EndpointQuery::Models],
        EndpointKind::LmStudio => vec![EndpointQuery::LmStudio, EndpointQuery::Models],
        EndpointKind::Custom if endpoint.base.is_local() => {
            vec![
                EndpointQuery::LlamaProps,
                EndpointQuery::Models,
                EndpointQuery::OllamaRunning,
                EndpointQuery::OllamaShow,
                EndpointQuery::LmStudio,
            ]
        }
        EndpointKind::Custom => vec![EndpointQuery::Models],
    }
}

/// Returns a list of only this model, for the parser of lists.
fn body_of(entry: &Value) -> String {
    serde_json::json!({ "data": [entry] }).to_string()
}

/// Escapes a name for use as a path segment.
fn path_segment(name: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':' | b'@') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    // A segment of dots would change the directory.
    if out.chars().all(|c| c == '.') { out.replace('.', "%2E") } else { out }
}
