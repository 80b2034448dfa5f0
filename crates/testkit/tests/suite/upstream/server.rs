//! Questions about models, windows that are enforced, and the server behind plain sockets.

use throughline_provider::{ProviderErrorKind, WindowQuestion};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};
use throughline_transcript::WireFormat;
use throughline_wire::Streaming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::upstream::{WIRES, body, client, endpoint, send};

async fn serving(kind: ServerKind, models: Vec<ServedModel>) -> ScriptedUpstream {
    let options = UpstreamOptions { kind, models, ..UpstreamOptions::default() };
    ScriptedUpstream::start_with(options, Script::always(Reply::text("Yes."))).await.unwrap()
}

#[tokio::test]
async fn every_kind_of_server_says_its_windows_in_its_own_way() {
    let table = [
        (ServerKind::Ollama, "ollama", WindowQuestion::OllamaRunning),
        (ServerKind::LlamaCpp, "llama.cpp", WindowQuestion::LlamaProps),
        (ServerKind::LmStudio, "lmstudio", WindowQuestion::LmStudio),
        (ServerKind::OpenRouter, "openrouter", WindowQuestion::ModelsList),
        (ServerKind::Vllm, "custom", WindowQuestion::ModelsList),
        (ServerKind::Anthropic, "anthropic", WindowQuestion::ModelsList),
    ];
    for (kind, provider, question) in table {
        let upstream = serving(kind, vec![ServedModel::with_window("house-7b", 12_345)]).await;
        let wire = if kind == ServerKind::Anthropic { WireFormat::Anthropic } else { WireFormat::Chat };
        let endpoint = endpoint(&upstream.url(), provider, wire);
        let window = client().ask_window(&endpoint, "house-7b").await.unwrap();
        assert_eq!((window.tokens, window.question), (12_345, question), "{kind:?}");
        let listed = client().list_models(&endpoint).await.unwrap();
        assert_eq!(listed.len(), 1, "{kind:?}");
        assert_eq!(listed[0].id, "house-7b");
    }
}

#[tokio::test]
async fn a_prompt_beyond_the_window_is_refused_in_the_words_of_the_wire() {
    for wire in WIRES {
        let upstream = serving(ServerKind::OpenAi, vec![ServedModel::with_window("small", 5_000)]).await;
        let text: String = (0..4_000).map(|word| format!("word{word} ")).collect();
        let large =
            send(&upstream, wire, Streaming::Whole, body(wire, "small", &text, Streaming::Whole)).await;
        let kind = large.unwrap_err().trouble().unwrap().kind.clone();
        assert!(matches!(kind, ProviderErrorKind::PromptTooLong { .. }), "{wire:?}: {kind:?}");
        let small = body(wire, "small", "hello", Streaming::Whole);
        send(&upstream, wire, Streaming::Whole, small).await.unwrap();
        let cap = match wire {
            WireFormat::Responses => "max_output_tokens",
            WireFormat::Chat | WireFormat::Anthropic => "max_tokens",
        };
        let capped = body(wire, "small", "hello", Streaming::Whole);
        let capped = format!(r#"{},"{cap}":4999}}"#, capped.strip_suffix('}').unwrap());
        let refused = send(&upstream, wire, Streaming::Whole, capped).await.unwrap_err();
        let kind = refused.trouble().unwrap().kind.clone();
        assert!(matches!(kind, ProviderErrorKind::OutputCapTooLarge { .. }), "{wire:?}: {kind:?}");
    }
}

#[tokio::test]
async fn it_counts_tokens_answers_probes_and_plays_pages() {
    let pages = vec![("/health".to_owned(), Reply::json(200, r#"{"status":"ok"}"#))];
    let options = UpstreamOptions { pages, ..UpstreamOptions::default() };
    let upstream = ScriptedUpstream::start_with(options, Reply::text("Yes.")).await.unwrap();
    let ask = |method: &str, path: &str, body: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let (request, address) = (format!("{head}{body}"), upstream.url().replace("http://", ""));
        async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }
    };
    assert!(ask("HEAD", "/", "").await.starts_with("HTTP/1.1 200"));
    assert!(ask("GET", "/health", "").await.ends_with(r#"{"status":"ok"}"#));
    assert!(ask("GET", "/nowhere", "").await.starts_with("HTTP/1.1 404"));
    let prompt = r#"{"model":"claude-opus-5","messages":[{"role":"user","content":"hello there"}]}"#;
    let counted = ask("POST", "/v1/messages/count_tokens?beta=true", prompt).await;
    let tokens: u64 = counted.rsplit(':').next().unwrap().trim_end_matches('}').parse().unwrap();
    assert!((3..30).contains(&tokens), "{counted}");
    let recorded = upstream.requests();
    assert_eq!(recorded.last().unwrap().query.as_deref(), Some("beta=true"));
    assert!(upstream.calls().is_empty());
    assert_eq!(upstream.left(), 1);
}
