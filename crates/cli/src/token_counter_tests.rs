//! Exact counts are exact, and estimates are marked as such.

use throughline_tokens::Family;
use throughline_transcript::decode_message_text;

use super::*;

fn message(json: &str) -> Message {
    decode_message_text(json.to_owned()).unwrap()
}

#[test]
fn an_exact_count_is_that_of_the_text_plus_what_the_wire_adds() {
    let model = TokenModel::of(Family::O200k);
    let around = model.estimate_content(&ContentProfile { messages: 1, ..ContentProfile::default() });
    let meter = TokenCounter::exact(model, Encoding::O200k);
    let text = "fn main() { println!(\"grüß dich\"); }";
    let json = format!("{{\"role\":\"user\",\"content\":{}}}", serde_json::to_string(text).unwrap());
    assert_eq!(meter.text(text), Encoding::O200k.count(text));
    assert_eq!(meter.message(&message(&json)), Encoding::O200k.count(text) + around);
    assert_eq!(meter.json()["encoding"], "o200k_base");
}

#[test]
fn pictures_count_by_their_size_not_by_their_data() {
    let meter = TokenCounter::estimating(TokenModel::of(Family::Claude));
    let unknown = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
    let long = unknown.replace("AAAA", &"A".repeat(100_000));
    assert!(meter.image(unknown) > 100);
    assert_eq!(meter.image(unknown), meter.image(&long));
}

#[test]
fn the_preamble_is_system_prompt_and_tools() {
    let meter = TokenCounter::estimating(TokenModel::of(Family::Generic));
    let preamble = Preamble {
        system: Some(SharedText::new("\"be brief\"".to_owned())),
        tools: Some(SharedText::new("[{\"name\":\"ls\"}]".to_owned())),
        ..Preamble::default()
    };
    assert_eq!(meter.preamble(&preamble), meter.system("\"be brief\"") + meter.tools("[{\"name\":\"ls\"}]"));
    assert_eq!(meter.preamble(&Preamble::default()), 0);
}

#[test]
fn a_system_prompt_of_blocks_counts_like_its_text() {
    let meter = TokenCounter::exact(TokenModel::of(Family::O200k), Encoding::O200k);
    let blocks = r#"[{"type":"text","text":"You are \"brief\"."},{"type":"text","text":"Always."}]"#;
    let texts = Encoding::O200k.count("You are \"brief\".") + Encoding::O200k.count("Always.");
    let around = meter.system("\"\"");
    assert_eq!(meter.system(blocks), texts + around);
}
