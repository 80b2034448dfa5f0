//! Tests of exports: unchanged bytes, bodies in every wire format, masking that preserves valid JSON.

use serde::de::IgnoredAny;
use serde_json::Value;
use throughline_redact::Redactor;
use throughline_testkit::{ConversationOptions, conversation_from_seed};
use throughline_tokens::Usage;
use throughline_transcript::{
    DecodeOptions, Message, WireFormat, WireFormatChoice, decode, decode_message_text,
};

use super::{Export, ExportForm, ExportOptions, ExportSide, mask_all};
use crate::call::{NewCall, StoredPreamble};
use crate::ids::{Owner, SessionId};
use crate::memory::MemoryStore;
use crate::message::NewMessage;
use crate::sessions::session::{EndReason, NewSession, Origin, Session};
use crate::store::Store;
use crate::views::item::{NewViewItem, ViewItem};
use crate::views::summary::Continuation;

const SAID: ExportOptions<'static> =
    ExportOptions { side: ExportSide::Said, form: ExportForm::List, redactor: None };

fn recorded(wire_format: WireFormat, messages: Vec<Message>) -> (MemoryStore, Session) {
    let store = MemoryStore::new();
    let new = NewSession {
        id: SessionId::from_text("s"),
        owner: Owner::default(),
        link: None,
        started_ms: 0,
        model: Some("a-model".to_owned()),
        title: None,
        origin: Origin::default(),
        wire_format,
    };
    let session = store.open_session(new, None).unwrap();
    let new_message =
        |message| NewMessage { message, tokens: 1, at_ms: 0, tools: Vec::new(), rendition: None };
    store.append(&Owner::default(), &session.id, messages.into_iter().map(new_message).collect()).unwrap();
    (store, session)
}

fn message(json: &str) -> Message {
    decode_message_text(json.to_owned()).unwrap()
}

fn text_of(store: &MemoryStore, session: &Session, options: &ExportOptions<'_>) -> String {
    Export::of(store, &Owner::default(), &session.id, options).unwrap().text
}

#[test]
fn lists_of_every_wire_come_out_as_they_went_in() {
    for wire_format in WireFormat::ALL {
        for seed in 0..40 {
            let generated =
                conversation_from_seed(&ConversationOptions::new(wire_format).may_be_open(), seed);
            let (store, session) = recorded(wire_format, generated.messages());
            let list = text_of(&store, &session, &SAID);
            let forced = DecodeOptions {
                wire_format: WireFormatChoice::Forced(wire_format),
                ..DecodeOptions::default()
            };
            let read: Vec<String> = match generated.json.is_empty() {
                true => {
                    serde_json::from_str::<Vec<Value>>(&list).unwrap().iter().map(Value::to_string).collect()
                }
                false => {
                    let read = decode(list.into_bytes(), &forced).unwrap();
                    read.messages.iter().map(|message| message.json().to_owned()).collect()
                }
            };
            assert_eq!(read, generated.json, "{wire_format} {seed}");
            let lines = text_of(&store, &session, &ExportOptions { form: ExportForm::Lines, ..SAID });
            assert_eq!(lines, generated.json.iter().map(|json| format!("{json}\n")).collect::<String>());
        }
    }
}

