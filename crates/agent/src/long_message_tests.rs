//! Long messages are cut in the middle, between characters.

use super::*;

#[test]
fn the_beginning_and_the_end_stay() {
    let said = format!("Review this:\n\n{}\nWhat is wrong?", "größer als das Fenster\n".repeat(1_000));
    let artifact = ArtifactId::of(said.as_bytes());
    let shown = shortened(&said, 200, &artifact, "Read it with recall.");
    assert!(shown.starts_with("Review this:\n\ngrößer als das Fenster\n"), "{shown}");
    assert!(shown.ends_with("What is wrong?"), "{shown}");
    let missing = said.chars().count() - 200;
    assert!(shown.contains(&format!("{missing} of the {} characters", said.chars().count())), "{shown}");
    assert!(shown.contains("(1004 lines)") && shown.contains(short_name(&artifact)), "{shown}");
    assert!(shown.contains("Read it with recall."), "{shown}");
}

#[test]
fn nothing_may_be_shown_at_all() {
    let artifact = ArtifactId::of(b"x");
    let shown = shortened("words", 0, &artifact, "");
    assert!(shown.starts_with("\n<system-reminder>") && shown.contains("5 of the 5 characters"), "{shown}");
}
