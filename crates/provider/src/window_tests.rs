//! Tests of the order of sources.

use throughline_tokens::Catalogue;

use super::{EndpointWindow, WindowFacts, WindowQuestion, WindowRoom, WindowSource};

fn facts(model: &str) -> WindowFacts {
    WindowFacts {
        configured: None,
        model_override: None,
        endpoint: None,
        learnt: None,
        refused_beyond: None,
        recorded: None,
        seller_limit: None,
        catalogue: Catalogue::shipped().of(model),
    }
}

fn said(tokens: u64) -> Option<EndpointWindow> {
    Some(EndpointWindow { tokens, question: WindowQuestion::LlamaProps, room: WindowRoom::Allocated })
}

#[test]
fn the_order_is_fixed() {
    let mut known = facts("claude-opus-4-5");
    assert_eq!(known.resolve().source, WindowSource::Catalogue("claude-opus-4-5"));
    known.learnt = Some(5);
    assert_eq!((known.resolve().tokens, known.resolve().source), (5, WindowSource::Learnt));
    known.endpoint = said(4);
    let by_endpoint = WindowSource::Endpoint(WindowQuestion::LlamaProps, WindowRoom::Allocated);
    assert_eq!((known.resolve().tokens, known.resolve().source), (4, by_endpoint.clone()));
    known.model_override = Some(("claude-*".to_owned(), 3));
    let by_name = WindowSource::ModelOverride("claude-*".to_owned());
    assert_eq!((known.resolve().tokens, known.resolve().source), (3, by_name.clone()));
    known.configured = Some((2, "configured by --set".to_owned()));
    let configured = || WindowSource::Configured("configured by --set".to_owned());
    let resolved = known.resolve();
    assert_eq!((resolved.tokens, &resolved.source), (2, &configured()));
    let all: Vec<_> =
        resolved.candidates.into_iter().map(|candidate| (candidate.tokens, candidate.source)).collect();
    assert_eq!(
        all,
        [
            (2, configured()),
            (3, by_name),
            (4, by_endpoint),
            (5, WindowSource::Learnt),
            (200_000, WindowSource::Catalogue("claude-opus-4-5")),
            (Catalogue::DEFAULT_WINDOW_TOKENS, WindowSource::Default),
        ]
    );
}

#[test]
fn nobody_knows() {
    let resolved = facts("my-own").resolve();
    assert_eq!((resolved.tokens, resolved.source), (Catalogue::DEFAULT_WINDOW_TOKENS, WindowSource::Default));
    let zero = WindowFacts { configured: Some((0, String::new())), ..facts("my-own") };
    assert_eq!(zero.resolve().source, WindowSource::Default, "zero is no window");
}

#[test]
fn a_refusal_counts_before_all_only_where_it_is_smaller() {
    let refused = |configured: Option<u64>, refused: u64| {
        let configured = configured.map(|tokens| (tokens, "configured".to_owned()));
        WindowFacts { configured, refused_beyond: Some(refused), ..facts("claude-opus-4-5") }.resolve()
    };
    let smaller = refused(Some(200_000), 128_000);
    assert_eq!((smaller.tokens, &smaller.source), (128_000, &WindowSource::Refusal));
    let configured = WindowSource::Configured("configured".to_owned());
    assert!(smaller.candidates.iter().any(|candidate| candidate.source == configured));
    assert_eq!(refused(Some(100_000), 128_000).source, configured);
    let only = refused(None, 1_000_000);
    assert_eq!((only.tokens, only.source), (1_000_000, WindowSource::Refusal), "it outranks the catalogue");
}

#[test]
fn the_users_file_is_named() {
    let file = r#"{"version":1,"models":[{"name":"my-own","window":9000},{"name":"gpt-5","max_output":10}]}"#;
    let catalogue = Catalogue::with_file(file).unwrap();
    let own = WindowFacts { catalogue: catalogue.of("my-own"), ..facts("x") }.resolve();
    assert_eq!((own.tokens, own.source), (9_000, WindowSource::OwnCatalogue("my-own".to_owned())));
    let other = WindowFacts { catalogue: catalogue.of("gpt-5"), ..facts("x") }.resolve();
    assert_eq!(other.source, WindowSource::Catalogue("gpt-5"), "the file says nothing about its window");
}

#[test]
fn every_source_is_worded_differently() {
    let sources = [
        WindowSource::Refusal,
        WindowSource::Configured("configured".to_owned()),
        WindowSource::Recorded("stated in the log".to_owned()),
        WindowSource::ModelOverride("x".to_owned()),
        WindowSource::Endpoint(WindowQuestion::OllamaShow, WindowRoom::Advertised),
        WindowSource::Learnt,
        WindowSource::OwnCatalogue("x".to_owned()),
        WindowSource::Catalogue("x"),
        WindowSource::Default,
    ];
    let words: std::collections::HashSet<String> = sources.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), sources.len());
}
