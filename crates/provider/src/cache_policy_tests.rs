//! Tests of where marks are used, and of the line that describes it.

use throughline_transcript::WireFormat;

use super::{CachePolicy, CacheSeller, CacheTtl, MarkLayout};

fn line(seller: CacheSeller, wire_format: WireFormat, model: &str, ttl: &str) -> String {
    CachePolicy::of(seller, wire_format, model, CacheTtl::parse(ttl).unwrap()).to_string()
}

#[test]
fn the_line_at_the_start() {
    assert_eq!(
        line(CacheSeller::OpenRouter, WireFormat::Chat, "anthropic/claude-sonnet-4.6", "5m"),
        "Prompt caching: ENABLED (Claude via OpenRouter, 5m TTL)"
    );
    assert_eq!(
        line(CacheSeller::Anthropic, WireFormat::Anthropic, "claude-opus-5", "1h"),
        "Prompt caching: ENABLED (Claude via Anthropic, 1h TTL)"
    );
    assert_eq!(
        line(CacheSeller::Other, WireFormat::Anthropic, "us.anthropic.claude-opus-4-7-v1:0", "5m"),
        "Prompt caching: ENABLED (Claude via an Anthropic-compatible endpoint, 5m TTL)"
    );
    assert_eq!(
        line(CacheSeller::OpenAi, WireFormat::Responses, "gpt-6", "5m"),
        "Prompt caching: automatic (OpenAI, by prefix and key)"
    );
    assert_eq!(
        line(CacheSeller::Other, WireFormat::Chat, "qwen3", "5m"),
        "Prompt caching: left to the provider"
    );
}

#[test]
fn marks_go_only_where_they_are_taken() {
    let of = |seller, wire_format, model| CachePolicy::of(seller, wire_format, model, CacheTtl::default());
    let layout = |policy| match policy {
        CachePolicy::Marks { layout, .. } => Some(layout),
        _ => None,
    };
    assert_eq!(
        layout(of(CacheSeller::OpenRouter, WireFormat::Anthropic, "anthropic/claude-x")),
        Some(MarkLayout::Anthropic)
    );
    assert_eq!(
        layout(of(CacheSeller::OpenRouter, WireFormat::Chat, "anthropic/claude-x")),
        Some(MarkLayout::ChatParts)
    );
    for (seller, wire_format, model) in [
        (CacheSeller::OpenRouter, WireFormat::Chat, "openai/gpt-6"),
        (CacheSeller::OpenRouter, WireFormat::Chat, "someone/claudette"),
        (CacheSeller::OpenRouter, WireFormat::Responses, "anthropic/claude-x"),
        (CacheSeller::Other, WireFormat::Chat, "claude-x"),
        (CacheSeller::Other, WireFormat::Anthropic, "qwen3"),
    ] {
        assert_eq!(of(seller, wire_format, model), CachePolicy::Unmarked, "{seller:?} {wire_format} {model}");
    }
    assert_eq!(of(CacheSeller::OpenAi, WireFormat::Chat, "gpt-6"), CachePolicy::Key);
}

#[test]
fn keys_are_stable_short_and_say_nothing() {
    let key = CachePolicy::prompt_cache_key("session-1");
    assert_eq!(key, CachePolicy::prompt_cache_key("session-1"));
    assert_ne!(key, CachePolicy::prompt_cache_key("session-2"));
    assert!(key.len() <= 64 && !key.contains("session-1"));
}

#[test]
fn lifetimes_are_read_as_written() {
    for ttl in [CacheTtl::FiveMinutes, CacheTtl::OneHour] {
        assert_eq!(CacheTtl::parse(ttl.name()), Some(ttl));
        let json = serde_json::to_string(&ttl).unwrap();
        assert_eq!(serde_json::from_str::<CacheTtl>(&json).unwrap(), ttl);
    }
    assert_eq!(CacheTtl::parse("2h"), None);
    assert!(CacheTtl::OneHour.duration() > CacheTtl::FiveMinutes.duration());
}
