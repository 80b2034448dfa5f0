//! The evaluation of passages.

use super::*;

fn shown(texts: &[&str]) -> Vec<Shown> {
    texts.iter().enumerate().map(|(seq, text)| Shown { seq: seq as u64, text: (*text).to_owned() }).collect()
}

#[test]
fn passages_answer_together() {
    let answer = Answer::Keys(vec![vec!["pool size".into()], vec!["64".into(), "sixty-four".into()]]);
    assert!(is_answered(&answer, &shown(&["The Pool\n size", "is 64"]), 5, &[]));
    assert!(!is_answered(&answer, &shown(&["The pool size"]), 5, &[]));
}

#[test]
fn words_beyond_the_limit_do_not_count() {
    let long = format!("{} needle", "hay ".repeat(PASSAGE_WORDS));
    let answer = Answer::Keys(vec![vec!["needle".into()]]);
    assert!(!is_answered(&answer, &shown(&[&long]), 5, &[]));
    let full = "hay ".repeat(PASSAGE_WORDS);
    assert!(!is_answered(&answer, &shown(&[&full, &full, "needle"]), 5, &[]));
    assert!(is_answered(&answer, &shown(&[&full, &full, "needle"]), 10, &[]));
}

#[test]
fn generated_questions_are_answered_by_what_was_said() {
    for examined in generated::conversations(2) {
        let Source::Messages(messages) = &examined.source else { panic!("generated as messages") };
        let all: String = messages.iter().map(|(_, text)| format!("{text}\n")).collect();
        for question in &examined.questions {
            let Answer::Keys(keys) = &question.answer else { panic!("answered by keys") };
            let is_said = keys.iter().all(|group| group.iter().any(|key| fold(&all).contains(&fold(key))));
            assert!(is_said, "{}", question.text);
        }
    }
}

#[test]
fn generated_conversations_are_mostly_answered() {
    let figures = examine(&generated::conversations(3), Records::OneEach, false, None).unwrap();
    let of = |name: &str| figures.columns.iter().find(|(column, _)| *column == name).unwrap().1;
    assert!(of("search")[1] * 10 >= figures.questions * 7, "{:?} of {}", of("search"), figures.questions);
    assert!(of("search")[1] >= of("the newest windows")[1]);
}

#[test]
fn generated_dialogues_have_short_turns_and_facts_that_are_said_once() {
    for examined in dialogue::conversations(2) {
        let Source::Messages(messages) = &examined.source else { panic!("generated as messages") };
        assert!((486..=702).contains(&messages.len()), "{}", messages.len());
        let words: usize = messages.iter().map(|(_, text)| text.split_whitespace().count()).sum();
        assert!((15..30).contains(&(words / messages.len())), "{}", words / messages.len());
        assert!(examined.questions.len() >= 25, "{}", examined.questions.len());
        for question in &examined.questions {
            let Answer::Keys(keys) = &question.answer else { panic!("answered by keys") };
            let holding = messages.iter().filter(|(_, text)| text.contains(&keys[0][0])).count();
            assert_eq!(holding, 1, "{}: {keys:?}", question.text);
        }
    }
}

#[test]
fn questions_about_short_turns_are_answered_as_often_as_by_plain_ranking() {
    let figures = examine(&dialogue::conversations(2), Records::OneEach, false, None).unwrap();
    let of = |name: &str| figures.columns.iter().find(|(column, _)| *column == name).unwrap().1;
    for plain in ["BM25, windows of 80 words, stems", "BM25, windows across messages, stems"] {
        assert!(of("search")[1] >= of(plain)[1], "{:?}, {plain} {:?}", of("search"), of(plain));
    }
    assert!(of("search")[1] > of("the newest windows")[1]);
}

#[test]
fn public_formats_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let locomo = folder.path().join("locomo10.json");
    let sample = serde_json::json!([{
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bo", "session_1_date_time": "1 May",
            "session_1": [
                { "speaker": "Ann", "dia_id": "D1:1", "text": "I bought a red canoe." },
                { "speaker": "Bo", "dia_id": "D1:2", "text": "Nice." }],
            "session_2": [{ "speaker": "Ann", "dia_id": "D2:1", "text": "It leaks." }] },
        "qa": [{ "question": "What did Ann buy?", "answer": "a canoe", "evidence": ["D1:1"], "category": 1 },
               { "question": "Nobody knows?", "evidence": [], "category": 5 }]
    }]);
    std::fs::write(&locomo, sample.to_string()).unwrap();
    assert_eq!(public::format_of(folder.path()), Some(public::PublicFormat::Locomo));
    let read = public::locomo(&locomo).unwrap();
    assert_eq!((read.len(), read[0].questions.len()), (1, 1));
    let Source::Messages(messages) = &read[0].source else { panic!("messages") };
    assert_eq!(messages.len(), 3);

    let chat = folder.path().join("100K/1");
    std::fs::create_dir_all(&chat).unwrap();
    let turns = serde_json::json!([{ "batch_number": 1, "turns": [[
        { "role": "user", "id": 0, "content": "My server is in Oslo." },
        { "role": "assistant", "id": 1, "content": "Noted." }]] }]);
    std::fs::write(chat.join("chat.json"), turns.to_string()).unwrap();
    let probes = serde_json::json!({ "information_extraction": [
        { "question": "Where is the server?", "answer": "Oslo", "source_chat_ids": [0] },
        { "question": "And the other?", "answer": "none", "source_chat_ids": { "first": [1] } }] });
    std::fs::write(chat.join("probing_questions.json"), probes.to_string()).unwrap();
    assert_eq!(public::format_of(&folder.path().join("100K")), Some(public::PublicFormat::Beam));
    let read = public::beam(folder.path()).unwrap();
    assert_eq!((read.len(), read[0].questions.len()), (1, 2));
    // The shortened form of a conversation is read instead.
    let short = serde_json::json!([{ "batch_number": 1, "turns": [[
        { "role": "user", "id": 0, "content": "My server is in Oslo. ->-> 1,1" }]] }]);
    std::fs::write(chat.join("chat_trunecated.json"), short.to_string()).unwrap();
    let read = public::beam(folder.path()).unwrap();
    assert_eq!((read.len(), read[0].questions.len()), (1, 1));
}
