//! Passages that are sent along with what a person says after a compaction.

use throughline_engine::{AutomaticRecall, CallPolicy, SessionSetup};
use throughline_transcript::{Message, WireFormat};

use crate::managed::support::{Stage, saying, talk, talk_until_compacted, words};

const RECALLED_TAG: &str = Message::RECALLED_TAG;
const FACT: &str = "Remember: the warehouse gateway listens on port 48213 behind the blue proxy.";
const QUESTION: &str = "Which port does the warehouse gateway listen on behind the proxy?";

fn stage(wire_format: WireFormat, recall: Option<AutomaticRecall>) -> Stage {
    let mut stage = Stage::new(wire_format, 12_000);
    let policy = CallPolicy { recall, ..stage.setup.policy };
    stage.setup = SessionSetup { policy, ..stage.setup };
    stage
}

#[tokio::test]
async fn passages_go_before_the_words_once_and_stay() {
    for wire_format in WireFormat::ALL {
        let stage = stage(wire_format, Some(AutomaticRecall { tokens: 400 }));
        let mut session = stage.open().await;
        for turn in 0..2 {
            talk(&stage, &mut session, turn).await;
        }
        session.call(saying(wire_format, &format!("{FACT} {}", words(3, 60)))).await.unwrap();
        assert!(!stage.script.last_body().contains(RECALLED_TAG), "{wire_format}: nothing was compacted yet");
        talk_until_compacted(&stage, &mut session, 2).await;
        session.call(saying(wire_format, QUESTION)).await.unwrap();
        let first = stage.script.last_body();
        let block = first.rfind(&format!("<{RECALLED_TAG}>")).unwrap();
        let end = first.rfind(&format!("</{RECALLED_TAG}>")).unwrap();
        assert!(first[block..end].contains("48213"), "{wire_format}: {}", &first[block..end]);
        assert!(first[end..].contains(QUESTION), "{wire_format}: the words come after it");
        // The record has the message as it was said.
        let said = stage.transcript();
        let said = said.iter().find(|json| json.contains(QUESTION)).unwrap();
        assert!(!said.contains(RECALLED_TAG), "{wire_format}: {said}");
        // What was sent is sent again byte for byte, also by a process that takes the conversation up.
        let sent = &first[block..end];
        session.call(saying(wire_format, "Thank you.")).await.unwrap();
        assert!(stage.script.last_body().contains(sent), "{wire_format}");
        drop(session);
        let mut again = stage.reopen().await;
        again.call(saying(wire_format, "Go on.")).await.unwrap();
        assert!(stage.script.last_body().contains(sent), "{wire_format}");
    }
}

#[tokio::test]
async fn nothing_is_sent_along_unless_it_is_wanted_and_fits() {
    for (recall, question) in [
        (None, QUESTION),
        (Some(AutomaticRecall { tokens: 5 }), QUESTION),
        (Some(AutomaticRecall { tokens: 400 }), "Thanks, please proceed."),
    ] {
        let stage = stage(WireFormat::Anthropic, recall);
        let mut session = stage.open().await;
        session.call(saying(WireFormat::Anthropic, FACT)).await.unwrap();
        talk_until_compacted(&stage, &mut session, 1).await;
        session.call(saying(WireFormat::Anthropic, question)).await.unwrap();
        assert!(!stage.script.last_body().contains(RECALLED_TAG), "{recall:?} {question}");
    }
}