#[test]
fn bodies_have_what_stood_before_the_messages() {
    let cases = [
        (
            WireFormat::Anthropic,
            r#"{"role":"user","content":"hi"}"#,
            "{\n\"model\": \"a-model\",\n\"system\": \"be brief\",\n\"tools\": [{\"name\":\"t\"}],\n\"max_tokens\": 9,\n\"messages\": [\n{\"role\":\"user\",\"content\":\"hi\"}\n]\n}\n",
        ),
        (
            WireFormat::Responses,
            r#"{"type":"message","role":"user","content":"hi"}"#,
            "{\n\"model\": \"a-model\",\n\"instructions\": \"be brief\",\n\"tools\": [{\"name\":\"t\"}],\n\"max_tokens\": 9,\n\"input\": [\n{\"type\":\"message\",\"role\":\"user\",\"content\":\"hi\"}\n]\n}\n",
        ),
        (
            WireFormat::Chat,
            r#"{"role":"user","content":"hi"}"#,
            "{\n\"model\": \"a-model\",\n\"tools\": [{\"name\":\"t\"}],\n\"max_tokens\": 9,\n\"messages\": [\n{\"role\":\"system\",\"content\":\"be brief\"},\n{\"role\":\"user\",\"content\":\"hi\"}\n]\n}\n",
        ),
    ];
    for (wire_format, json, expected) in cases {
        let (store, session) = recorded(wire_format, vec![message(json)]);
        let preamble = StoredPreamble {
            system: Some("\"be brief\"".to_owned()),
            tools: Some("[{\"name\":\"t\"}]".to_owned()),
            parameters: Some(
                "{\"max_tokens\":9,\"model\":\"another\",\"messages\":1,\"input\":2}".to_owned(),
            ),
        };
        let preamble = Some(store.put_preamble(&preamble).unwrap());
        let call = NewCall { preamble, usage: Usage::default(), ..NewCall::default() };
        store.record_calls(&Owner::default(), &session.id, vec![call]).unwrap();
        let body = text_of(&store, &session, &ExportOptions { form: ExportForm::Body, ..SAID });
        let body_without_strays = body.replace("\"input\": 2,\n", "").replace("\"messages\": 1,\n", "");
        assert_eq!(body_without_strays, expected, "{wire_format}");
        serde_json::from_str::<Value>(&body).unwrap();
    }
}

#[test]
fn a_body_without_anything_before_is_a_body_all_the_same() {
    let (store, session) = recorded(WireFormat::Chat, Vec::new());
    let body = text_of(&store, &session, &ExportOptions { form: ExportForm::Body, ..SAID });
    assert_eq!(body, "{\n\"model\": \"a-model\",\n\"messages\": []\n}\n");
}

