use throughline_transcript::{Message, Role, WireFormat, text_message};

use super::{QuoteRequirement, QuoteSearch, words_of};

fn said(role: Role, text: &str) -> Message {
    let json = text_message(WireFormat::Chat, role, text);
    throughline_wire::Request::decode(WireFormat::Chat, format!(r#"{{"model":"m","messages":[{json}]}}"#))
        .unwrap()
        .messages()[0]
        .clone()
}

#[test]
fn quotes_are_counted_where_both_sides_are_quoted() {
    let long = "Read every part of the archive, and tell me which of them name the harbour. ".repeat(5);
    let conversation = [
        said(Role::User, &long),
        said(Role::Assistant, "The first part comes next."),
        said(Role::User, "go on"),
        said(Role::Assistant, "The second part comes next."),
    ];
    let counted = |text: &str, needed| {
        QuoteSearch::new(&words_of(&[said(Role::User, text)]), needed).quoted(&conversation)
    };
    let quoted = |text: &str| counted(text, QuoteRequirement::QuestionAndAnswer);
    let both = format!("Summarise this.\n[USER]: {long}\n[ASSISTANT]: The second part comes next.");
    assert_eq!(quoted(&both), 2);
    assert_eq!(quoted(&format!("A title: {}... The first part comes next.", &long[..200])), 2, "shortened");
    assert_eq!(quoted(&long), 0, "the question alone");
    assert_eq!(quoted("The first part comes next. The second part comes next."), 0, "answers alone");
    assert_eq!(quoted("go on"), 0, "said by chance");
    assert_eq!(quoted(""), 0);
    assert_eq!(counted(&long, QuoteRequirement::Question), 1);
    assert_eq!(counted("The first part comes next.", QuoteRequirement::Question), 0);
}
