//! Tests of valid answers in all forms that models use, and of invalid ones.

use throughline_transcript::WireFormat;
use throughline_wire::{AnswerPart, Seal, Stop, ToolCall};

use super::*;

fn notes() -> String {
    Section::ALL
        .map(|section| format!("## {}\n- about {}\n", section.heading(), section.heading().to_lowercase()))
        .concat()
}

fn answer(parts: Vec<AnswerPart>) -> Answer {
    Answer { parts, ..Answer::empty(WireFormat::Chat) }
}

fn said(text: &str) -> Result<Notes, SummaryDefect> {
    read_answer(&answer(vec![AnswerPart::Text(text.to_owned())]))
}

#[test]
fn our_own_form_is_read_exactly() {
    let read = said(&notes()).unwrap();
    assert_eq!(read.missing, []);
    assert_eq!(read.document.entries(Section::Goal)[0].text, "about goal");
    assert_eq!(read.document.entries(Section::CompletedActions)[0].number, Some(1));
}

#[test]
fn a_fence_in_quoted_words_that_nobody_closed_hides_no_heading() {
    let quoted = notes().replace("- about goal", "- \"Make it print this:\n  ```rust\n  fn main() {\"");
    let read = said(&quoted).unwrap();
    assert_eq!(read.missing, []);
    assert_eq!(read.document.entries(Section::CriticalContext)[0].text, "about critical context");
    // Closed code blocks may contain anything.
    let template = "- about goal\n```md\n## Blocked\n## Goal\n```";
    let read = said(&notes().replace("- about goal", template)).unwrap();
    assert_eq!(read.document.entries(Section::Blocked)[0].text, "about blocked");
    assert!(read.document.entries(Section::Goal)[0].text.contains("## Blocked"));
}

#[test]
fn form_does_not_matter() {
    let plain = notes();
    let exact = said(&plain).unwrap().document;
    let bold = |line: &str| match line.strip_prefix("## ") {
        Some(heading) => format!("**{heading}**\n"),
        None => format!("{line}\n"),
    };
    let numbered: String = (1..)
        .zip(plain.split("## ").skip(1))
        .map(|(number, part)| format!("{number}. {}", part.replacen('\n', ":\n", 1)))
        .collect();
    let forms = [
        ("deep headings", plain.replace("## ", "#### ")),
        ("top headings", plain.replace("## ", "# ")),
        ("bold headings", plain.lines().map(bold).collect()),
        ("numbered headings", numbered),
        ("numbered hashes", plain.replace("## Goal", "## 2. Goal:")),
        ("upper case", plain.replace("## Goal", "## GOAL")),
        ("a preamble", format!("Sure! Here are the notes you asked for:\n\n{plain}")),
        ("a fence", format!("```markdown\n{plain}```\n")),
        (
            "a fence within words",
            format!("Here you are.\n\n```md\n{plain}```\nLet me know if you need more."),
        ),
        ("thinking first", format!("<think>## Goal\n- a draft\nhm</think>\n\n{plain}")),
        ("thinking in capitals", format!("<Thinking>hm</Thinking>{plain}")),
        ("thinking twice", format!("<think>a</think>\n<think>b</think>\n{plain}")),
        (
            "thinking whose tag was opened in the prompt",
            format!("hm, ## Goal\nlet me see\n</think>\n{plain}"),
        ),
        ("line ends of Windows", plain.replace('\n', "\r\n")),
    ];
    for (name, form) in forms {
        let read = said(&form).unwrap_or_else(|unfit| panic!("{name}: {unfit}\n{form}"));
        assert_eq!(read.document.to_markdown(), exact.to_markdown(), "{name}:\n{form}");
    }
}

#[test]
fn a_thinking_tag_in_the_words_stays() {
    let text = notes().replace("about goal", "strip `<think>` and `</think>` from answers");
    let read = said(&text).unwrap();
    assert_eq!(read.document.entries(Section::Goal)[0].text, "strip `<think>` and `</think>` from answers");
}

#[test]
fn code_that_looks_like_a_heading_is_words() {
    let text = notes()
        .replace("- about blocked", "- it fails with\n```sh\n# Goal\nmake\n## Blocked\n```\n- and hangs");
    let read = said(&text).unwrap();
    let blocked = read.document.entries(Section::Blocked);
    assert_eq!(blocked.len(), 2, "{blocked:?}");
    assert!(blocked[0].text.contains("# Goal\nmake\n## Blocked"), "{blocked:?}");
    assert_eq!(read.document.entries(Section::Goal).len(), 1);
}

