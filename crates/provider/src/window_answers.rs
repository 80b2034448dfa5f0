//! Parses the answers of endpoints to queries for a model's window.
//!
//! Every server has its own format, and some state the maximum of a model rather than the allocated window. An answer that does not name
//! the model, or names several similar ones, is not used. Not for: sending queries.

#[cfg(any(test, feature = "client"))]
use std::num::NonZeroU32;

use serde_json::Value;

use crate::window::{EndpointWindow, WindowQuestion, WindowRoom};

/// No model in use has a window outside this range: other values mean "not set", or something else.
const SMALLEST_WINDOW: u64 = 256;
const LARGEST_WINDOW: u64 = 100_000_000;

impl WindowQuestion {
    /// Parses the body of an answer to this query for the window of a model.
    #[must_use]
    pub fn read(self, body: &str, model: &str) -> Option<EndpointWindow> {
        match self {
            Self::ModelsList => window_in_models_list(body, model),
            Self::OllamaRunning => window_in_ollama_running(body, model),
            Self::OllamaShow => window_in_ollama_show(body),
            Self::LlamaProps => window_in_llama_props(body),
            Self::LmStudio => window_in_lm_studio(body, model),
        }
    }
}

/// Parses `/v1/models` of any server, and `/v1/models/{id}`, which has one model.
fn window_in_models_list(body: &str, model: &str) -> Option<EndpointWindow> {
    let value: Value = serde_json::from_str(body).ok()?;
    let list = value.get("data").or_else(|| value.get("models")).and_then(Value::as_array);
    let entry = match list {
        Some(list) => entry_of(list, model)?,
        None => names(&value).any(|name| is_name_of(name, model)).then_some(&value)?,
    };
    let own = NAMES.iter().filter_map(|name| size(entry.get(*name))).min();
    let of_seller = size(entry.pointer("/top_provider/context_length"));
    let allocated = size(entry.get("max_model_len")).or_else(|| size(entry.pointer("/meta/n_ctx")));
    let tokens = allocated.or_else(|| own.into_iter().chain(of_seller).min())?;
    let room = if allocated.is_some() { WindowRoom::Allocated } else { WindowRoom::Advertised };
    Some(EndpointWindow { tokens, question: WindowQuestion::ModelsList, room })
}

/// Members that state a window. `n_ctx_train` is not among them: it is the length the model was trained on.
const NAMES: [&str; 9] = [
    "context_length",
    "context_window",
    "context_size",
    "max_context_length",
    "max_context_tokens",
    "max_input_tokens",
    "max_sequence_length",
    "inputTokenLimit",
    "input_token_limit",
];

/// Parses Ollama's `/api/ps`: a loaded model with its allocated window.
fn window_in_ollama_running(body: &str, model: &str) -> Option<EndpointWindow> {
    let value: Value = serde_json::from_str(body).ok()?;
    let entry = named_entry(value.get("models")?.as_array()?, model)?;
    let tokens = size(entry.get("context_length"))?;
    Some(EndpointWindow { tokens, question: WindowQuestion::OllamaRunning, room: WindowRoom::Allocated })
}

/// Parses Ollama's `/api/show`: the window set in the model's file, or else the maximum of the model.
fn window_in_ollama_show(body: &str) -> Option<EndpointWindow> {
    let value: Value = serde_json::from_str(body).ok()?;
    let parameters = value.get("parameters").and_then(Value::as_str).unwrap_or_default();
    let asked_for = parameters.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("num_ctx")).then(|| words.next()?.parse().ok()).flatten()
    });
    let question = WindowQuestion::OllamaShow;
    if let Some(tokens) = asked_for.filter(is_window) {
        return Some(EndpointWindow { tokens, question, room: WindowRoom::Allocated });
    }
    let info = value.get("model_info")?.as_object()?;
    let most = info.iter().find(|(name, _)| name.ends_with(".context_length"));
    let tokens = size(most.map(|(_, value)| value))?;
    Some(EndpointWindow { tokens, question, room: WindowRoom::Advertised })
}

/// Parses `/props` of a llama.cpp server: the window of one slot.
fn window_in_llama_props(body: &str) -> Option<EndpointWindow> {
    let value: Value = serde_json::from_str(body).ok()?;
    let places = ["/default_generation_settings/n_ctx", "/n_ctx"];
    let tokens = places.iter().find_map(|place| size(value.pointer(place)))?;
    Some(EndpointWindow { tokens, question: WindowQuestion::LlamaProps, room: WindowRoom::Allocated })
}

/// Parses `/props` of a llama.cpp server: the number of slots.
#[cfg(any(test, feature = "client"))]
pub(crate) fn slots_in_llama_props(body: &str) -> Option<NonZeroU32> {
    let value: Value = serde_json::from_str(body).ok()?;
    let slots = value.get("total_slots")?.as_u64()?;
    NonZeroU32::new(u32::try_from(slots).ok()?)
}

/// Parses LM Studio's `/api/v0/models`: only a loaded model has a window; the maximum of others is not useful.
fn window_in_lm_studio(body: &str, model: &str) -> Option<EndpointWindow> {
    let value: Value = serde_json::from_str(body).ok()?;
    let list = value.get("data")?.as_array()?;
    let entry = named_entry(list, model)?;
    let question = WindowQuestion::LmStudio;
    if let Some(tokens) = size(entry.get("loaded_context_length")) {
        return Some(EndpointWindow { tokens, question, room: WindowRoom::Allocated });
    }
    let tokens = size(entry.get("max_context_length"))?;
    Some(EndpointWindow { tokens, question, room: WindowRoom::Advertised })
}

/// Returns the entry of a model, or the only entry of the list.
fn entry_of<'a>(list: &'a [Value], model: &str) -> Option<&'a Value> {
    named_entry(list, model).or(match list {
        [only] => Some(only),
        _ => None,
    })
}

fn named_entry<'a>(list: &'a [Value], model: &str) -> Option<&'a Value> {
    list.iter().find(|entry| names(entry).any(|name| is_name_of(name, model)))
}

fn names(entry: &Value) -> impl Iterator<Item = &str> {
    ["id", "name", "model", "key", "canonical_slug"].into_iter().filter_map(|name| entry.get(name)?.as_str())
}

/// Whether two names mean the same model, ignoring case, Google's `models/` and Ollama's `:latest`.
fn is_name_of(name: &str, model: &str) -> bool {
    let plain = |name: &str| {
        let lower = name.trim().to_ascii_lowercase();
        let bare = lower.strip_prefix("models/").unwrap_or(&lower);
        bare.strip_suffix(":latest").unwrap_or(bare).to_owned()
    };
    !model.is_empty() && plain(name) == plain(model)
}

fn size(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    let number = match value {
        Value::String(text) => text.replace([',', '_'], "").parse().ok()?,
        _ => value.as_u64()?,
    };
    Some(number).filter(is_window)
}

fn is_window(tokens: &u64) -> bool {
    (SMALLEST_WINDOW..=LARGEST_WINDOW).contains(tokens)
}

#[cfg(test)]
#[path = "window_answers_tests.rs"]
mod tests;
