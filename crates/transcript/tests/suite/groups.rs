//! Which messages belong together, as pictures: a bar stands between groups. The letters are explained at `from_picture`.

use throughline_testkit::{GeneratedList, from_picture, group_kinds, group_picture};
use throughline_transcript::{Groups, WireFormat};

fn check(wire_format: WireFormat, cases: &[(&str, &str)]) {
    for (picture, kinds) in cases {
        let messages = from_picture(wire_format, picture).messages();
        let wanted: String = picture.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(group_picture(&messages), wanted, "{wire_format}");
        assert_eq!(group_kinds(&messages), *kinds, "{wire_format} {picture}");
    }
}

#[test]
fn chat() {
    check(
        WireFormat::Chat,
        &[
            ("", ""),
            ("u", "h"),
            ("s|u|a", "ihs"),
            ("s|d|u|u|a|a", "iihhss"),
            ("u|AT|a", "hss"),
            ("u|A2TT|AT|a|u", "hsssh"),
            ("u|m|A3TTT|m|a", "hmsms"),
            ("u|e|r|a", "hsss"),
            ("u|A", "hs"),
            ("u|A2T", "hs"),
            ("u|AuT|a", "hss"),
            ("u|A2TuT|a", "hss"),
            ("u|X|a", "hos"),
            ("X|u|a", "ohs"),
            ("a|u", "sh"),
            ("o|u", "oh"),
        ],
    );
}

#[test]
fn anthropic() {
    check(
        WireFormat::Anthropic,
        &[
            ("u|AT|a", "hss"),
            ("u|A3T|A2H|a|u", "hsssh"),
            ("u|s|AT|s|a", "hisis"),
            ("u|r|a|AT", "hsss"),
            ("u|A", "hs"),
            ("u|X|a", "hos"),
        ],
    );
}

#[test]
fn responses_answers_are_runs_of_items() {
    check(
        WireFormat::Responses,
        &[
            ("u|a", "hs"),
            ("u|ra", "hs"),
            ("u|rAT|a", "hss"),
            ("u|raAT|ra", "hss"),
            ("u|rAATT|a", "hss"),
            ("u|AT|AT|a", "hsss"),
            ("u|rAT|X|u", "hsoh"),
            ("d|u|m|rAAATTT|rAT|ra|u", "ihmsssh"),
            ("u|aa|u", "hsh"),
            ("u|o|ra", "hos"),
            ("u|rA", "hs"),
            ("u|rAAT", "hs"),
        ],
    );
}

#[test]
fn reasoning_stays_with_an_untyped_message() {
    let json = [
        "{\"role\":\"user\",\"content\":\"u\"}",
        "{\"type\":\"reasoning\",\"summary\":[]}",
        "{\"role\":\"assistant\",\"content\":\"a\"}",
        "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":\"{}\"}",
        "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"o\"}",
    ];
    let list = GeneratedList::of(WireFormat::Responses, json.map(String::from).to_vec());
    assert_eq!(group_picture(&list.messages()), "u|raAT");
}

#[test]
fn answers_in_blocks_are_answers_of_their_own() {
    let block = "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}";
    let json = vec!["{\"role\":\"user\",\"content\":\"u\"}".to_owned(), block.to_owned(), block.to_owned()];
    let list = GeneratedList::of(WireFormat::Anthropic, json);
    assert_eq!(group_picture(&list.messages()), "u|a|a");
}

#[test]
fn ids_used_again_pair_with_the_nearest_call() {
    let call = "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"0\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]}";
    let result = "{\"role\":\"tool\",\"tool_call_id\":\"0\",\"content\":\"r\"}";
    let json = ["{\"role\":\"user\",\"content\":\"u\"}", call, result, call, result, call]
        .map(String::from)
        .to_vec();
    let messages = GeneratedList::of(WireFormat::Chat, json).messages();
    assert_eq!(group_picture(&messages), "u|AT|AT|A");
    let groups = Groups::of(&messages);
    let open: Vec<usize> = groups.as_slice().iter().map(|group| group.open_calls).collect();
    assert_eq!(open, [0, 0, 0, 1]);
}

#[test]
fn what_is_open_orphaned_and_reached() {
    let messages = from_picture(WireFormat::Chat, "uA3TTuaX").messages();
    let groups = Groups::of(&messages);
    assert_eq!(group_picture(&messages), "u|A3TT|u|a|X");
    assert_eq!(groups.unanswered_calls(1), 1);
    assert_eq!(groups.reach(1), 4);
    assert_eq!(groups.reach(0), 1);
    assert_eq!((groups.orphan_results(6), groups.orphan_results(2)), (1, 0));
    assert_eq!(groups.orphans().len(), 1);
    assert!(groups.clashing_calls().is_empty());
    assert_eq!(groups.containing(2).map(|group| (group.start, group.end)), Some((1, 4)));
    assert_eq!(groups.containing(0).map(|group| group.start), Some(0));
    assert_eq!(groups.containing(7), None);
    // Beyond the list there is nothing.
    assert_eq!((groups.reach(99), groups.unanswered_calls(99), groups.orphan_results(99)), (100, 0, 0));
}

#[test]
fn a_long_run_of_items_is_grouped_in_linear_time() {
    // Quadratic work over a hundred thousand items would take minutes.
    let messages = from_picture(WireFormat::Responses, &format!("u{}", "a".repeat(100_000))).messages();
    assert_eq!(Groups::of(&messages).as_slice().len(), 2);
}
