//! Tests of splitting a middle for a small window.

use throughline_testkit::from_picture;
use throughline_transcript::{Role, WireFormat};

use super::*;
use crate::plan::Earlier;

/// A summariser with this window.
struct Window(Option<u64>);

impl Summariser for Window {
    fn name(&self) -> &str {
        "window"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        self.0
    }

    fn summarise<'a>(&'a self, _request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(std::future::ready(Ok(SummaryDocument::default())))
    }
}

/// Returns the parts of a list whose middle is all but its last message, for a window of this size; each message has ten tokens.
fn parts(list: &str, window_tokens: Option<u64>) -> Result<Vec<String>, SummariseError> {
    let messages = from_picture(WireFormat::Chat, list).messages();
    let groups = Groups::of(&messages);
    let sizes = vec![10; messages.len()];
    let end = messages.len() - 1;
    let plan = Plan {
        head: 0..0,
        middle: 0..end,
        tail: end..end + 1,
        pinned: None,
        earlier: Earlier::default(),
        summary_role: Role::User,
        acknowledge: false,
    };
    let ledger = Ledger::default();
    let request = SummaryRequest {
        messages: &messages,
        groups: &groups,
        sizes: &sizes,
        ledger: &ledger,
        plan: &plan,
        span: plan.middle.clone(),
        earlier: None,
        focus: None,
        manner: SummaryKind::default(),
        shown_text: "",
        budget_tokens: 100,
        count_tokens: &|_| 0,
    };
    let letters: Vec<char> = list.chars().filter(|c| !c.is_ascii_digit()).collect();
    let draw = |span: Range<usize>| letters[span].iter().collect::<String>();
    Ok(split_span(&request, &Window(window_tokens))?.into_iter().map(draw).collect())
}

#[test]
fn without_a_limit_there_is_one_part() {
    assert_eq!(parts("uATATATATa", None).unwrap(), ["uATATATAT"]);
    assert_eq!(parts("uATATATATa", Some(1_000)).unwrap(), ["uATATATAT"]);
}

#[test]
fn parts_fill_their_share_and_end_between_groups() {
    // Sixty percent of 100 tokens: six messages.
    assert_eq!(parts("uATATATATATa", Some(100)).unwrap(), ["uATAT", "ATATAT"]);
    assert_eq!(parts("uaA4TTTTA4TTTTuaa", Some(100)).unwrap(), ["ua", "ATTTT", "ATTTTu", "a"]);
    assert_eq!(parts("uauauauauauaua", Some(50)).unwrap(), ["uau", "aua", "uau", "aua", "u"]);
}

#[test]
fn a_group_larger_than_a_share_is_a_part_of_its_own() {
    assert_eq!(parts("uA9TTTTTTTTTATa", Some(50)).unwrap(), ["u", "ATTTTTTTTT", "AT"]);
}

#[test]
fn a_window_without_room_is_refused() {
    let error = parts("uATATa", Some(1)).unwrap_err();
    assert_eq!(error, SummariseError::WindowTooSmall { window_tokens: 1, needed_tokens: 50 });
    assert!(error.to_string().contains("window of 1 tokens is too small"));
}
