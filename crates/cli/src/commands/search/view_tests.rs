//! The output of `search`.

use throughline_store::MatchedWords;

use super::*;
use crate::record::test_samples::{id, ms, noon, plain, widest};

fn hit(text: &str, marks: Vec<(usize, usize)>) -> Hit {
    Hit {
        session: id("20261115_090000_000001"),
        title: Some("Port the parser to the new format, step by step".to_owned()),
        seq: 412,
        message: 9,
        role: "assistant",
        tools: vec!["Bash".to_owned()],
        at_ms: ms("2026-11-15T09:00:00Z"),
        score: 1.5,
        matched: Some(MatchedWords { words: 2, of: 2 }),
        similarity: None,
        snippet: Snippet { text: text.to_owned(), marks, cut_before: true, cut_after: false },
        artifact: None,
        repeats: 0,
        before: Vec::new(),
        after: Vec::new(),
    }
}

fn answer() -> SearchAnswer {
    let plain_hit = hit("the waiting list is full", vec![(4, 11), (12, 16)]);
    let mut around = hit("a waiting list again", vec![(2, 9)]);
    around.title = None;
    around.tools.clear();
    around.repeats = 3;
    around.before = vec![Neighbour { seq: 411, role: "user", text: "What about\nthe list?".to_owned() }];
    around.after = vec![Neighbour { seq: 413, role: "tool", text: "word ".repeat(60) }];
    SearchAnswer { hits: vec![plain_hit, around], ..SearchAnswer::default() }
}

#[test]
fn hits_say_where_they_stand() {
    let page = render(&answer(), &noon(), 80);
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
}

#[test]
fn search_words_are_highlighted_with_colours() {
    assert!(render(&answer(), &noon(), 80).contains("\u{1b}[31m"));
}

#[test]
fn marks_that_do_not_fit_the_passage_do_no_harm() {
    for marks in [vec![(90, 99)], vec![(5, 2)], vec![(4, 11), (0, 3)], vec![(1, 2)]] {
        let answer = SearchAnswer { hits: vec![hit("日本語 text", marks)], ..SearchAnswer::default() };
        assert!(plain(&render(&answer, &noon(), 80)).contains("日本語 text"));
    }
}

#[test]
fn a_long_passage_is_wrapped_and_a_long_word_broken() {
    let text =
        format!("{} {} 日本語のとても長い文章{}", "word ".repeat(30), "x".repeat(200), "。".repeat(90));
    let answer = SearchAnswer { hits: vec![hit(&text, vec![(0, 4), (160, 170)])], ..SearchAnswer::default() };
    for width in [60, 80, 120] {
        let page = render(&answer, &noon(), width);
        assert!(widest(&page) <= width, "{page}");
        let shown: String =
            plain(&page).lines().skip(1).flat_map(str::chars).filter(|c| !" …".contains(*c)).collect();
        assert_eq!(shown, text.replace(' ', ""), "nothing is lost");
    }
}

#[test]
fn a_passage_cannot_drive_the_terminal() {
    let answer = SearchAnswer { hits: vec![hit("a\u{1b}[2Jb", vec![(0, 1)])], ..SearchAnswer::default() };
    assert!(plain(&render(&answer, &noon(), 80)).contains(r"a\u{1b}[2Jb"));
}

#[test]
fn notes_say_how_the_answer_came_about() {
    let mut answer = answer();
    assert_eq!(notes(&answer, 20), Vec::<String>::new());
    answer.as_substring = true;
    answer.ranked_newest = Some(1000);
    insta::assert_snapshot!(notes(&answer, 2).join("\n"));
    assert_eq!(notes(&SearchAnswer::default(), 20), ["nothing was found"]);
}

#[test]
fn hits_with_some_of_the_words_say_how_many() {
    let some = Hit { matched: Some(MatchedWords { words: 3, of: 5 }), ..hit("the list", vec![(4, 8)]) };
    let answer = SearchAnswer { hits: vec![some], ..SearchAnswer::default() };
    assert!(plain(&render(&answer, &noon(), 120)).contains("3 of 5 words"));
    assert_eq!(
        notes(&answer, 20),
        ["no message contains all of these words; passages with some of them are shown"]
    );
    assert_eq!(
        how_to_open(&answer).as_deref(),
        Some(
            "throughline sessions show 20261115_090000_000001 --around 412 prints the first hit with the messages beside it"
        )
    );
}
