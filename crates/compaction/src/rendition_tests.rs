//! Tests that a rendition changes one thing and no other byte.

use throughline_transcript::{Groups, decode_message_text};

use super::*;
use crate::plan::Earlier;

/// Prunes a list whose head is everything before the last message.
fn pruned(json: &[&str]) -> (Vec<Option<Rendition>>, PruneCounts) {
    let messages: Vec<Message> =
        json.iter().map(|text| decode_message_text((*text).to_owned()).unwrap()).collect();
    let groups = Groups::of(&messages);
    let ledger = Ledger::of(&messages, &groups, None);
    let end = messages.len() - 1;
    let plan = Plan {
        head: 0..end,
        middle: end..end,
        tail: end..end + 1,
        pinned: None,
        earlier: Earlier::default(),
        summary_role: Role::User,
        acknowledge: false,
    };
    let (mut renditions, counts) = prune(&messages, &plan, &ledger, PruneRules::default());
    let written = (0..messages.len()).map(|at| renditions.remove(&at)).collect();
    (written, counts)
}

/// The rendition of one message of a list, which must be valid JSON.
#[track_caller]
fn rendition(json: &[&str], at: usize) -> Rendition {
    let found = pruned(json).0[at].clone().expect("the message was not changed");
    serde_json::from_str::<serde_json::Value>(&found.json).expect("not JSON any more");
    found
}

const LAST: &str = r#"{"role":"user","content":"go on"}"#;

fn long(text: &str) -> String {
    text.repeat(300)
}

#[test]
fn an_old_result_becomes_one_line_on_every_wire() {
    let output = long("line\\n");
    let chat_call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"make all\"}"}}]}"#;
    let responses_call = r#"{"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"make all\"]}"}"#;
    let anthropic_call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make all"}}]}"#;
    let line = |tool: &str| format!("\"[{tool}] ran `make all` -> unknown, 300 lines\"");
    let cases = [
        (
            chat_call,
            "terminal",
            r#"{"role":"tool", "tool_call_id":"c1","x":1.0e2,"content":VALUE,"name":"terminal"}"#,
        ),
        (responses_call, "shell", r#"{ "type":"function_call_output","call_id":"c1","output":VALUE }"#),
        (
            anthropic_call,
            "Bash",
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":VALUE,"cache_control":{"type":"ephemeral"}},{"type":"text","text":"and?"}]}"#,
        ),
    ];
    for (call, tool, frame) in cases {
        let as_text = format!("\"{output}\"");
        let kind = if tool == "shell" { "input_text" } else { "text" };
        let as_blocks = format!(r#"[ {{"type":"{kind}","text":"{output}"}} ]"#);
        for value in [as_text, as_blocks] {
            let found = rendition(&[call, &frame.replace("VALUE", &value), LAST], 1);
            assert_eq!(found.kinds, [RenditionKind::Pruned]);
            // Only the value was changed: spaces, order, numbers and unknown members are the same.
            assert_eq!(found.json, frame.replace("VALUE", &line(tool)));
        }
    }
}

#[test]
fn each_result_of_a_message_has_its_own_fate() {
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"a.rs"}},{"type":"tool_use","id":"b","name":"Read","input":{"file_path":"b.rs"}},{"type":"tool_use","id":"c","name":"Read","input":{"file_path":"c.rs"}}]}"#;
    let result =
        |id: &str, text: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}"#);
    let results = format!(
        r#"{{"role":"user","content":[{},{},{}]}}"#,
        result("a", &long("a")),
        result("b", "short"),
        result("c", &long("c"))
    );
    let found = rendition(&[call, &results, LAST], 1);
    assert_eq!(
        found.json,
        format!(
            r#"{{"role":"user","content":[{},{},{}]}}"#,
            result("a", "[Read] read a.rs -> 300 chars"),
            result("b", "short"),
            result("c", "[Read] read c.rs -> 300 chars")
        )
    );
}

#[test]
fn only_results_over_the_limit_are_pruned_and_escapes_do_not_count() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"x","arguments":"{}"}}]}"#;
    let result = |text: &str| format!(r#"{{"role":"tool","tool_call_id":"c1","content":"{text}"}}"#);
    for (text, changed) in [
        ("a".repeat(200), false),
        ("a".repeat(201), true),
        ("\\n".repeat(200), false),
        ("\\u00e9".repeat(200), false),
        ("é".repeat(200), false),
        ("é".repeat(201), true),
        (String::new(), false),
    ] {
        let (written, counts) = pruned(&[call, &result(&text), LAST]);
        assert_eq!(written[1].is_some(), changed, "{text}");
        assert_eq!(counts.results, usize::from(changed));
    }
}

