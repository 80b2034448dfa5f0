//! What providers say, and the marks that are put on what is sent to them.

use serde::de::IgnoredAny;
use throughline_provider::{
    CacheMarks, CacheTtl, Failure, MarkLayout, ProviderError, ProviderErrorKind, RequestLimits,
    UnmarkedRequest, WindowQuestion,
};
use throughline_transcript::decode_message_text;

/// Any bytes as the body of a failed call, with a status that the first byte decides: understood as something that can be
/// shown and stored; a stated prompt is never smaller than the window it does not fit.
pub fn trouble(data: &[u8]) {
    const STATUSES: [u16; 16] =
        [200, 302, 400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529, 599];
    let (first, body) = data.split_first().map_or((0, data), |(first, body)| (*first, body));
    let status = STATUSES[usize::from(first) % STATUSES.len()];
    let text = String::from_utf8_lossy(body);
    let retry_after = text.get(..text.floor_char_boundary(20)).unwrap_or_default();
    let headers = [("retry-after", retry_after), ("date", retry_after)];
    let known = RequestLimits { output_cap_tokens: Some(4_096), window_tokens: Some(200_000) };
    for asked in [RequestLimits::default(), known] {
        check(&ProviderError::classify(Failure::Answer { status, headers: &headers, body }, asked));
        check(&ProviderError::classify(Failure::Event { data: &text }, asked));
    }
    for model in ["", "m", retry_after] {
        let windows = [
            WindowQuestion::ModelsList,
            WindowQuestion::OllamaRunning,
            WindowQuestion::OllamaShow,
            WindowQuestion::LlamaProps,
            WindowQuestion::LmStudio,
        ]
        .map(|question| question.read(&text, model));
        assert!(windows.into_iter().flatten().all(|window| (256..=100_000_000).contains(&window.tokens)));
    }
}

fn check(trouble: &ProviderError) {
    assert!(trouble.words.len() <= 700, "{} bytes of words", trouble.words.len());
    assert!(!trouble.to_string().is_empty());
    let json = serde_json::to_string(trouble).expect("trouble can be stored");
    let again: ProviderError = serde_json::from_str(&json).expect("and read back");
    assert_eq!(again.kind, trouble.kind);
    match trouble.kind {
        ProviderErrorKind::PromptTooLong { window_tokens: Some(window), prompt_tokens: Some(prompt) } => {
            assert!(prompt >= window, "{trouble:?}");
        }
        ProviderErrorKind::OutputCapTooLarge { largest_cap_tokens: Some(0), .. } => panic!("{trouble:?}"),
        _ => {}
    }
}

/// Any bytes as a message: with marks it is still JSON, carries at most four, and without them it is what it was.
pub fn cache_marks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(message) = decode_message_text(text.to_owned()) else { return };
    let bare = CacheMarks::removed_from(message.json()).into_owned();
    assert!(serde_json::from_str::<IgnoredAny>(&bare).is_ok(), "{bare}");
    for layout in [MarkLayout::Anthropic, MarkLayout::ChatParts] {
        let marks = CacheMarks { layout, ttl: CacheTtl::OneHour };
        let messages = [message.clone(), message.clone(), message.clone(), message.clone(), message.clone()];
        let unmarked = UnmarkedRequest {
            system: None,
            notes_after_system: 0,
            tools: None,
            has_automatic_mark: false,
            messages: &messages,
        };
        let own = CacheMarks::count_in(message.json());
        let marked = marks.place(&unmarked);
        assert!(
            own > CacheMarks::MOST
                || marked.messages.iter().map(|json| CacheMarks::count_in(json)).sum::<usize>()
                    <= CacheMarks::MOST
        );
        for json in &marked.messages {
            assert!(serde_json::from_str::<IgnoredAny>(json).is_ok(), "{json}");
            if own == 0 {
                assert_eq!(
                    CacheMarks::removed_from(json),
                    CacheMarks::removed_from(&CacheMarks::block_form(layout, &message))
                );
            }
        }
    }
}
