//! Parsed command lines.

use super::*;

fn steps(command: &str) -> Vec<String> {
    let script = Script::read(command);
    assert!(script.is_understood, "{command}");
    let words = |step: &Step| step.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    script.steps.iter().map(words).collect()
}

fn files(command: &str) -> Vec<(Redirect, String)> {
    let redirects = Script::read(command).redirects;
    redirects.into_iter().map(|redirected| (redirected.redirect, redirected.file.text)).collect()
}

#[test]
fn programs_are_found_with_their_words() {
    let cases: [(&str, &[&str]); 12] = [
        ("a b; c|d && e\nf", &["a b", "c", "d", "e", "f"]),
        ("a 'b; c' \"d | e\" f\\ g", &["a b; c d | e f g"]),
        ("a > b c", &["a c"]),
        ("a 2>&1 >> b", &["a"]),
        ("bash <(curl x)", &["bash ${_}", "curl x"]),
        ("a # b > c\nd", &["a", "d"]),
        ("a x#y", &["a x#y"]),
        ("echo \"a $(b c) \\\"d\\\"\"", &["echo a ${_} \"d\"", "b c"]),
        ("$'a\\x62\\n' ''", &["ab\n "]),
        ("export A=b C", &["export A=b C"]),
        ("if a; then b; fi", &["a", "b"]),
        ("", &[]),
    ];
    for (command, expected) in cases {
        assert_eq!(steps(command), expected, "{command}");
    }
}

#[test]
fn redirections_are_read_with_their_effect_on_files() {
    use Redirect::{Adds, Reads, Replaces};
    let named = |redirect, file: &str| (redirect, file.to_owned());
    assert_eq!(files("a > b 2> c"), [named(Replaces, "b"), named(Replaces, "c")]);
    assert_eq!(files("a &> b"), [named(Replaces, "b")]);
    assert_eq!(files("a >| b >> c < d"), [named(Replaces, "b"), named(Adds, "c"), named(Reads, "d")]);
    assert_eq!(files("a 2>&1 >&2"), []);
    assert_eq!(files("cat <<E > f\nx\nE"), [named(Replaces, "f")]);
}

#[test]
fn pipes_and_input_are_known() {
    let script = Script::read("cat <<'E' | tee a | sh\nrm x\nE\n");
    assert_eq!(script.pipelines, [vec![0..1, 1..2, 2..3]]);
    assert_eq!(script.steps[0].input.as_ref().map(|input| input.text.trim_end()), Some("rm x"));
    let script = Script::read("sh <<< \"rm $x\"");
    assert_eq!(script.steps[0].input.as_ref().map(|input| input.text.as_str()), Some("rm ${_}"));
    let script = Script::read("bash <<'E'\n\\rm x\nE");
    assert_eq!(script.steps[0].input.as_ref().map(|input| input.text.trim_end()), Some("\\rm x"));
}

#[test]
fn broken_and_overlong_lines_are_not_understood() {
    for command in ["'unfinished", "if true; then ls", "a | | b", "("] {
        assert!(!Script::read(command).is_understood, "{command}");
    }
    assert!(!Script::read(&"x ".repeat(MAX_BYTES)).is_understood);
    assert!(Script::read(&"ls -la; ".repeat(MAX_BYTES / 8)).is_understood, "as long as it may be");
}
