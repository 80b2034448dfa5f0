//! The tokens that recall may use.

use super::recall_room;

#[test]
fn recall_fills_what_a_prompt_leaves() {
    assert_eq!(recall_room(90_000, 58_000, 18_000), 40_000);
}

#[test]
fn recall_has_room_beside_a_view_that_takes_the_space_of_the_answer() {
    for prompt in [57_000, 58_000, 70_000, 86_000] {
        let room = recall_room(90_000, 58_000, prompt);
        assert!(room > 0 && room <= (90_000 - prompt) / 4 + 1_000, "{prompt}: {room}");
    }
    assert_eq!(recall_room(90_000, 58_000, 90_000), 0);
    assert_eq!(recall_room(90_000, 58_000, 120_000), 0);
}
