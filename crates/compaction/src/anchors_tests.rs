//! Tests of what counts as an anchor, as pictures.

use super::*;

fn anchors(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    scan_anchors(text, |anchor, kind| out.push(format!("{kind:?} {anchor}")));
    out
}

#[test]
fn each_kind_is_found_and_plain_prose_is_not() {
    assert_eq!(anchors("please read the file and tell me what it does. Thanks, Bob"), Vec::<String>::new());
    assert_eq!(
        anchors("see src/main.rs:120, and ./run.sh"),
        ["Path src/main.rs", "Number 120", "Path ./run.sh"]
    );
    assert_eq!(anchors("(https://a.example/x?y=1)."), ["Url https://a.example/x?y=1"]);
    assert_eq!(anchors("commit 4f8c1176ab or deadbeef1"), ["Hash 4f8c1176ab", "Hash deadbeef1"]);
    assert_eq!(anchors("run --all-targets --level=12 -v"), ["Flag --all-targets", "Flag --level", "Flag -v"]);
    assert_eq!(
        anchors("parseConfig(max_len, HTTPServer, v2beta)"),
        ["Identifier parseConfig", "Identifier max_len", "Identifier HTTPServer", "Identifier v2beta"]
    );
    assert_eq!(
        anchors("strings.HasPrefix and config.yaml at 1.2.3 or 8080"),
        ["Identifier HasPrefix", "Path config.yaml", "Number 1.2.3", "Number 8080"]
    );
    assert_eq!(
        anchors("b6b83817-c584-4561-86a0-bd4f974e7274"),
        ["Hash b6b83817-c584-4561-86a0-bd4f974e7274"]
    );
    assert_eq!(anchors("TIMEOUT_MS=3000"), ["Identifier TIMEOUT_MS", "Number 3000"]);
}

#[test]
fn long_data_runs_and_lone_signs_are_passed_over() {
    assert!(anchors(&"A1b2".repeat(400)).is_empty());
    assert!(anchors("--- === ... / // -- 12 a1").is_empty());
}

proptest::proptest! {
    #[test]
    fn any_text_is_scanned_without_panic_and_anchors_are_its_slices(text in "\\PC{0,200}") {
        scan_anchors(&text, |anchor, _| assert!(text.contains(anchor)));
    }
}

#[test]
fn endings_are_sorted_so_that_they_can_be_searched() {
    assert!(EXTENSIONS.is_sorted());
    assert!(is_extension("rs") && is_extension("jsonl") && is_extension("service") && is_extension("c"));
    assert!(
        !is_extension("want") && !is_extension("") && !is_extension("rust") && !is_extension("servicefile")
    );
}
