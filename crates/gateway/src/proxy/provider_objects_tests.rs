//! Ids in requests and answers.

use proptest::prelude::*;

use super::*;

#[test]
fn references_are_found_wherever_a_provider_looks_for_them() {
    let request = json!({
        "previous_response_id": "resp_1",
        "conversation": { "id": "conv_1" },
        "input": [
            { "role": "user", "content": [{ "type": "input_file", "file_id": "file_1" }] },
            { "type": "item_reference", "id": "msg_1" },
            { "type": "function_call", "arguments": "{\"file_id\":\"not-this\"}" },
            { "type": "function_call_output", "output": [{ "type": "input_image", "file_id": "file_2" }] },
        ],
        "tools": [
            { "type": "file_search", "vector_store_ids": ["vs_1", "vs_2"] },
            { "type": "code_interpreter", "container": { "type": "auto", "file_ids": ["file_3"] } },
            { "type": "function", "parameters": { "properties": { "file_id": { "type": "string" } } } },
        ],
        "metadata": { "file_id": "not-this" },
    });
    let wanted = ["conv_1", "file_1", "file_2", "file_3", "msg_1", "resp_1", "vs_1", "vs_2"];
    assert_eq!(references(&request), wanted);
    let anthropic = json!({ "messages": [
        { "role": "assistant", "content": [{ "type": "tool_use", "input": { "file_id": "not-this" } }] },
        { "role": "user", "content": [{ "type": "document", "source": { "type": "file", "file_id": "file_1" } }] },
    ]});
    assert_eq!(references(&anthropic), ["file_1"]);
}

#[test]
fn escaped_names_are_looked_for_too() {
    assert!(may_refer(br#"{"file\u005fid":"file_1"}"#));
    assert!(!may_refer(br#"{"messages":[{"content":"\u001b[1m"}]}"#));
}

#[test]
fn ids_of_a_stream_are_known_before_the_line_that_names_them_goes_on() {
    let mut watch = CreatedObjects::new("text/event-stream; charset=utf-8");
    let first = watch.take(b"event: response.created\ndata: {\"response\":{\"id\":\"resp_1\"");
    assert_eq!((first.ids.len(), first.bytes.as_slice()), (0, &b"event: response.created\n"[..]));
    let second = watch.take(b"}}\n\ndata: {\"item\":{\"id\":\"msg_1\"}}\n");
    assert_eq!(second.ids, ["resp_1", "msg_1"]);
    assert_eq!(watch.finish(), WatchedChunk::default());
}

proptest! {
    /// However an answer is split into pieces, its bytes are forwarded unchanged and its ids are found.
    #[test]
    fn pieces_do_not_matter(cuts in prop::collection::vec(1usize..40, 0..20), is_stream in any::<bool>()) {
        let (kind, text) = match is_stream {
            true => ("text/event-stream", "data: {\"response\":{\"id\":\"resp_1\"}}\n\ndata: {\"item\":{\"id\":\"rs_2\"}}\n\n"),
            false => ("application/json", "{\"id\":\"resp_1\",\"output\":[{\"id\":\"rs_2\"}]}"),
        };
        let mut watch = CreatedObjects::new(kind);
        let (mut rest, mut out, mut ids) = (text.as_bytes(), Vec::new(), Vec::new());
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            rest = after;
            let watched = watch.take(piece);
            out.extend(watched.bytes);
            ids.extend(watched.ids);
        }
        for watched in [watch.take(rest), watch.finish()] {
            out.extend(watched.bytes);
            ids.extend(watched.ids);
        }
        prop_assert_eq!(out, text.as_bytes());
        prop_assert_eq!(ids, ["resp_1", "rs_2"]);
    }
}
