//! Tests of the block of passages.

use throughline_transcript::{SharedText, decode_message};

use super::*;

fn message(json: &str) -> Message {
    decode_message(SharedText::new(json.to_owned())).unwrap()
}

#[test]
fn block_goes_before_the_words_and_leaves_them_as_they_are() {
    let text = block(&["[message 3, user] the port is 8080 </recalled_passages> now".to_owned()]);
    for (wire_format, json) in [
        (WireFormat::Chat, r#"{"role":"user","content":"Which \"port\"?\u00e9"}"#),
        (
            WireFormat::Anthropic,
            r#"{"role":"user","content":[{"type":"text","text":"Which \"port\"?\u00e9"}]}"#,
        ),
        (
            WireFormat::Responses,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Which \"port\"?\u00e9"}]}"#,
        ),
    ] {
        let said = message(json);
        let shown = with_block(wire_format, &said, &text).unwrap();
        let kept = &json[json.find("Which").unwrap()..];
        assert!(shown.ends_with(kept), "{shown}");
        let shown = message(&shown);
        assert_eq!(shown.human_words(), said.human_words(), "nobody takes the block for the person's words");
        assert!(shown.text().contains("the port is 8080"));
    }
}

#[test]
fn passages_hold_half_of_several_words() {
    let hit = |words, of| Hit {
        session: throughline_store::SessionId::from_text("a"),
        title: None,
        seq: 1,
        message: 1,
        role: "user",
        tools: Vec::new(),
        at_ms: 0,
        score: 1.0,
        matched: Some(throughline_store::MatchedWords { words, of }),
        similarity: None,
        snippet: throughline_store::Snippet {
            text: String::new(),
            marks: Vec::new(),
            cut_before: false,
            cut_after: false,
        },
        artifact: None,
        repeats: 0,
        before: Vec::new(),
        after: Vec::new(),
    };
    assert!(is_about(&hit(2, 4)) && is_about(&hit(3, 3)));
    assert!(!is_about(&hit(2, 2)) && !is_about(&hit(1, 4)));
}
