use throughline_transcript::decode_message_text;

use super::*;

fn identity(json: &str) -> Option<MessageIdentity> {
    identity_of(&decode_message_text(json.to_owned()).unwrap())
}

#[test]
fn what_clients_change_about_a_message_does_not_change_who_it_is() {
    for (one, other) in [
        (r#"{"role":"user","content":"Hi"}"#, r#"{"content":[{"type":"text","text":"Hi"}],"role":"user"}"#),
        (
            r#"{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"Hi"}]}"#,
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"Hi"}]}"#,
            r#"{"role":"user","content":"Hi"}"#,
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"all of it"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[cleared]"}]}"#,
        ),
        (
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Yes"}]}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"Yes"}]}"#,
        ),
        (
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            r#"{"role":"assistant","tool_calls":[{"type":"function","id":"c1","function":{"arguments":"{ }","name":"f"}}],"content":""}"#,
        ),
        (r#"{"role":"system","content":"It is Monday."}"#, r#"{"role":"system","content":"It is Tuesday."}"#),
    ] {
        assert!(identity(one).is_some());
        assert_eq!(identity(one), identity(other), "{one}\n{other}");
    }
}

#[test]
fn what_is_said_and_who_says_it_does() {
    let all = [
        r#"{"role":"user","content":"Hi"}"#,
        r#"{"role":"assistant","content":"Hi"}"#,
        r#"{"role":"user","content":"Hi."}"#,
        r#"{"role":"user","content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"Hi"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"Hi"}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}"#,
    ];
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            assert_ne!(identity(one), identity(other), "{one}\n{other}");
        }
    }
}

#[test]
fn reasoning_alone_and_reminders_alone_say_nothing_of_their_own() {
    for json in [
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}"#,
        r#"{"role":"user","content":"<system-reminder>be quick</system-reminder>"}"#,
        r#"{"role":"assistant","content":[]}"#,
    ] {
        assert_eq!(identity(json), None, "{json}");
    }
}
