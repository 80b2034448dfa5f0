use super::NoticeFilter;
use crate::context_engine::EngineError;

fn failed(detail: &str) -> EngineError {
    EngineError::Unavailable { engine: "window".to_owned(), detail: detail.to_owned() }
}

#[test]
fn a_failure_is_news_once_until_the_engine_works_again() {
    let mut told = NoticeFilter::default();
    assert!(told.is_news(&failed("it ended; it is started again in 9 s")));
    assert!(!told.is_news(&failed("it ended; it is started again in 12 s")));
    assert!(told.is_news(&failed("it hangs")), "another one is");
    told.forget();
    assert!(told.is_news(&failed("it hangs")));
}

#[test]
fn an_engine_that_fails_in_ever_new_ways_is_not_listened_to_for_ever() {
    let mut told = NoticeFilter::default();
    let news = (0..1_000).filter(|count| told.is_news(&failed(&"x".repeat(*count)))).count();
    assert_eq!(news, 16);
}
