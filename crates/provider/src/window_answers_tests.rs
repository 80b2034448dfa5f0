//! Tests of valid and invalid answers of every kind of server.

use super::{
    window_in_llama_props, window_in_lm_studio, window_in_models_list, window_in_ollama_running,
    window_in_ollama_show,
};
use crate::window::WindowRoom;

fn listed(body: &str, model: &str) -> Option<u64> {
    window_in_models_list(body, model).map(|window| window.tokens)
}

#[test]
fn lists_of_models() {
    let vllm = r#"{"object":"list","data":[{"id":"qwen","object":"model","max_model_len":32768}]}"#;
    let window = window_in_models_list(vllm, "qwen").unwrap();
    assert_eq!((window.tokens, window.room), (32_768, WindowRoom::Allocated));
    assert_eq!(listed(vllm, "an alias of it"), Some(32_768), "the only model there");
    let router = r#"{"data":[{"id":"a/b","context_length":1000000,"top_provider":{"context_length":200000}},{"id":"c/d","context_length":"131,072"}]}"#;
    assert_eq!(listed(router, "A/B"), Some(200_000));
    assert_eq!(listed(router, "c/d"), Some(131_072));
    assert_eq!(listed(router, "c"), None, "names like it are not it");
    let google = r#"{"models":[{"name":"models/gemini-3","inputTokenLimit":1048576},{"name":"models/x"}]}"#;
    assert_eq!(listed(google, "gemini-3"), Some(1_048_576));
    let single = r#"{"id":"claude-opus-5","type":"model","max_input_tokens":1000000}"#;
    assert_eq!(listed(single, "claude-opus-5"), Some(1_000_000));
    assert_eq!(listed(single, "claude-opus-4"), None);
    let trained = r#"{"data":[{"id":"m","meta":{"n_ctx_train":131072}}]}"#;
    assert_eq!(listed(trained, "m"), None, "what a model was trained on is not what a server holds");
    for none in ["", "[]", "{}", r#"{"data":[]}"#, r#"{"data":[{"id":"m","context_length":0}]}"#, "<html>"] {
        assert_eq!(listed(none, "m"), None, "{none}");
    }
}

#[test]
fn ollama() {
    let show = r#"{"parameters":"stop \"x\"\nnum_ctx                        8192","model_info":{"general.architecture":"qwen2","qwen2.context_length":32768}}"#;
    let window = window_in_ollama_show(show).unwrap();
    assert_eq!((window.tokens, window.room), (8_192, WindowRoom::Allocated));
    let plain = r#"{"model_info":{"qwen2.context_length":32768,"qwen2.rope.context_length_scale":9}}"#;
    let window = window_in_ollama_show(plain).unwrap();
    assert_eq!((window.tokens, window.room), (32_768, WindowRoom::Advertised));
    assert_eq!(window_in_ollama_show(r#"{"error":"model not found"}"#), None);
    let running = r#"{"models":[{"name":"qwen3:latest","model":"qwen3:latest","context_length":4096}]}"#;
    assert_eq!(window_in_ollama_running(running, "qwen3").unwrap().tokens, 4_096);
    assert_eq!(window_in_ollama_running(running, "other"), None, "another model is loaded");
}

#[test]
fn local_servers() {
    let props =
        r#"{"default_generation_settings":{"n_ctx":2048,"params":{}},"total_slots":4,"model_path":"m.gguf"}"#;
    assert_eq!(window_in_llama_props(props).unwrap().tokens, 2_048);
    assert_eq!(window_in_llama_props(r#"{"n_ctx":4096}"#).unwrap().tokens, 4_096);
    assert_eq!(window_in_llama_props("{}"), None);
    let studio = r#"{"data":[{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":4096},{"id":"n","state":"not-loaded","max_context_length":32768}]}"#;
    let loaded = window_in_lm_studio(studio, "m").unwrap();
    assert_eq!((loaded.tokens, loaded.room), (4_096, WindowRoom::Allocated));
    let idle = window_in_lm_studio(studio, "n").unwrap();
    assert_eq!((idle.tokens, idle.room), (32_768, WindowRoom::Advertised));
    assert_eq!(window_in_lm_studio(studio, "o"), None);
}
