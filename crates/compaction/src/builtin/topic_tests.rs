//! What is about a topic and what is not.

use super::*;

#[track_caller]
fn assert_about(topic: &str, yes: &[&str], no: &[&str]) {
    let topic = Topic::new(Some(topic));
    for text in yes {
        assert!(topic.matches(text), "{topic:?} should match {text:?}");
    }
    for text in no {
        assert!(!topic.matches(text), "{topic:?} should not match {text:?}");
    }
}

#[test]
fn topics_match_words_stems_and_parts_of_names() {
    assert_about(
        "retry budget",
        &["The retries are too many.", "src/net/retry_budget.rs", "RetryBudget::new", "budgets", "retrying"],
        &["the network", "a bud", ""],
    );
    assert_about("pyproject", &["pyproject.toml", "edited the pyproject file"], &["project", "python"]);
    assert_about("auth", &["OAuth", "authentication", "src/auth/mod.rs"], &["path/a.rs", "haut"]);
    assert_about("images", &["image_scaler", "ImageCache", "an image"], &["mirage", "a.rs"]);
    assert_about("cropping", &["crop the picture", "crops", "cropped"], &["cro"]);
}

#[test]
fn identifiers_with_numbers_match_as_a_whole() {
    assert_about(
        "case_17",
        &["case_17", "Case17", "run case-17 again"],
        &["case_18", "case_170", "17 cases"],
    );
    assert_about("src/api.rs", &["/srv/app/src/api.rs:12"], &["src/apis/b.py", "api"]);
}

#[test]
fn one_rare_word_of_several_is_enough_and_a_common_one_is_not() {
    let mut topic = Topic::new(Some("the tokenizer of the project"));
    let common = ["project a", "project b", "project c", "project d", "the tokenizer"];
    topic.weigh(common.into_iter());
    assert!(topic.matches("src/tokenizer.rs"));
    assert!(!topic.matches("this project"));
}

#[test]
fn words_of_other_scripts_match_within_a_text() {
    assert_about("数据库", &["我们改了数据库的结构"], &["别的"]);
    assert_about("Überweisung", &["eine Überweisung", "überweisungen"], &["weisung"]);
    assert!(!Topic::new(Some("the and")).is_set() && !Topic::new(None).is_set());
}
