//! Tests of the exact prompts, and that none of their parts is missing.

use super::*;

fn mark() -> QuoteMark {
    QuoteMark::draw(&|| 0xa1b2_c3d4, std::iter::empty())
}

fn brief(mark: &QuoteMark) -> SummaryBrief<'_> {
    SummaryBrief {
        mark,
        budget_tokens: 2_000,
        today: "2026-11-16",
        focus: None,
        manner: SummaryKind::default(),
        memory: None,
        problem: None,
    }
}

#[test]
fn every_section_is_asked_for_in_its_order() {
    let asked: Vec<&str> = SECTIONS.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(asked, Section::ALL.map(Section::heading));
    for section in Section::ALL {
        assert!(guidance(section).ends_with('.'), "{}: {:?}", section.heading(), guidance(section));
    }
}

#[test]
fn the_first_form_as_a_model_sees_it() {
    let mark = mark();
    let brief = brief(&mark);
    let transcript = "---- a1b2c3d4 4 person\nWhy does the build fail?\n";
    let whole = format!(
        "SYSTEM\n{}\n\nUSER\n{}",
        brief.apart_system(),
        brief.apart_request(None, transcript, Some("And on Windows?"))
    );
    insta::assert_snapshot!(whole);
}

#[test]
fn the_update_with_a_focus_and_a_memory_as_a_model_sees_it() {
    let mark = mark();
    let brief = SummaryBrief {
        focus: Some("the build on Windows"),
        memory: Some("The person prefers small commits."),
        ..brief(&mark)
    };
    let transcript = "---- a1b2c3d4 4 person\nWhy does the build fail?\n";
    insta::assert_snapshot!(brief.apart_request(
        Some("## Active Task\n- Mend the build.\n"),
        transcript,
        None
    ));
}

#[test]
fn the_riding_form_as_a_model_sees_it() {
    let mark = mark();
    let request = brief(&mark).riding_request(12, "the one that begins \"And on Windows?\"", HasNotes::Yes);
    insta::assert_snapshot!(request);
}

#[test]
fn no_placeholder_is_left_and_the_room_is_stated() {
    let mark = mark();
    let brief = SummaryBrief {
        focus: Some("f"),
        memory: Some("m"),
        problem: Some("the answer was empty"),
        ..brief(&mark)
    };
    let texts = [
        brief.apart_system(),
        brief.apart_request(Some("notes"), "messages", Some("next")),
        brief.riding_request(1, "there", HasNotes::Yes),
    ];
    for text in &texts {
        assert!(!text.contains('{') && !text.contains('}'), "{text}");
    }
    assert!(texts[0].contains("at most 2000 tokens (about 1200 words)"), "{}", texts[0]);
    assert!(texts[1].contains("60 to 70 per cent"), "{}", texts[1]);
    assert!(texts[1].contains("could not be used: the answer was empty"), "{}", texts[1]);
    assert!(texts[2].contains("The newest message stays in view unchanged, from there on"), "{}", texts[2]);
}

#[test]
fn each_reach_has_its_own_words_and_terse_ones_come_on_top() {
    let mark = mark();
    let system =
        |reach, detail| SummaryBrief { manner: SummaryKind { reach, detail }, ..brief(&mark) }.apart_system();
    let plain = system(Reach::Everything, Detail::Detailed);
    let reaches =
        [(Reach::Minutes, "one stretch"), (Reach::Hours, "several stretches"), (Reach::Days, "after days")];
    for (reach, words) in reaches {
        let text = system(reach, Detail::Detailed);
        assert!(text.contains(words) && !plain.contains(words), "{text}");
        assert!(!text.contains("Be terse") && text.contains("The sections:"), "{text}");
        assert!(system(reach, Detail::Terse).contains("Be terse"));
    }
}
