//! Parsing notes.

use super::*;

#[test]
fn notes_are_lines_of_json_and_nothing_else_counts() {
    let note = |file: &str, text: &str| MemoryNote { file: file.to_owned(), text: text.to_owned() };
    assert_eq!(notes_of("nothing"), []);
    let answer = "Here they are:\n{\"file\": \"user\", \"text\": \"Speaks German.\"}\n{\"file\": \"etc\", \"text\": \"x\"}\n\
                  {\"file\": \"memory\", \"text\": \" \"}\n{\"file\":\"memory\",\"text\":\"The gate is blue.\"}";
    assert_eq!(notes_of(answer), [note("user", "Speaks German."), note("memory", "The gate is blue.")]);
    assert_eq!(notes_of(&"{\"file\":\"user\",\"text\":\"a\"}\n".repeat(9)).len(), MOST_NOTES);
    assert_eq!(
        between("a <memory name=\"x\">\nn\n</memory> b", "<memory ", "</memory>"),
        "<memory name=\"x\">\nn\n</memory>"
    );
    assert_eq!(between("nothing", "<memory ", "</memory>"), "");
}
