//! Tests of the transcript for a model.

use throughline_compaction::{Earlier, Ledger, Plan, SummaryKind};
use throughline_tokens::{Family, TextProfile};
use throughline_transcript::{Groups, SharedText, WireFormat, decode_message};

use super::*;

/// Calls `with` with the transcript of these messages.
fn rendered<T>(json: &[&str], with: impl FnOnce(&RenderedTranscript) -> T) -> T {
    let messages: Vec<Message> =
        json.iter().map(|json| decode_message(SharedText::new((*json).to_owned())).unwrap()).collect();
    let groups = Groups::of(&messages);
    let redactor = Redactor::new();
    let ledger = Ledger::of(&messages, &groups, Some(&redactor));
    let sizes = vec![10; messages.len()];
    let plan = Plan {
        head: 0..0,
        middle: 0..messages.len(),
        tail: messages.len()..messages.len(),
        pinned: None,
        earlier: Earlier::default(),
        summary_role: Role::User,
        acknowledge: false,
    };
    let request = SummaryRequest {
        messages: &messages,
        groups: &groups,
        sizes: &sizes,
        ledger: &ledger,
        plan: &plan,
        span: plan.middle.clone(),
        earlier: None,
        focus: None,
        manner: SummaryKind::default(),
        shown_text: "",
        budget_tokens: 100,
        count_tokens: &|text| text.len() as u64 / 4,
    };
    with(&RenderedTranscript::of(&request, Some(&redactor)))
}

fn model() -> TokenModel {
    TokenModel::of(Family::Generic)
}

fn mark() -> QuoteMark {
    QuoteMark::draw(&|| 1, std::iter::empty())
}

#[test]
fn every_kind_of_message_on_the_anthropic_wire() {
    let json = [
        r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>be nice</system-reminder>"},{"type":"text","text":"Look at this."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Secretly, hm.","signature":"c2ln"},{"type":"text","text":"I will."},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"a.rs"}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no such file"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}"#,
        r#"{"role":"user","content":"<system-reminder>The date changed.</system-reminder>"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Only this.","signature":"c2ln"}]}"#,
        r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]}"#,
    ];
    let text = rendered(&json, |all| all.within(0..6, &mark(), 10_000, &model()).unwrap());
    insta::assert_snapshot!(text);
}

#[test]
fn the_other_wires_read_the_same() {
    let chat = [
        r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"run","arguments":"{\"command\":\"ls\"}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"a.rs"}"#,
    ];
    let responses = [
        r#"{"type":"reasoning","id":"r1","summary":[],"encrypted_content":"eHh4"}"#,
        r#"{"type":"function_call","call_id":"c1","name":"run","arguments":"{\"command\":\"ls\"}"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"a.rs"}"#,
    ];
    let chat = rendered(&chat, |all| all.within(0..2, &mark(), 1_000, &model()).unwrap());
    assert_eq!(
        chat,
        "---- 00000001 1 assistant\n[calls run: {\"command\":\"ls\"}]\n---- 00000001 2 tool\n[run] a.rs\n"
    );
    let responses = rendered(&responses, |all| all.within(0..3, &mark(), 1_000, &model()).unwrap());
    let bare =
        |text: &str| text.lines().filter(|line| !line.starts_with("----")).collect::<Vec<_>>().join("\n");
    assert_eq!(bare(&responses), bare(&chat));
}

#[test]
fn secrets_are_masked_before_anything_is_cut() {
    let secret = "AKIAQ3EGRLZ7XJ2MWVNT";
    // The secret spans the place where the text is cut, and occurs alone elsewhere.
    let padding = "x ".repeat(1_390);
    let first = format!(r#"{{"role":"user","content":"aws_access_key_id = {secret}"}}"#);
    let second = format!(r#"{{"role":"assistant","content":"{padding}{secret} {}"}}"#, "y ".repeat(9_000));
    rendered(&[&first, &second], |all| {
        for room in [100_000, 2_000, 600] {
            let text = all.within(0..2, &mark(), room, &model()).unwrap();
            for piece in 8..secret.len() {
                assert!(!text.contains(&secret[..piece]), "{room}: {piece} characters of it are left");
            }
        }
    });
}

#[test]
fn what_does_not_fit_is_shortened_until_it_does_or_refused() {
    let result = format!(r#"{{"role":"tool","tool_call_id":"c1","content":"{}"}}"#, "word ".repeat(4_000));
    let call = r#"{"role":"assistant","content":"Reading on.","tool_calls":[{"id":"c1","type":"function","function":{"name":"run","arguments":"{}"}}]}"#;
    rendered(&[call, &result], |all| {
        let tokens = |room: u64| {
            let text = all.within(0..2, &mark(), room, &model())?;
            assert!(text.contains("characters left out"), "{text}");
            assert!(text.contains("Reading on."), "the words of the talk outlast its results: {text}");
            Some(model().estimate(&TextProfile::of(&text)))
        };
        let (wide, narrow) = (tokens(2_000).unwrap(), tokens(200).unwrap());
        assert!(wide <= 2_000 && narrow <= 200 && narrow < wide, "{wide} {narrow}");
        assert_eq!(tokens(10), None);
        assert!(all.tokens(1, &model()) > narrow, "sizes are those of the usual form");
    });
}

#[test]
fn shortening_keeps_both_ends_and_whole_characters() {
    assert_eq!(shortened("abc", 3), "abc");
    let text = "ä".repeat(50) + &"ö".repeat(50);
    let short = shortened(&text, 10);
    assert_eq!(short, "äääääää [... 90 characters left out ...] ööö");
}

#[test]
fn wire_formats_of_results_are_recognised_by_their_parts() {
    let json = throughline_transcript::tool_result_stub(WireFormat::Responses, "c9", "done");
    let text = rendered(&[&json], |all| all.within(0..1, &mark(), 100, &model()).unwrap());
    assert_eq!(text, "---- 00000001 1 tool\n[a tool] done\n");
}
