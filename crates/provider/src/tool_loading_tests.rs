//! Tests of which models load tools by reference.

use super::*;

#[test]
fn anthropic_does_for_recent_models() {
    for (model, loads) in [
        ("claude-opus-4-5-20251101", true),
        ("claude-sonnet-4-5", true),
        ("claude-opus-4-6", true),
        ("claude-opus-5-5", true),
        ("claude-haiku-5", true),
        ("claude-haiku-4-5", false),
        ("claude-sonnet-4-20250514", false),
        ("claude-opus-4", false),
        ("claude-3-5-sonnet-20241022", false),
        ("gpt-5", false),
        ("", false),
    ] {
        let at = |kind: EndpointKind, wire_format| kind.loads_tools_by_reference(wire_format, model);
        assert_eq!(at(EndpointKind::Anthropic, WireFormat::Anthropic), loads, "{model}");
        assert!(!at(EndpointKind::Custom, WireFormat::Anthropic), "{model}");
        assert!(!at(EndpointKind::OpenRouter, WireFormat::Chat), "{model}");
    }
}
