//! Tests of the names of nodes and of joining runs.

use super::*;

fn run(session: &str, first_seq: u64, end_seq: u64) -> MessageRun {
    MessageRun { session: SessionId::from_text(session), first_seq, end_seq }
}

#[test]
fn runs_are_joined_where_they_meet_and_refused_where_they_overlap() {
    let all = MessageRun::joined(vec![run("b", 5, 9), run("a", 2, 5), run("a", 0, 2), run("b", 9, 9)]);
    assert_eq!(all, Some(vec![run("a", 0, 5), run("b", 5, 9)]));
    assert_eq!(MessageRun::joined(vec![run("a", 0, 3), run("a", 2, 5)]), None);
    assert_eq!(MessageRun::joined(vec![run("a", 0, 3), run("b", 2, 5)]), None);
    assert_eq!(MessageRun::joined(Vec::new()), Some(Vec::new()));
}

#[test]
fn a_node_is_named_by_its_number() {
    assert_eq!(SummaryId(12).to_string(), "n12");
    for text in ["n12", "12", " N12 "] {
        assert_eq!(text.parse::<SummaryId>().ok(), Some(SummaryId(12)), "{text}");
    }
    for text in ["", "n", "n-1", "+3", "nn1", "12a", "n99999999999999999999999"] {
        let error = text.parse::<SummaryId>().unwrap_err().to_string();
        assert!(error.ends_with("node ids look like `n12`"), "{error}");
    }
}