#[test]
fn missing_sections_are_reported() {
    let text: String = notes().split_inclusive("## ").filter(|part| !part.starts_with("Blocked")).collect();
    assert_eq!(said(&text).unwrap().missing, [Section::Blocked]);
}

#[test]
fn what_is_no_summary_is_named() {
    let german = notes()
        .replace("Active Task", "Aktuelle Aufgabe")
        .replace("## Goal", "## Ziel")
        .replace("Constraints & Preferences", "Einschränkungen")
        .replace("Completed Actions", "Erledigtes")
        .replace("Active State", "Stand")
        .replace("In Progress", "In Arbeit")
        .replace("## Blocked", "## Hindernisse");
    let echoed = SectionsOf::prompt();
    let cases = [
        ("", SummaryDefect::Empty),
        ("  \n\t\n", SummaryDefect::Blank),
        ("<think>only this", SummaryDefect::OnlyReasoning),
        ("<think>only this</think>\n", SummaryDefect::OnlyReasoning),
        ("I went on and fixed the bug.", SummaryDefect::OtherSections { known: 0, others: vec![] }),
        (
            &german,
            SummaryDefect::OtherSections {
                known: 6,
                others: vec!["\"Aktuelle Aufgabe\"".into(), "\"Ziel\"".into(), "\"Einschränkungen\"".into()],
            },
        ),
        (&SummaryDocument::default().to_markdown(), SummaryDefect::SaysNothing),
        (&echoed, SummaryDefect::SaysNothing),
    ];
    for (text, unfit) in cases {
        assert_eq!(said(text), Err(unfit), "{text}");
    }
}

/// The prompt's descriptions of the sections: the answer of a model that repeats the question.
struct SectionsOf;

impl SectionsOf {
    fn prompt() -> String {
        let one = |section: Section| {
            let number = if section == Section::CompletedActions { "1. " } else { "" };
            format!("## {}\n{number}{}\n", section.heading(), guidance(section))
        };
        Section::ALL.map(one).concat()
    }
}

#[test]
fn other_parts_of_an_answer_are_failures() {
    let text = || AnswerPart::Text(notes());
    let call =
        AnswerPart::ToolCall(ToolCall { id: "c".into(), name: "read_file".into(), arguments: "{}".into() });
    let reasoning = AnswerPart::Reasoning { text: "hm".into(), seal: Seal::None };
    assert_eq!(
        read_answer(&answer(vec![text(), call])),
        Err(SummaryDefect::CalledTool { name: "read_file".into() })
    );
    assert_eq!(read_answer(&answer(vec![reasoning.clone()])), Err(SummaryDefect::OnlyReasoning));
    assert!(read_answer(&answer(vec![reasoning, text()])).is_ok());
    let declined = AnswerPart::Refusal("I cannot\ndo that.".into());
    assert_eq!(
        read_answer(&answer(vec![declined])),
        Err(SummaryDefect::Declined { words: "I cannot do that.".into() })
    );
    for (word, unfit) in [
        ("length", SummaryDefect::CutOff),
        ("max_tokens", SummaryDefect::CutOff),
        ("model_context_window_exceeded", SummaryDefect::CutOff),
    ] {
        let stop = Stop::of_word(Some(word.to_owned()));
        assert_eq!(read_answer(&Answer { stop, ..answer(vec![text()]) }), Err(unfit), "{word}");
    }
    let stop = Stop::of_word(Some("content_filter".to_owned()));
    let filtered = read_answer(&Answer { stop, ..answer(vec![AnswerPart::Text("No.".into())]) });
    assert_eq!(filtered, Err(SummaryDefect::Declined { words: "No.".into() }));
}

proptest::proptest! {
    #[test]
    fn nothing_a_model_says_breaks_the_reader(text in "(?s).{0,200}") {
        let _ = said(&text);
    }

    #[test]
    fn headings_anywhere_break_nothing(parts in proptest::collection::vec("(?s)(## Goal|## Blocked|```|<think>|</think>|- a|\n|.){0,12}", 0..12)) {
        let _ = said(&parts.concat());
    }
}
