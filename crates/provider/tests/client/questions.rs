//! Questions to endpoints: windows and lists of models.

use throughline_provider::{ProviderErrorKind, WindowQuestion, WindowRoom};
use throughline_transcript::WireFormat;

use crate::server::{Act, Server, client, json};

fn answers(bodies: &[(u16, &str)]) -> Vec<Vec<Act>> {
    bodies.iter().map(|(status, body)| vec![Act::Send(json(*status, body))]).collect()
}

async fn ask(
    provider: &str,
    bodies: &[(u16, &str)],
) -> (Option<(u64, WindowQuestion, WindowRoom)>, Vec<String>) {
    let server = Server::playing(answers(bodies)).await;
    let endpoint = server.endpoint_of(provider, None);
    let window = client().ask_window(&endpoint, "my/model").await;
    let asked = server.requests().into_iter().map(|request| request.line).collect();
    (window.map(|window| (window.tokens, window.question, window.room)), asked)
}

#[tokio::test]
async fn each_kind_is_asked_in_its_own_way() {
    let running = r#"{"models":[{"name":"my/model","context_length":8192}]}"#;
    let (window, asked) = ask("ollama", &[(200, running)]).await;
    assert_eq!(window, Some((8_192, WindowQuestion::OllamaRunning, WindowRoom::Allocated)));
    assert_eq!(asked, ["GET /api/ps"]);
    let show = r#"{"model_info":{"llama.context_length":131072}}"#;
    let (window, asked) = ask("ollama", &[(200, r#"{"models":[]}"#), (200, show)]).await;
    assert_eq!(window, Some((131_072, WindowQuestion::OllamaShow, WindowRoom::Advertised)));
    assert_eq!(asked, ["GET /api/ps", "POST /api/show"]);
    let props = r#"{"default_generation_settings":{"n_ctx":2048}}"#;
    let (window, asked) = ask("llama.cpp", &[(200, props)]).await;
    assert_eq!(window, Some((2_048, WindowQuestion::LlamaProps, WindowRoom::Allocated)));
    assert_eq!(asked, ["GET /props"]);
    let studio = r#"{"data":[{"id":"my/model","loaded_context_length":4096}]}"#;
    let (window, asked) = ask("lmstudio", &[(200, studio)]).await;
    assert_eq!(window, Some((4_096, WindowQuestion::LmStudio, WindowRoom::Allocated)));
    assert_eq!(asked, ["GET /api/v0/models"]);
    let one = r#"{"id":"my/model","max_input_tokens":200000}"#;
    let (window, asked) = ask("anthropic", &[(200, one)]).await;
    assert_eq!(window.map(|window| window.0), Some(200_000));
    assert_eq!(asked, ["GET /v1/models/my%2Fmodel"]);
    let list = r#"{"data":[{"id":"my/model","max_model_len":32768},{"id":"other"}]}"#;
    let (window, asked) = ask("custom", &[(404, "{}"), (200, list)]).await;
    assert_eq!(window.map(|window| window.0), Some(32_768));
    assert_eq!(asked, ["GET /props", "GET /v1/models"]);
    let (window, asked) = ask("openai", &[]).await;
    assert_eq!((window, asked.len()), (None, 0));
}

#[tokio::test]
async fn no_answer_is_no_window() {
    for bodies in [[(500, "{}"); 5], [(200, "<html>"); 5], [(200, "{}"); 5]] {
        assert_eq!(ask("custom", &bodies).await.0, None);
    }
}

#[tokio::test]
async fn lists_of_models() {
    let list = r#"{"data":[{"id":"a","context_length":1000},{"id":"b"},{"x":1}]}"#;
    let server = Server::playing(answers(&[
        (200, list),
        (401, r#"{"error":{"message":"bad key sk-secret-1"}}"#),
        (200, "[]"),
    ]))
    .await;
    let endpoint = server.endpoint(WireFormat::Chat);
    let models = client().list_models(&endpoint).await.unwrap();
    let listed: Vec<_> =
        models.iter().map(|model| (model.id.as_str(), model.window.map(|window| window.tokens))).collect();
    assert_eq!(listed, [("a", Some(1_000)), ("b", None)]);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-secret-1"));
    let refused = client().list_models(&endpoint).await.unwrap_err();
    assert_eq!(refused.kind, ProviderErrorKind::Auth);
    assert!(!refused.words.contains("sk-secret-1"), "{}", refused.words);
    assert!(matches!(
        client().list_models(&endpoint).await.unwrap_err().kind,
        ProviderErrorKind::WrongWire { .. }
    ));
}
