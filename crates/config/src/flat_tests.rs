//! Flat files, right and wrong.

use super::*;

#[test]
fn names_with_texts_and_lists() {
    let text = "name: window # a comment\nversion: 1.20\ncommand: [python3, engine.py]\nmore:\n  deep: yes\n";
    let read = FlatEntry::read_all("plugin.yaml", text.as_bytes()).unwrap();
    let shown: Vec<(&str, usize, &FlatValue)> =
        read.iter().map(|entry| (entry.key.as_str(), entry.line, &entry.value)).collect();
    assert_eq!(
        shown,
        [
            ("name", 1, &FlatValue::Text("window".to_owned())),
            ("version", 2, &FlatValue::Text("1.20".to_owned())),
            ("command", 3, &FlatValue::List(vec!["python3".to_owned(), "engine.py".to_owned()])),
            ("more", 4, &FlatValue::Other),
        ]
    );
    assert_eq!(FlatEntry::read_all("plugin.yaml", b"").unwrap(), []);
}

#[test]
fn what_is_wrong_is_shown_with_its_line() {
    let error = FlatEntry::read_all("plugin.yaml", b"name: x\nname: y\n").unwrap_err();
    assert!(error.to_string().contains("plugin.yaml:2"), "{error}");
    assert!(FlatEntry::read_all("plugin.yaml", b"- a\n- b\n").is_err());
    assert!(FlatEntry::read_all("plugin.yaml", b"name: [unclosed").is_err());
}
