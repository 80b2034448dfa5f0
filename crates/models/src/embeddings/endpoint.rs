//! An endpoint for vectors: `POST {base_url}/embeddings` with `{"model", "input"}`, as OpenAI defined it.
//!
//! Calls block the calling thread, with a time limit. The connection has a thread of its own, so the caller may or may not run an executor.
//! Secrets in texts are masked before they are sent, as in texts for summaries.

use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_provider::Client;
use throughline_redact::Redactor;
use throughline_store::{EmbedPurpose, Embeddings};

/// The time limit for texts of the record, for which no caller waits.
const RECORD_LIMIT: Duration = Duration::from_secs(120);
/// The maximum size of an answer: a hundred vectors of four thousand numbers have a tenth of that.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The maximum length of the endpoint's error message that is passed on.
const MAX_ERROR_CHARS: usize = 300;

/// An endpoint.
pub(super) struct EmbeddingEndpoint {
    url: String,
    model: String,
    /// The name of the model and its provider.
    name: String,
    key: Option<String>,
    /// The time limit of a query.
    limit: Duration,
    redactor: Option<Redactor>,
    http: reqwest::Client,
    runtime: Option<tokio::runtime::Runtime>,
}

impl fmt::Debug for EmbeddingEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingEndpoint").field("name", &self.name).finish_non_exhaustive()
    }
}

impl EmbeddingEndpoint {
    pub(super) fn new(
        base_url: &str,
        model: &str,
        key: Option<String>,
        limit: Duration,
        redactor: Option<Redactor>,
    ) -> Result<Self, String> {
        Client::install_crypto();
        let base = base_url.trim_end_matches('/');
        let url = if base.ends_with("/embeddings") { base.to_owned() } else { format!("{base}/embeddings") };
        let host = reqwest::Url::parse(&url)
            .map_err(|_| "`recall.embeddings.base_url` is not an address".to_owned())?;
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .build()
            .map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self {
            name: match host.port() {
                Some(port) => format!("{model} at {}:{port}", host.host_str().unwrap_or_default()),
                None => format!("{model} at {}", host.host_str().unwrap_or_default()),
            },
            url,
            model: model.to_owned(),
            key,
            limit,
            redactor,
            http,
            runtime: Some(runtime.map_err(|error| error.to_string())?),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the vectors of texts, in order.
    pub(super) fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embeddings, String> {
        let limit = match purpose {
            EmbedPurpose::Question => self.limit,
            EmbedPurpose::Record => RECORD_LIMIT,
        };
        let input: Vec<String> = texts
            .iter()
            .map(|text| {
                let masked =
                    self.redactor.as_ref().map_or(text.as_str().into(), |redactor| redactor.redact(text));
                // Some servers refuse an empty text.
                if masked.trim().is_empty() { "-".to_owned() } else { masked.into_owned() }
            })
            .collect();
        let mut request = self.http.post(&self.url).timeout(limit).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let request = request.body(json!({ "model": self.model, "input": input }).to_string());
        let (sender, receiver) = mpsc::channel();
        let Some(runtime) = &self.runtime else { return Err("it was shut down".to_owned()) };
        runtime.spawn(async move {
            // If this fails, the caller no longer waits.
            let _ = sender.send(ask(request).await);
        });
        let answer = receiver
            .recv_timeout(limit)
            .map_err(|_| format!("no answer within {} s", limit.as_secs_f64()))?;
        read_answer(&answer?, texts.len())
    }
}

impl Drop for EmbeddingEndpoint {
    fn drop(&mut self) {
        // Waiting for its thread is not allowed where an executor runs.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn ask(request: reqwest::RequestBuilder) -> Result<Vec<u8>, String> {
    let failed = |error: reqwest::Error| match (error.is_timeout(), error.is_connect()) {
        (true, _) => "no answer in time".to_owned(),
        (false, true) => "no connection".to_owned(),
        // The address may contain a key.
        (false, false) => error.without_url().to_string(),
    };
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err("the answer is too long".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    if !status.is_success() {
        let text: String = String::from_utf8_lossy(&body).chars().take(MAX_ERROR_CHARS).collect();
        return Err(format!(
            "status {}: {}",
            status.as_u16(),
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        ));
    }
    Ok(body)
}

/// Returns the vectors of an answer, in the order of the texts.
fn read_answer(body: &[u8], texts: usize) -> Result<Embeddings, String> {
    let odd = |what: &str| format!("the answer is not one of /v1/embeddings: {what}");
    let answer: Value = serde_json::from_slice(body).map_err(|_| odd("not JSON"))?;
    let data = answer["data"].as_array().ok_or_else(|| odd("no `data`"))?;
    let mut vectors = vec![Vec::new(); texts];
    for (at, entry) in data.iter().enumerate() {
        let index = entry["index"].as_u64().map_or(at, |index| usize::try_from(index).unwrap_or(usize::MAX));
        let numbers = entry["embedding"].as_array().ok_or_else(|| odd("no `embedding`"))?;
        let vector: Option<Vec<f32>> =
            numbers.iter().map(|number| number.as_f64().map(|number| number as f32)).collect();
        let place = vectors.get_mut(index).ok_or_else(|| odd("more vectors than texts"))?;
        *place = vector.ok_or_else(|| odd("an entry that is no number"))?;
    }
    if vectors.iter().any(Vec::is_empty) {
        return Err(odd("a text without a vector"));
    }
    let tokens =
        ["prompt_tokens", "total_tokens"].into_iter().find_map(|name| answer["usage"][name].as_u64());
    Ok(Embeddings { vectors, tokens: tokens.unwrap_or_default() })
}