#[test]
fn a_result_nobody_asked_for_says_that_it_was_cleared() {
    let orphan = format!(r#"{{"role":"tool","tool_call_id":"nobody","content":"{}"}}"#, long("x"));
    let found = rendition(&[&orphan, LAST], 0);
    assert!(found.json.contains(CLEARED), "{}", found.json);
}

#[test]
fn a_repeated_result_points_to_the_earliest() {
    let call = |id: &str| {
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"a.rs\"}}"}}}}]}}"#
        )
    };
    let result =
        |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{}"}}"#, long("let a;\\n"));
    let list = [call("1"), result("1"), call("2"), result("2"), call("3"), result("3"), LAST.to_owned()];
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    let (written, counts) = pruned(&list);
    assert_eq!((counts.results, counts.duplicates), (1, 2));
    assert!(written[1].as_ref().unwrap().json.contains("[read_file] read a.rs"));
    for at in [3, 5] {
        let json = &written[at].as_ref().unwrap().json;
        assert!(json.contains("\"[Same output as the result in message 1]\""), "{json}");
    }
}

#[test]
fn long_arguments_are_cut_and_stay_json_of_the_same_shape() {
    let text = "fn main() {}\n".repeat(60);
    let inner = serde_json::json!({
        "path": "src/main.rs", "content": text, "n": 1, "list": ["short", text], "deep": {"x": {"y": text}},
    });
    let arguments = inner.to_string().replace("\"n\":1", "\"n\": 1.0e2");
    let chat = format!(
        r#"{{"role":"assistant","content":"","tool_calls":[{{"id":"c1","type":"function","function":{{"name":"write_file","arguments":{}}}}}],"z":0.10}}"#,
        compact_json_string(&arguments)
    );
    let responses = format!(
        r#"{{"type":"function_call","call_id":"c1","name":"write_file","arguments":{},"z":0.10}}"#,
        compact_json_string(&arguments)
    );
    let anthropic = format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"so"}},{{"type":"tool_use","id":"c1","name":"Write","input":{arguments}}}],"z":0.10}}"#
    );
    for json in [chat, responses, anthropic] {
        let found = rendition(&[&json, LAST], 0);
        assert_eq!(found.kinds, [RenditionKind::Trimmed]);
        assert!(found.json.ends_with(r#""z":0.10}"#), "{}", found.json);
        let message = decode_message_text(found.json).unwrap();
        let (_, _, arguments) = message.calls().next().unwrap();
        let cut = message.arguments_text(arguments);
        assert!(cut.contains("1.0e2"), "numbers are as they were: {cut}");
        let value: serde_json::Value = serde_json::from_str(&cut).unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["path", "content", "n", "list", "deep"]);
        let expected = format!("{}…[610 more characters]", &text[..170]);
        assert_eq!(value["path"], "src/main.rs");
        assert_eq!(value["content"], expected.as_str());
        assert_eq!(value["list"], serde_json::json!(["short", expected]));
        assert_eq!(value["deep"]["x"]["y"], expected.as_str());
    }
}

#[test]
fn arguments_are_cut_between_characters_and_never_made_longer() {
    let call = |text: &str| {
        let arguments = serde_json::json!({ "text": text }).to_string();
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"x","arguments":{}}}}}]}}"#,
            compact_json_string(&arguments)
        )
    };
    for unit in ["é", "数", "👩‍🔬", "\u{0}", "\\", "\"", "\n"] {
        let found = rendition(&[&call(&unit.repeat(700)), LAST], 0);
        decode_message_text(found.json).unwrap();
    }
    for (chars, changed) in [(200, false), (201, false), (230, false), (231, true)] {
        assert_eq!(pruned(&[&call(&"a".repeat(chars)), LAST]).0[0].is_some(), changed, "{chars}");
    }
}

#[test]
fn what_was_written_once_is_not_written_again() {
    let command = "make ".repeat(60);
    let arguments = serde_json::json!({ "command": command, "note": "n".repeat(900) }).to_string();
    let call = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"terminal","arguments":{}}}}}]}}"#,
        compact_json_string(&arguments)
    );
    let result =
        format!(r#"{{"role":"tool","tool_call_id":"c1","content":"Exit code 2\n{}"}}"#, long("line\\n"));
    let (written, _) = pruned(&[&call, &result, LAST]);
    let again: Vec<&str> = written[..2].iter().map(|found| found.as_ref().unwrap().json.as_str()).collect();
    let line = decode_message_text(again[1].to_owned()).unwrap();
    assert!(line.json().contains("-> exit 2, 301 lines") && line.json().contains('…'), "{}", line.json());
    assert_eq!(pruned(&[again[0], again[1], LAST]).0, [None, None, None]);
}

