use proptest::prelude::*;
use throughline_transcript::{WireFormat, decode_message_text};

use super::*;
use crate::recall::RecallNames;

fn message(role: &str, text: &str) -> Message {
    let json = serde_json::json!({ "role": role, "content": text }).to_string();
    decode_message_text(json).unwrap()
}

/// A notation for messages: `u` or `a` for the role, the rest for the text; `r` for reasoning without text of its own.
fn talk(words: &[&str]) -> Vec<Message> {
    let one = |word: &&str| match word.split_at(1) {
        ("u", text) => message("user", text),
        ("a", text) => message("assistant", text),
        (_, text) => {
            let json = serde_json::json!({ "type": "reasoning", "id": text, "summary": [] }).to_string();
            decode_message_text(json).unwrap()
        }
    };
    words.iter().map(one).collect()
}

fn compared(ours: &[&str], client_messages: &[&str], folded: usize) -> (usize, usize) {
    let keys: Vec<MessageKey> = talk(ours).iter().map(MessageKey::of).collect();
    let messages = talk(client_messages);
    let PrefixMatch { matched, repeated, .. } = compare(&keys, &ClientMessage::all(&messages), folded);
    (matched, repeated)
}

#[test]
fn a_request_goes_on_leaves_or_is_another() {
    let ours = ["u1", "a1", "u2", "a2"];
    assert_eq!(compared(&ours, &["u1", "a1", "u2", "a2", "u3"], 0), (4, 4));
    assert_eq!(compared(&ours, &["u1", "a1", "u2"], 0), (3, 3));
    assert_eq!(compared(&ours, &["u1", "a1", "uX", "a2", "u3"], 0), (2, 2));
    assert_eq!(compared(&ours, &["uX", "a1"], 0), (0, 0));
    assert_eq!(compared(&[], &["u1"], 0), (0, 0));
}

#[test]
fn reasoning_is_passed_over_on_either_side() {
    let ours = ["u1", "r1", "a1"];
    assert_eq!(compared(&ours, &["u1", "a1", "u2"], 0), (3, 2));
    assert_eq!(compared(&["u1", "a1"], &["u1", "r1", "a1", "u2"], 0), (2, 3));
    assert_eq!(compared(&["u1", "a1", "r1"], &["u1", "a1", "u2"], 0), (3, 2));
}

#[test]
fn what_was_compacted_may_be_edited_but_not_what_a_person_said() {
    let ours = ["u1", "a1", "u2", "a2"];
    assert_eq!(compared(&ours, &["u1", "aX", "u2", "a2", "u3"], 2), (4, 4));
    assert_eq!(compared(&ours, &["u1", "aX", "u2", "a2", "u3"], 1), (1, 1));
    assert_eq!(compared(&ours, &["uX", "a1", "u2", "a2", "u3"], 2), (0, 0));
}

#[test]
fn the_end_of_a_view_is_aligned_with_the_clients_words() {
    let nothing = RecallNames::of(&[]);
    let view = talk(&["u1", "a1", "r9", "u2", "a2"]);
    let repeated = talk(&["u0", "a0", "u1", "a1", "u2", "a2"]);
    let aligned = |from, repeated: &[Message]| {
        let found = align(&view, from, repeated, Projection::new(&nothing, WireFormat::Chat));
        assert_eq!(found.moved, Vec::<usize>::new());
        (found.from, found.worded)
    };
    let (from, worded) = aligned(0, &repeated);
    assert_eq!(from, 0);
    assert_eq!(worded.iter().map(|(item, _)| *item).collect::<Vec<_>>(), [0, 1, 3, 4]);
    let (from, worded) = aligned(3, &repeated);
    assert_eq!((from, worded.len()), (3, 2));
    let (from, worded) = aligned(0, &talk(&["uX", "u2", "a2"]));
    assert_eq!((from, worded.len()), (2, 2));
}

/// aider appends instructions to the newest question and removes them with the next request.
#[test]
fn a_question_without_what_its_client_put_behind_it_is_the_same_question() {
    let ours = ["u1\n\nBe brief.", "a1"];
    assert_eq!(compared(&ours, &["u1", "a1", "u2"], 0), (2, 2));
    // Another answer, no answer, another question, and a question with new text are differences.
    assert_eq!(compared(&ours, &["u1", "aX", "u2"], 0), (0, 0));
    assert_eq!(compared(&ours, &["u1"], 0), (0, 0));
    assert_eq!(compared(&ours, &["uX", "a1", "u2"], 0), (0, 0));
    assert_eq!(compared(&["u1", "a1"], &["u1\n\nNot the tests.", "a1", "u2"], 0), (0, 0));
}

