//! Command lines in pieces.

use super::*;

fn pieces(command: &str) -> Vec<String> {
    let shown = |piece: Piece| {
        let files: Vec<String> = piece.replaces.iter().map(|file| format!(">{file}")).collect();
        [piece.words, files].concat().join(" ")
    };
    Line::of(command).pieces.into_iter().map(shown).collect()
}

#[test]
fn lines_are_taken_apart() {
    let cases: [(&str, &[&str]); 12] = [
        ("a b; c|d && e\nf", &["a b", "c", "d", "e", "f"]),
        ("a 'b; c' \"d | e\"", &["a b; c d | e"]),
        ("a > b c", &["a c >b"]),
        ("a 2>&1 >> b", &["a"]),
        ("a &> b 2> c", &["a >b >c"]),
        ("a >| b", &["a >b"]),
        ("> b", &[">b"]),
        ("a < b", &["a"]),
        ("bash <(curl x)", &["bash", "curl x"]),
        ("a # b > c\nd", &["a", "d"]),
        ("a x#y", &["a x#y"]),
        ("", &[]),
    ];
    for (command, expected) in cases {
        assert_eq!(pieces(command), expected, "{command}");
    }
}

#[test]
fn what_is_run_inside_quotes_is_seen() {
    assert_eq!(Line::of(r#"echo "a $(rm -r (x)) b""#).inner, ["rm -r (x)"]);
    assert!(Line::of("echo 'a $(rm x) b'").inner.is_empty());
}