#[test]
fn arguments_that_are_not_json_are_left_alone() {
    let patch = format!("*** Begin Patch\n{}", "+ line\n".repeat(80));
    let free = format!(
        r#"{{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":{}}}"#,
        compact_json_string(&patch)
    );
    let broken = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"x","arguments":"{{\"a\": \"{}"}}}}]}}"#,
        long("cut off ")
    );
    for json in [free, broken] {
        assert_eq!(pruned(&[&json, LAST]).0[0], None, "{json}");
    }
}

#[test]
fn pictures_before_the_newest_of_a_person_become_labels() {
    let chat = |url: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"see"}},{{"type":"image_url","image_url":{{"url":"{url}","detail":"low"}}}}]}}"#
        )
    };
    let data = "data:image/png;base64,iVBORw0KGgo=";
    let list = [chat(data), chat("https://a.example/p.png"), chat(data), chat(data), LAST.to_owned()];
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    let (written, counts) = pruned(&list);
    assert_eq!(counts.images, 3);
    assert_eq!(
        written[0].as_ref().unwrap().json,
        r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"text","text":"[image removed to save context space]"}]}"#
    );
    assert!(written[1].as_ref().unwrap().json.contains(r#""text":"[image: https://a.example/p.png]""#));
    assert!(written[2].is_some() && written[3].is_none(), "the newest stays");

    let responses = r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}"#;
    let found = rendition(&[responses, responses, LAST], 0);
    assert_eq!(
        found.json,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"[image removed to save context space]"}]}"#
    );
    let anthropic = r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.example/q.png"}},{"type":"text","text":"and this"}]}"#;
    let found = rendition(&[anthropic, anthropic, LAST], 0);
    assert_eq!(found.kinds, [RenditionKind::ImageLabel]);
    assert_eq!(
        found.json,
        r#"{"role":"user","content":[{"type":"text","text":"[image: https://a.example/q.png]"},{"type":"text","text":"and this"}]}"#
    );
    // A single image is the newest.
    assert_eq!(pruned(&[anthropic, LAST]).0[0], None);
}

#[test]
fn a_picture_in_a_result_goes_with_the_result_and_unknown_content_stays() {
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"screenshot","input":{}}]}"#;
    let shot = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAUA"}}]}]}"#;
    let (written, counts) = pruned(&[call, shot, LAST]);
    assert_eq!((counts.results, counts.images), (1, 1));
    assert!(written[1].as_ref().unwrap().json.contains("\"content\":\"[screenshot] called"), "{written:?}");
    let unknown = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{{"type":"x_document","data":"{}"}}]}}]}}"#,
        long("d")
    );
    assert_eq!(pruned(&[call, &unknown, LAST]).0[1], None);
}

#[test]
fn the_note_is_appended_once() {
    let note = "Note: this is it.";
    for (before, after) in [
        (r#""Be brief.""#, r#""Be brief.\n\nNote: this is it.""#),
        (r#""Be brief.\n""#, r#""Be brief.\n\nNote: this is it.""#),
        (r#""""#, r#""Note: this is it.""#),
        (
            r#"[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]"#,
            r#"[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Note: this is it."}]"#,
        ),
        (
            r#"[ {"type":"input_text","text":"Be brief."} ]"#,
            r#"[ {"type":"input_text","text":"Be brief."},{"type":"input_text","text":"Note: this is it."}]"#,
        ),
        ("[]", r#"[{"type":"text","text":"Note: this is it."}]"#),
    ] {
        assert_eq!(append_note(before, note).as_deref(), Some(after), "{before}");
        assert_eq!(append_note(after, note), None, "{after}");
    }
    for value in ["null", "7", "{}", ""] {
        assert_eq!(append_note(value, note), None, "{value}");
    }
    let message =
        decode_message_text(r#"{"content":"Be brief.","role":"system","x":1.0e2}"#.to_owned()).unwrap();
    let noted = with_note(&message, note).unwrap();
    assert_eq!(noted.kinds, [RenditionKind::Noted]);
    assert_eq!(noted.json, r#"{"content":"Be brief.\n\nNote: this is it.","role":"system","x":1.0e2}"#);
    assert_eq!(with_note(&decode_message_text(noted.json).unwrap(), note), None);
}
