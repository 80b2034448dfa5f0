//! Replacing the system prompt of a request body.

use super::*;

#[test]
fn only_the_system_prompt_of_a_body_changes() {
    let body = br#"{ "model":"m", "system" : "be brief","messages":[{"role":"user","content":"\"system\":\"x\""}], "n":1.0e2 }"#;
    let out = with_system(body.to_vec(), r#""be brief, note""#);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        r#"{ "model":"m", "system" : "be brief, note","messages":[{"role":"user","content":"\"system\":\"x\""}], "n":1.0e2 }"#
    );
}

#[test]
fn a_body_without_a_system_prompt_stays_as_it_is() {
    let body = br#"{"messages":[]}"#;
    assert_eq!(with_system(body.to_vec(), "\"x\""), body);
}