/// aider shows the files it works on only before the newest question.
#[test]
fn an_exchange_that_moves_before_the_newest_question_is_not_another_way() {
    let ours = ["ufiles", "aOk.", "u1\n\nBe brief.", "a1"];
    assert_eq!(compared(&ours, &["u1", "a1", "ufiles", "aOk.", "u2"], 0), (4, 2));
    // The files were edited; the reply of the client is the same.
    assert_eq!(compared(&ours, &["u1", "a1", "uothers", "aOk.", "u2"], 0), (4, 2));
    let ours = ["ufiles", "aOk.", "u1", "a1", "ufiles", "aOk.", "u2", "a2"];
    assert_eq!(compared(&ours, &["u1", "a1", "u2", "a2", "ufiles", "aOk.", "u3"], 0), (8, 4));
    // The exchange is missing, so it was removed: the request leaves the conversation there.
    assert_eq!(compared(&ours, &["u1", "a1", "u2", "a2", "u3"], 0), (0, 0));
    assert_eq!(compared(&ours, &["u1", "aX", "ufiles", "aOk.", "u3"], 0), (0, 0));
    // The answer was sent but is not recorded yet.
    assert_eq!(compared(&ours[..3], &["u1", "a1", "ufiles", "aOk.", "u2"], 0), (3, 1));
}

#[test]
fn a_moved_exchange_leaves_the_view() {
    let nothing = RecallNames::of(&[]);
    let view = talk(&["ufiles", "aOk.", "u1", "a1", "ufiles", "aOk.", "u2\n\nBe brief.", "a2"]);
    let found =
        align(&view, 0, &talk(&["u1", "a1", "u2", "a2"]), Projection::new(&nothing, WireFormat::Chat));
    assert_eq!((found.from, found.moved), (0, vec![4, 5, 0, 1]));
    let words: Vec<(usize, &str)> =
        found.worded.iter().map(|(item, message)| (*item, message.json())).collect();
    let said = talk(&["u1", "a1", "u2", "a2"]);
    let expected: Vec<(usize, &str)> = [2, 3, 6, 7].into_iter().zip(said.iter().map(Message::json)).collect();
    assert_eq!(words, expected);
}

/// The reasoning of each round stays in that round, in every form the client gives the answer.
#[test]
fn rounds_keep_our_words_when_a_client_repeats_them_as_one() {
    let parse = |value: serde_json::Value| decode_message_text(value.to_string()).unwrap();
    let thinking =
        |words: &str| serde_json::json!({ "type": "thinking", "thinking": words, "signature": words });
    let call =
        |id: &str, name: &str| serde_json::json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
    let result = |id: &str| {
        parse(serde_json::json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": "so" }] }))
    };
    let says = |parts: serde_json::Value| parse(serde_json::json!({ "role": "assistant", "content": parts }));
    // The same id in both rounds: some servers number the calls of each answer from the start.
    for own in ["c0", "c1"] {
        let view = [
            message("user", "go"),
            says(serde_json::json!([thinking("one"), call(own, "lcm_grep")])),
            result(own),
            says(serde_json::json!([thinking("two"), call("c0", "read")])),
        ];
        let repeated = [
            message("user", "go"),
            says(serde_json::json!([thinking("one"), thinking("two"), call("c0", "read")])),
        ];
        let names = RecallNames::of(&["lcm_grep"]);
        let keys = Projection::new(&names, WireFormat::Anthropic).keys(&view);
        let found = compare(&keys, &ClientMessage::all(&repeated), 0);
        assert!(found.goes_on(&keys) && found.repeated == 2, "{own}: {found:?}");
        let ClientBytes { from, worded, .. } =
            align(&view, 0, &repeated, Projection::new(&names, WireFormat::Anthropic));
        let words: Vec<&str> = worded.iter().map(|(_, message)| message.json()).collect();
        assert_eq!((from, words), (0, view.iter().map(Message::json).collect()), "{own}");
    }
}

proptest! {
    #[test]
    fn a_conversation_always_goes_on_with_itself(
        ours in prop::collection::vec("[uar][0-9]", 0..20),
        more in prop::collection::vec("[uar][0-9]", 0..5),
    ) {
        let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
        let client_messages: Vec<&str> = ours.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let (matched, repeated) = compared(&ours, &client_messages, 0);
        prop_assert_eq!(matched, ours.len());
        prop_assert!(repeated >= ours.len() && repeated <= client_messages.len());
    }
}
