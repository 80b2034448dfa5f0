//! Nobody notices that it is there: bytes go through as they are, in both directions.

use throughline_testkit::{Pace, Reply, Script};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::stage::{MODEL, Stage, path_of};

/// A request with odd spacing, numbers, escapes and members nobody knows.
fn odd_body(wire_format: WireFormat, streamed: bool) -> String {
    let stream = if streamed { "true" } else { "false" };
    match wire_format {
        WireFormat::Chat => format!(
            "{{ \"model\" : \"{MODEL}\", \"stream\":{stream},\n \"temperature\": 1.0e0, \"unknown\": {{\"b\":1,\"a\":12345678901234567890}}, \"messages\": [ {{\"role\":\"system\",\"content\":\"Be brief.\"}} ,{{\"role\":\"user\",\"content\":\"caf\\u00e9 \\ud83d\\ude00\", \"x\": [ ]}} ] }}"
        ),
        WireFormat::Responses => format!(
            "{{\"model\":\"{MODEL}\",\"input\":[ {{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"h\\u0069\"}}]}} ],\"store\":false, \"stream\": {stream},\"big\":1.10}}"
        ),
        WireFormat::Anthropic => format!(
            "{{\"max_tokens\": 1024,\"stream\":{stream},\"model\":\"{MODEL}\",\"metadata\":{{\"user_id\":\"u\"}},\"system\":[{{\"type\":\"text\",\"text\":\"Be brief.\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"messages\":[{{\"content\":[{{\"text\":\"\\u00e9\",\"type\":\"text\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"role\":\"user\"}}],\"thinking\":{{\"type\":\"disabled\"}}}}"
        ),
    }
}

fn answer_with_everything() -> AnswerDraft {
    let call = |id: &str| {
        AnswerPart::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "read_file".to_owned(),
            arguments: "{\"path\":\"süß/日本.rs\"}".to_owned(),
        })
    };
    let parts = vec![AnswerPart::Text("Two files 😀.".to_owned()), call("call_1"), call("call_2")];
    AnswerDraft { parts, ..AnswerDraft::text("") }
}

#[tokio::test]
async fn requests_and_answers_are_the_same_bytes_with_and_without_it() {
    for wire_format in WireFormat::ALL {
        for streamed in [false, true] {
            let reply = Reply::exactly(answer_with_everything());
            let dripped = reply.clone().pace(Pace::Drip { bytes: 7, pause: std::time::Duration::ZERO });
            let stage = Stage::new(None, Script::always(if streamed { dripped } else { reply })).await;
            let body = odd_body(wire_format, streamed);
            let direct = stage.post(&stage.directly_at(path_of(wire_format)), &body).await;
            let through = stage.ask(wire_format, &body).await;
            assert_eq!(through.status(), direct.status());
            assert_eq!(through.headers().get("content-type"), direct.headers().get("content-type"));
            assert_eq!(
                through.bytes().await.unwrap(),
                direct.bytes().await.unwrap(),
                "{wire_format} {streamed}"
            );
            let asked = stage.upstream.requests();
            assert_eq!(asked[0].text(), asked[1].text(), "{wire_format} {streamed}");
            assert_eq!(asked[1].header("authorization"), Some("Bearer sk-of-the-client"));
        }
    }
}

#[tokio::test]
async fn a_client_that_words_its_history_anew_is_sent_as_it_words_it() {
    let stage = Stage::new(None, Script::always(Reply::text("Fine."))).await;
    let first =
        format!("{{\"model\":\"{MODEL}\",\"messages\":[{{\"role\":\"user\",\"content\":\"One.\"}}]}}");
    stage.ask(WireFormat::Chat, &first).await;
    // The answer comes back in another notation, the first message with a member more.
    let second = format!(
        "{{\"model\":\"{MODEL}\",\"messages\":[{{\"role\":\"user\",\"content\":\"One.\",\"n\":1}},{{\"content\":\"Fine.\",\"role\":\"assistant\",\"refusal\":null}},{{\"role\":\"user\",\"content\":\"Two.\"}}]}}"
    );
    stage.ask(WireFormat::Chat, &second).await;
    assert_eq!(stage.upstream.calls()[1].text(), second);
    assert_eq!(stage.opened(), [None]);
}

#[tokio::test]
async fn what_it_does_not_know_goes_through_untouched() {
    let stage = Stage::new(Some(100_000), Script::always(Reply::text("ok"))).await;
    let direct = stage.http.get(stage.directly_at("/v1/models")).send().await.unwrap();
    let through = stage.http.get(stage.at("/v1/models")).send().await.unwrap();
    assert_eq!(through.status(), 200);
    assert_eq!(through.text().await.unwrap(), direct.text().await.unwrap());
    assert_eq!(stage.http.head(stage.at("/")).send().await.unwrap().status(), 200);
    assert_eq!(stage.http.get(stage.at("/healthz")).send().await.unwrap().text().await.unwrap(), "ok\n");
}
