//! Tests of streams in the Responses format.

use throughline_transcript::WireFormat::Responses;

use crate::answer::{AnswerPart, Seal, StopReason, ToolCall};
use crate::stream::tests::{messages, run};

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt","output":[],"error":null,"usage":null}}"#;
const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"**Plan**"}]}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[{"type":"url_citation"}],"logprobs":[],"text":"Hi there"}]}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_1","name":"shell"}"#;

const EVENTS: &str = r#"
    {"type":"response.in_progress","response":{"id":"resp_1","output":[]}}
    {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"","summary":[]}}
    {"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
    {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Pl"}
    {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"an**"}
    {"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"**Plan**"}
    {"type":"response.output_item.done","output_index":0,"item":REASONING}
    {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
    {"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}
    {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hi "}
    {"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":1,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation"}}
    {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"there"}
    {"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Hi there"}
    {"type":"response.content_part.done","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":"Hi there"}}
    {"type":"response.output_item.done","output_index":1,"item":MESSAGE}
    {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"shell"}}
    {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"a\""}
    {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":":1}"}
    {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"a\":1}"}
    {"type":"response.output_item.done","output_index":2,"item":CALL}"#;

fn events() -> String {
    let events = EVENTS.replace("REASONING", REASONING).replace("MESSAGE", MESSAGE).replace("CALL", CALL);
    format!("{CREATED}\n{events}")
}

fn end(kind: &str, output: &str, rest: &str) -> String {
    format!(
        "{{\"type\":\"response.{kind}\",\"response\":{{\"id\":\"resp_1\",\"object\":\"response\",\"model\":\"gpt\",\"instructions\":\"long\",\"service_tier\":\"flex\",\"output\":[{output}]{rest}}}}}"
    )
}

const USAGE: &str = r#","status":"completed","usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":4},"output_tokens":8,"output_tokens_details":{"reasoning_tokens":3}}"#;
const WORDS: [&str; 8] = [
    "reasoning **Pl",
    "reasoning an**",
    "text Hi ",
    "text there",
    "call 0 call_1 shell",
    "arguments 0 {\"a\"",
    "arguments 0 :1}",
    "end 0",
];

#[test]
fn the_last_event_is_the_answer() {
    let other = MESSAGE.replace("Hi there", "Hi there, really");
    let run =
        run(Responses, &(events() + "\n" + &end("completed", &[REASONING, &other, CALL].join(","), USAGE)));
    assert_eq!(run.words(), WORDS);
    let answer = run.answer();
    assert_eq!(messages(&answer), [REASONING, &other, CALL]);
    assert_eq!(
        answer.parts,
        [
            AnswerPart::Reasoning { text: "**Plan**".into(), seal: Seal::Encrypted("gAAA".into()) },
            AnswerPart::Text("Hi there, really".into()),
            AnswerPart::ToolCall(ToolCall {
                id: "call_1".into(),
                name: "shell".into(),
                arguments: "{\"a\":1}".into()
            }),
        ]
    );
    assert_eq!((answer.stop.reason, answer.stop.raw.as_deref()), (StopReason::ToolCalls, Some("completed")));
    assert_eq!(answer.usage().unwrap().unwrap().usage.reasoning, 3);
    assert_eq!(answer.extras, [("service_tier".to_owned(), "\"flex\"".to_owned())]);
}

#[test]
fn an_empty_last_event_leaves_it_to_the_items() {
    let run = run(Responses, &(events() + "\n" + &end("completed", "", USAGE)));
    assert_eq!(run.words(), WORDS);
    let answer = run.answer();
    assert_eq!(messages(&answer), [REASONING, MESSAGE, CALL]);
    assert_eq!(answer.usage().unwrap().unwrap().usage.prompt(), 20);
}

#[test]
fn an_answer_that_is_incomplete_says_why() {
    let why = r#","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#;
    let answer = run(Responses, &end("incomplete", MESSAGE, why)).answer();
    assert_eq!(
        (answer.stop.reason, answer.stop.raw.as_deref()),
        (StopReason::OutputLimit, Some("max_output_tokens"))
    );
    let why = r#","status":"incomplete","incomplete_details":{"reason":"content_filter"}"#;
    assert_eq!(run(Responses, &end("incomplete", "", why)).answer().stop.reason, StopReason::Refused);
}

#[test]
fn a_server_without_deltas_is_shown_all_the_same() {
    let done = |index: usize, item: &str| {
        format!("{{\"type\":\"response.output_item.done\",\"output_index\":{index},\"item\":{item}}}\n")
    };
    let expected =
        ["reasoning **Plan**", "text Hi there", "call 0 call_1 shell", "arguments 0 {\"a\":1}", "end 0"];
    let items_only = done(0, REASONING) + &done(1, MESSAGE) + &done(2, CALL) + &end("completed", "", USAGE);
    assert_eq!(run(Responses, &items_only).words(), expected);
    let last_only = end("completed", &[REASONING, MESSAGE, CALL].join(","), USAGE);
    let run_last = run(Responses, &last_only);
    assert_eq!(run_last.words(), expected);
    assert_eq!(run_last.answer().messages.len(), 3);
}

#[test]
fn places_count_and_ids_do_not() {
    let renamed = events().replace("\"item_id\":\"msg_1\"", "\"item_id\":\"changed\"");
    assert_eq!(run(Responses, &(renamed + "\n" + &end("completed", "", USAGE))).words(), WORDS);
    // Without a position the id identifies an item, and without both the order does.
    let unplaced: String =
        (0..3).fold(events(), |events, index| events.replace(&format!("\"output_index\":{index},"), ""));
    let run_unplaced = run(Responses, &(unplaced.clone() + "\n" + &end("completed", "", USAGE)));
    assert_eq!(run_unplaced.words(), WORDS);
    assert_eq!(messages(&run_unplaced.answer()), [REASONING, MESSAGE, CALL]);
    let nameless = ["rs_1", "msg_1", "fc_1"]
        .iter()
        .fold(unplaced, |events, id| events.replace(&format!("\"item_id\":\"{id}\","), ""));
    let run_nameless = run(Responses, &(nameless + "\n" + &end("completed", "", USAGE)));
    assert_eq!(run_nameless.words(), WORDS);
    assert_eq!(messages(&run_nameless.answer()), [REASONING, MESSAGE, CALL]);
}

#[test]
fn a_marker_ends_a_stream_whose_items_are_all_there() {
    let answer = run(Responses, &(events() + "\n[DONE]")).answer();
    assert_eq!(messages(&answer), [REASONING, MESSAGE, CALL]);
    assert_eq!(answer.stop.reason, StopReason::ToolCalls);
    assert!(run(Responses, &(CREATED.to_owned() + "\n[DONE]")).result.is_err());
}

#[test]
fn what_was_open_when_the_stream_broke() {
    let all = events();
    let until = |marker: &str| {
        let at = all.find(marker).unwrap();
        let end = at + all[at..].find('\n').unwrap_or(all.len() - at);
        run(Responses, &all[..end]).interrupted()
    };
    let in_reasoning = until("\"delta\":\"an**\"");
    assert!(in_reasoning.received.messages.is_empty());
    assert_eq!(
        in_reasoning.unfinished,
        [AnswerPart::Reasoning { text: "**Plan**".into(), seal: Seal::None }]
    );
    let in_text = until("\"delta\":\"there\"");
    assert_eq!(
        messages(&in_text.received),
        [
            REASONING,
            r#"{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","annotations":[{"type":"url_citation"}],"text":"Hi there"}]}"#
        ]
    );
    let in_call = until("\"delta\":\"{\\\"a\\\"\"");
    assert_eq!(messages(&in_call.received), [REASONING, MESSAGE]);
    let cut = ToolCall { id: "call_1".into(), name: "shell".into(), arguments: "{\"a\"".into() };
    assert_eq!(in_call.unfinished, [AnswerPart::ToolCall(cut)]);
    let before_text = until("\"part\":{\"type\":\"output_text\",\"annotations\":[],\"text\":\"\"}");
    assert_eq!(messages(&before_text.received), [REASONING], "a message without a word is none");
}

#[test]
fn other_items_and_tools() {
    let search = r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}"#;
    let custom = r#"{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_2","name":"apply_patch","input":"*** Begin"}"#;
    let shell = r#"{"id":"lsh","type":"local_shell_call","call_id":"call_3","action":{"type":"exec","command":["ls"]}}"#;
    let refusal =
        r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}"#;
    let tomorrow = r#"{"type":"tomorrow","x":{"y":[1.50]}}"#;
    let stream = format!(
        r#"{{"type":"response.output_item.added","output_index":0,"item":{{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":""}}}}
           {{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ctc_1","delta":"*** Be"}}
           {{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ctc_1","delta":"gin"}}
           {{"type":"response.output_item.done","output_index":0,"item":{custom}}}
           {{"type":"response.output_item.added","output_index":1,"item":{{"id":"m","type":"message","role":"assistant","content":[]}}}}
           {{"type":"response.refusal.delta","output_index":1,"content_index":0,"delta":"no"}}
           {{"type":"response.output_item.done","output_index":1,"item":{refusal}}}
           {}"#,
        end("completed", &[custom, refusal, search, shell, tomorrow].join(","), USAGE)
    );
    let run = run(Responses, &stream);
    assert_eq!(
        run.words(),
        ["call 0 call_2 apply_patch", "arguments 0 *** Be", "arguments 0 gin", "end 0", "refusal no"]
    );
    let answer = run.answer();
    assert_eq!(messages(&answer), [custom, refusal, search, shell, tomorrow]);
    let calls: Vec<_> = answer
        .tool_calls()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("call_2", "apply_patch", "*** Begin"),
            ("call_3", "local_shell_call", r#"{"type":"exec","command":["ls"]}"#)
        ]
    );
    assert!(
        answer.parts.contains(&AnswerPart::Other { kind: "web_search_call".into(), json: search.into() })
    );
    assert!(answer.parts.contains(&AnswerPart::Other { kind: "tomorrow".into(), json: tomorrow.into() }));
    assert_eq!(answer.refusal().as_deref(), Some("no"));
}

#[test]
fn reasoning_of_open_models_is_in_the_content() {
    let item = r#"{"id":"r","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"because"}]}"#;
    let stream = format!(
        r#"{{"type":"response.output_item.added","output_index":0,"item":{{"id":"r","type":"reasoning","summary":[],"content":[]}}}}
           {{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"be"}}
           {{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"cause"}}
           {{"type":"response.output_item.done","output_index":0,"item":{item}}}
           {}"#,
        end("completed", item, USAGE)
    );
    let run = run(Responses, &stream);
    assert_eq!(run.words(), ["reasoning be", "reasoning cause"]);
    assert_eq!(run.answer().reasoning_text(), "because");
}
