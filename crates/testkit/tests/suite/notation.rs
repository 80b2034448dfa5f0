//! Pictures, coverage and alterations say what they mean.

use throughline_testkit::{
    Coverage, GeneratedList, Rng, from_picture, group_kinds, group_picture, mutate, picture,
};
use throughline_transcript::{Groups, Role, Violation, WireFormat};

#[test]
fn a_picture_is_drawn_as_it_was_read() {
    for (wire_format, drawn) in [
        (WireFormat::Chat, "sdumaerA2TTATX"),
        (WireFormat::Anthropic, "usaA3TA2HamrX"),
        (WireFormat::Responses, "sduamrAATTroeX"),
    ] {
        let list = from_picture(wire_format, drawn);
        assert_eq!(picture(&list.messages()), drawn, "{wire_format}");
    }
}

#[test]
fn blanks_and_brackets_only_mark_places() {
    let list = from_picture(WireFormat::Chat, "s u [A2TT u] | a.");
    assert_eq!(picture(&list.messages()), "suA2TTua");
    assert_eq!(group_picture(&list.messages()), "s|u|A2TT|u|a");
    assert_eq!(group_kinds(&list.messages()), "ihshs");
}

#[test]
fn calls_that_wait_are_counted() {
    assert_eq!(from_picture(WireFormat::Chat, "uA3T").open_calls, 2);
    assert_eq!(from_picture(WireFormat::Anthropic, "uA3T").open_calls, 0);
    assert_eq!(from_picture(WireFormat::Responses, "uAAT").open_calls, 1);
}

#[test]
fn good_pictures_are_acceptable_lists() {
    for (wire_format, drawn) in [
        (WireFormat::Chat, "suaA2TTATau"),
        (WireFormat::Anthropic, "uA2TaAHsuau"),
        (WireFormat::Responses, "durAATTrau"),
    ] {
        let messages = from_picture(wire_format, drawn).messages();
        assert_eq!(
            Violation::find(wire_format, &messages, &Groups::of(&messages)),
            [],
            "{wire_format} {drawn}"
        );
    }
}

#[test]
#[should_panic(expected = "'?' means nothing in a picture")]
fn an_unknown_letter_fails_the_test() {
    let _ = from_picture(WireFormat::Chat, "u?");
}

#[test]
fn coverage_counts_and_prints_what_it_was_given() {
    let coverage = Coverage::new();
    let messages = from_picture(WireFormat::Chat, "suA2TTa").messages();
    coverage.list(&messages);
    coverage.seam(&messages, 0);
    coverage.seam(&messages, 6);
    coverage.note("verbatim");
    coverage.note("verbatim");
    assert_eq!(coverage.seam_count(Role::Tool, Role::Tool), 1);
    assert_eq!(coverage.count("tool call"), 2);
    assert_eq!(coverage.count("parallel calls"), 1);
    assert_eq!(coverage.count("verbatim"), 2);
    assert_eq!(coverage.count("never"), 0);
    assert!(coverage.missing_seams(WireFormat::Chat).contains(&(Role::User, Role::User)));
    let printed = coverage.to_string();
    for part in ["1 lists, 6 messages", "(edge)", "assistant", "2  verbatim", "2  tool call"] {
        assert!(printed.contains(part), "{part} is missing in\n{printed}");
    }
}

#[test]
fn documents_bodies_and_lines_hold_the_same_messages() {
    let list = from_picture(WireFormat::Chat, "ua");
    let both = format!("{},{}", list.json[0], list.json[1]);
    assert_eq!(list.document(), format!("[{both}]"));
    assert_eq!(list.lines(), format!("{}\n{}\n", list.json[0], list.json[1]));
    assert!(list.body("s").contains(&format!("\"messages\":[{both}]")));
    let nothing = GeneratedList::of(WireFormat::Chat, Vec::new());
    assert_eq!((nothing.document().as_str(), nothing.lines().as_str()), ("[]", ""));
}

#[test]
fn alterations_differ_from_one_another_and_repeat_with_their_seed() {
    let altered = |seed| mutate(b"[{\"role\":\"user\"}]", &mut Rng::new(seed));
    let all: std::collections::HashSet<Vec<u8>> = (0..200).map(altered).collect();
    assert!(all.len() > 150, "{} different ones", all.len());
    assert_eq!(altered(7), altered(7));
    for seed in 0..50 {
        let _ = mutate(b"", &mut Rng::new(seed));
    }
}
