//! Answers about models, in the form of each kind of server.

use serde_json::{Value, json};
use throughline_transcript::WireFormat;
use throughline_wire::ErrorBody;

use super::Shared;
use super::recorded::RecordedRequest;
use super::reply::Reply;

/// A model of the server.
#[derive(Clone, Debug)]
pub struct ServedModel {
    /// The name.
    pub id: String,
    /// The window, which is enforced; `None` for no limit.
    pub window_tokens: Option<u64>,
    /// The longest answer, which is enforced; `None` for no limit.
    pub most_output_tokens: Option<u64>,
}

impl ServedModel {
    /// Creates a model with a window.
    #[must_use]
    pub fn with_window(id: &str, window_tokens: u64) -> Self {
        Self { id: id.to_owned(), window_tokens: Some(window_tokens), most_output_tokens: None }
    }
}

/// The kind of server that the upstream imitates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// OpenAI: a list of names, no windows.
    #[default]
    OpenAi,
    /// OpenRouter: a list with windows.
    OpenRouter,
    /// vLLM: a list with the largest context of each model.
    Vllm,
    /// Anthropic: a list and single models with windows.
    Anthropic,
    /// Ollama: `/api/show` and `/api/ps`.
    Ollama,
    /// llama.cpp: `/props`.
    LlamaCpp,
    /// LM Studio: `/api/v0/models`.
    LmStudio,
}

impl Shared {
    /// The answer to a question about models; `None` for other requests.
    pub(super) fn about_models(&self, request: &RecordedRequest) -> Option<Reply> {
        let found = |value: Value| Some(Reply::json(200, value.to_string()));
        let list = |entry: fn(&ServedModel) -> Value| self.models.iter().map(entry).collect::<Vec<_>>();
        let path = request.path.as_str();
        match (self.kind, path) {
            (ServerKind::Ollama, "/api/show") => found(self.ollama_show(request)?),
            (ServerKind::Ollama, "/api/ps") => found(
                json!({ "models": list(|m| json!({ "name": m.id, "model": m.id, "context_length": m.window_tokens })) }),
            ),
            (ServerKind::LlamaCpp, "/props") => {
                let window = self.models.first()?.window_tokens?;
                found(json!({ "default_generation_settings": { "n_ctx": window }, "total_slots": 1 }))
            }
            (ServerKind::LmStudio, "/api/v0/models") => found(json!({
                "object": "list",
                "data": list(|m| json!({
                    "id": m.id, "object": "model", "type": "llm", "state": "loaded",
                    "max_context_length": m.window_tokens, "loaded_context_length": m.window_tokens,
                })),
            })),
            _ if path.ends_with("/models") => {
                let kind = self.kind;
                let entries: Vec<Value> = self.models.iter().map(|model| listed(kind, model)).collect();
                found(json!({ "object": "list", "data": entries }))
            }
            (ServerKind::Anthropic | ServerKind::OpenAi, _) => {
                let name = path.rsplit_once("/models/")?.1;
                let model = self.models.iter().find(|model| model.id == name)?;
                found(listed(self.kind, model))
            }
            _ => None,
        }
    }

    fn ollama_show(&self, request: &RecordedRequest) -> Option<Value> {
        let model = request.model()?;
        let model = self.models.iter().find(|known| known.id == model)?;
        Some(json!({
            "details": { "family": "llama" },
            "model_info": { "general.architecture": "llama", "llama.context_length": model.window_tokens },
        }))
    }

    /// The error for a prompt or an output cap that does not fit, in the form of the wire format.
    pub(super) fn refusal_of_size(
        &self,
        wire_format: WireFormat,
        model: &str,
        prompt: u64,
        cap: Option<u64>,
    ) -> Option<Reply> {
        let model = self.models.iter().find(|known| known.id == model)?;
        if let Some((most, cap)) = model.most_output_tokens.zip(cap).filter(|(most, cap)| cap > most) {
            let words = match wire_format {
                WireFormat::Anthropic => format!(
                    "max_tokens: {cap} > {most}, which is the maximum allowed number of output tokens for {}",
                    model.id
                ),
                WireFormat::Chat | WireFormat::Responses => {
                    format!(
                        "max_tokens is too large: {cap}. This model supports at most {most} completion tokens"
                    )
                }
            };
            return Some(Reply::error(400, "invalid_request_error", &words));
        }
        let window = model.window_tokens?;
        let asked = cap.unwrap_or(0);
        let words = match wire_format {
            _ if prompt.saturating_add(asked) <= window => return None,
            WireFormat::Anthropic if prompt > window => {
                format!("prompt is too long: {prompt} tokens > {window} maximum")
            }
            WireFormat::Anthropic => {
                format!("input length and `max_tokens` exceed context limit: {prompt} + {asked} > {window}")
            }
            WireFormat::Chat | WireFormat::Responses => format!(
                "This model's maximum context length is {window} tokens. However, you requested {} tokens ({prompt} in the messages, {asked} in the completion).",
                prompt.saturating_add(asked)
            ),
        };
        let code = match wire_format {
            WireFormat::Anthropic => None,
            WireFormat::Chat | WireFormat::Responses => Some("context_length_exceeded".to_owned()),
        };
        let kind = Some("invalid_request_error".to_owned());
        Some(Reply::error_body(400, ErrorBody { message: words, kind, code, ..ErrorBody::default() }))
    }
}

/// An entry in a list of models.
fn listed(kind: ServerKind, model: &ServedModel) -> Value {
    let (id, window) = (&model.id, model.window_tokens);
    match kind {
        ServerKind::OpenRouter => json!({
            "id": id, "context_length": window,
            "top_provider": { "context_length": window, "max_completion_tokens": model.most_output_tokens },
        }),
        ServerKind::Vllm => {
            json!({ "id": id, "object": "model", "owned_by": "vllm", "max_model_len": window })
        }
        ServerKind::Anthropic => json!({
            "type": "model", "id": id, "display_name": id,
            "max_input_tokens": window, "max_tokens": model.most_output_tokens,
        }),
        ServerKind::LlamaCpp => json!({ "id": id, "object": "model", "meta": { "n_ctx": window } }),
        ServerKind::OpenAi | ServerKind::Ollama | ServerKind::LmStudio => {
            json!({ "id": id, "object": "model", "owned_by": "tests" })
        }
    }
}
