//! Tests of names in use, and of the data file.

use super::*;

#[test]
fn the_data_file_is_read_and_every_entry_finds_itself() {
    assert!(ENTRIES.len() > 40);
    for entry in ENTRIES.iter() {
        let facts = Catalogue::shipped_facts(&entry.name);
        assert_eq!(facts.entry, Some(entry.name.as_str()));
        assert_eq!(facts.window_tokens, entry.window);
        assert_eq!(normalise(&entry.name), entry.name, "entries are written as names are compared");
        assert!(entry.max_output.is_none_or(|most| most < entry.window), "{}", entry.name);
        assert!(entry.cache_minimum.is_none_or(|least| (64..=4_096).contains(&least)), "{}", entry.name);
    }
}

#[test]
fn models_are_found_by_the_names_providers_use() {
    use Family::{Cl100k, Claude, Claude47, Generic, O200k};
    for (model, window, family) in [
        ("claude-opus-4-5-20251101", 200_000, Claude),
        ("claude-opus-4-6", 1_000_000, Claude),
        ("anthropic/claude-opus-4.7", 1_000_000, Claude47),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, Claude),
        ("claude-3-5-sonnet-latest", 200_000, Claude),
        ("claude-sonnet-5", 1_000_000, Claude47),
        ("gpt-4-turbo", 128_000, Cl100k),
        ("gpt-4-1106-preview", 128_000, Cl100k),
        ("gpt-4.1-mini", 1_047_576, O200k),
        ("openai/gpt-4o-2024-11-20", 128_000, O200k),
        ("gpt-5.5", 1_050_000, O200k),
        ("gpt-5-mini", 400_000, O200k),
        ("o3-pro", 200_000, O200k),
        ("models/gemini-3-pro", 1_048_576, Generic),
        ("deepseek-chat", 1_000_000, Generic),
        ("deepseek-r1:7b", 128_000, Generic),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072, Generic),
        ("Qwen3-Coder-480B", 262_144, Generic),
        ("x-ai/grok-4-fast", 2_000_000, Generic),
        ("grok-4", 256_000, Generic),
        ("moonshotai/kimi-k3", 1_048_576, Generic),
    ] {
        let facts = Catalogue::shipped_facts(model);
        assert_eq!((facts.window_tokens, facts.family), (window, family), "{model} by {:?}", facts.entry);
    }
}

#[test]
fn an_unknown_model_gets_the_stated_defaults() {
    for model in ["", "my-own-model", "foo1-o1x", "turbo3"] {
        let facts = Catalogue::shipped_facts(model);
        assert_eq!(facts.entry, None, "{model}");
    }
    let facts = Catalogue::shipped_facts("my-own-model");
    assert_eq!(facts.window_tokens, Catalogue::DEFAULT_WINDOW_TOKENS);
    assert_eq!((facts.family, facts.encoding, facts.max_output_tokens), (Family::Generic, None, None));
}

#[test]
fn public_encodings_come_along() {
    assert_eq!(Catalogue::shipped_facts("gpt-5").encoding, Some(Encoding::O200k));
    assert_eq!(Catalogue::shipped_facts("gpt-4-turbo").encoding, Some(Encoding::Cl100k));
    assert_eq!(Catalogue::shipped_facts("claude-opus-4-6").encoding, None);
}

#[test]
fn the_smallest_prompt_that_is_cached_goes_by_model() {
    for (model, minimum) in [
        ("claude-opus-4-5-20251101", Some(4_096)),
        ("anthropic/claude-sonnet-4.5", Some(1_024)),
        ("claude-opus-5", Some(512)),
        ("claude-opus-4.7", Some(2_048)),
        ("claude-3-5-haiku-20241022", Some(2_048)),
        ("gpt-5.5", Some(1_024)),
        ("gemini-3-pro", Some(4_096)),
        ("gpt-4-turbo", None),
        ("my-own-model", None),
    ] {
        assert_eq!(Catalogue::shipped_facts(model).cache_minimum_tokens, minimum, "{model}");
    }
}

#[test]
fn a_model_nobody_knows_counts_as_its_wire_suggests_unless_the_user_says() {
    let table = [
        (WireFormat::Anthropic, Family::Claude),
        (WireFormat::Responses, Family::O200k),
        (WireFormat::Chat, Family::Generic),
    ];
    let own = r#"{"version":1,"models":[{"name":"house-model","family":"cl100k"}]}"#;
    let own = crate::Catalogue::with_file(own).unwrap();
    for (wire, family) in table {
        assert_eq!(Catalogue::shipped_facts("house-model-7").family_on(wire), family);
        assert_eq!(Catalogue::shipped_facts("gpt-5").family_on(wire), Family::O200k);
        assert_eq!(own.of("house-model-7").family_on(wire), Family::Cl100k);
    }
}
