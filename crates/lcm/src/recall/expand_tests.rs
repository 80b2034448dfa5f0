//! Tests of parts of long messages.

use super::*;

#[test]
fn a_part_of_a_long_text_fits_its_room() {
    let text = "Grüße aus Köln. ".repeat(4_000);
    for room in [40, 200, 1_000] {
        let part = within(&text, 10, room);
        assert!(text_tokens(&part) <= room && !part.is_empty(), "{room}");
        assert!(text_tokens(&part) * 2 > room, "most of the room is used: {} of {room}", text_tokens(&part));
    }
    assert_eq!(within("short", 2, 100), "ort");
    assert_eq!(within("short", 9, 100), "");
}

#[test]
fn a_passage_is_looked_for_with_and_without_case() {
    let text = format!("{} NEEDLE {}", "x ".repeat(1_000), "y ".repeat(1_000));
    let at = found_at(&text, Some("needle"), 100).unwrap();
    assert!(at < 2_001 && at > 1_800, "{at}");
    assert_eq!(found_at(&text, Some("absent"), 100), None);
    assert_eq!(found_at(&text, Some("  "), 100), None);
}
