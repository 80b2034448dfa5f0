//! Events keep their order.

use throughline_provider::Chunk;

use super::*;

fn text(text: &str) -> AnswerPiece {
    AnswerPiece::Chunk(Chunk { raw: Vec::new().into(), deltas: vec![Delta::Text(text.to_owned())] })
}

#[tokio::test]
async fn a_remark_waits_for_the_words_that_came_before_it() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&told);
    let in_order = OrderedEvents::new(Arc::new(move |event| {
        let words = match event {
            AgentEvent::Text(text) => text,
            AgentEvent::Engine(_) => "(remark)".to_owned(),
            _ => String::new(),
        };
        seen.lock().unwrap().push(words);
    }));
    in_order.tell(EngineEvent::PreparationStarted);
    let sender = in_order.begin();
    sender.send(text("half a ")).await.unwrap();
    sender.send(text("sentence")).await.unwrap();
    in_order.tell(EngineEvent::PreparationStarted);
    sender.send(text(" and more")).await.unwrap();
    drop(sender);
    in_order.show_coming().await;
    assert_eq!(*told.lock().unwrap(), ["(remark)", "half a ", "sentence", "(remark)", " and more"]);
}