#[test]
fn what_a_model_would_be_sent() {
    let said = vec![
        message(r#"{"role":"user","content":"long"}"#),
        message(r#"{"role":"assistant","content":"ok"}"#),
    ];
    let (store, session) = recorded(WireFormat::Chat, said);
    let summary = ViewItem::Synthetic {
        kind: "test".to_owned(),
        json: r#"{"role":"user","content":"short"}"#.to_owned(),
        tokens: 1,
    };
    let continuation = Continuation {
        lease: None,
        from: session.id.clone(),
        id: SessionId::from_text("t"),
        reason: EndReason::COMPRESSION,
        at_ms: 0,
        made_at_seq: 2,
        summary: None,
        view: vec![NewViewItem::Kept(summary)],
    };
    let tip = store.continue_session(&Owner::default(), continuation).unwrap();
    let shown = ExportOptions { side: ExportSide::Shown, form: ExportForm::Lines, redactor: None };
    assert_eq!(text_of(&store, &tip, &shown), "{\"role\":\"user\",\"content\":\"short\"}\n");
    let said = ExportOptions { form: ExportForm::Lines, ..SAID };
    assert_eq!(text_of(&store, &tip, &said).lines().count(), 2);
}

const TOKEN: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

fn masked(json: &str) -> (String, usize) {
    let mut text = json.to_owned();
    let changed = mask_all(&Redactor::new(), vec![&mut text]);
    serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (text, changed)
}

#[test]
fn secrets_are_masked_in_every_string() {
    let cases = [
        format!(r#"{{"role":"user","content":"use {TOKEN}"}}"#),
        // Directly after the letter of an escape.
        format!(r#"{{"role":"user","content":"first\n{TOKEN}\tlast"}}"#),
        format!(r#"{{"role":"user","content":"\u0022{TOKEN}\u0022"}}"#),
        // JSON inside a string, in the arguments of a call, escaped once and twice.
        format!(
            r#"{{"role":"assistant","tool_calls":[{{"function":{{"arguments":"{{\"t\":\"{TOKEN}\"}}"}}}}]}}"#
        ),
        format!(r#"{{"a":"{{\"b\":\"{{\\\"c\\\":\\\"{TOKEN}\\\"}}\"}}"}}"#),
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","content":[{{"type":"text","text":"{TOKEN}"}}]}}]}}"#
        ),
    ];
    for json in cases {
        let (text, changed) = masked(&json);
        assert!(!text.contains(TOKEN), "{text}");
        assert!(text.contains("[redacted:"), "{text}");
        assert_eq!(changed, 1);
    }
}

#[test]
fn a_value_that_only_its_name_betrays_is_masked_and_then_everywhere() {
    let mut call = r#"{"type":"tool_use","input":{"password":"Tr0ub4dor-9xyz"}}"#.to_owned();
    let mut result = r#"{"role":"user","content":"logged in with Tr0ub4dor-9xyz"}"#.to_owned();
    let mut other = r#"{"role":"user","content":"a horse"}"#.to_owned();
    let changed = mask_all(&Redactor::new(), vec![&mut call, &mut result, &mut other]);
    assert_eq!(changed, 2);
    assert!(!call.contains("Tr0ub") && !result.contains("Tr0ub"), "{call} {result}");
    assert_eq!(other, r#"{"role":"user","content":"a horse"}"#);
    serde_json::from_str::<Value>(&call).unwrap();
}

#[test]
fn texts_without_secrets_keep_their_bytes() {
    for wire_format in WireFormat::ALL {
        for seed in 0..20 {
            let generated = conversation_from_seed(&ConversationOptions::new(wire_format), seed);
            let redactor = Redactor::new();
            let plain: Vec<&String> =
                generated.json.iter().filter(|json| redactor.find(json).is_empty()).collect();
            let mut texts: Vec<String> = plain.iter().map(|json| (*json).clone()).collect();
            mask_all(&redactor, texts.iter_mut().collect());
            for (before, after) in plain.iter().zip(&texts) {
                serde_json::from_str::<IgnoredAny>(after).unwrap();
                if !after.contains("[redacted:") {
                    assert_eq!(*before, after);
                }
            }
        }
    }
    let odd = "{\"a\" : \"caf\\u00e9 \\/ \\ud83d\\ude00\" , \"n\":1e3}";
    assert_eq!(masked(odd), (odd.to_owned(), 0));
}

#[test]
fn an_export_says_how_much_was_masked() {
    let said = vec![
        message(&format!(r#"{{"role":"user","content":"{TOKEN}"}}"#)),
        message(r#"{"role":"assistant","content":"ok"}"#),
    ];
    let (store, session) = recorded(WireFormat::Chat, said);
    let redactor = Redactor::new();
    let options = ExportOptions { redactor: Some(&redactor), ..SAID };
    let export = Export::of(&store, &Owner::default(), &session.id, &options).unwrap();
    assert_eq!((export.messages, export.masked), (2, 1));
    assert!(!export.text.contains(TOKEN));
}

#[test]
fn what_is_imported_with_instructions_is_exported_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body.json");
    let body = r#"{"model":"claude-opus-4-6","system":[{"type":"text","text":"be brief"}],"tools":[{"name":"t"}],"max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#;
    std::fs::write(&path, body).unwrap();
    let store = MemoryStore::new();
    let mut new_id = |at_ms| SessionId::new(at_ms, 1, crate::ids::IdLength::Local);
    let mut report = crate::import::ImportReport::default();
    let mut importer = crate::import::Importer::new(&store, Owner::default(), &mut new_id, |_| None);
    importer.import_path(&path, &mut report, &mut |_| {}).unwrap();
    let session = store.resolve(&Owner::default(), "last").unwrap();
    let text = text_of(&store, &session, &ExportOptions { form: ExportForm::Body, ..SAID });
    let (ours, theirs): (Value, Value) =
        (serde_json::from_str(&text).unwrap(), serde_json::from_str(body).unwrap());
    for member in ["model", "system", "tools", "messages"] {
        assert_eq!(ours[member], theirs[member], "{member}");
    }
}
