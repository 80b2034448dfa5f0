//! A diff is complete: applied to the old text, it gives the new text.

use proptest::prelude::*;

use super::*;

/// Applies a diff to the old text.
fn applied(old: &str, difference: &str) -> String {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut at = 0;
    let mut lines = difference.split('\n').skip(2).peekable();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("@@ -") {
            let range = heading.split(' ').next().unwrap_or_default();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let start: usize = start.parse().unwrap();
            let begins = if count == "0" { start } else { start - 1 };
            out.push_str(&old_lines[at..begins].concat());
            at = begins;
            continue;
        }
        if line == NO_NEWLINE {
            continue;
        }
        let has_newline = lines.peek() != Some(&NO_NEWLINE);
        let text = format!("{}{}", &line[1..], if has_newline { "\n" } else { "" });
        match line.chars().next() {
            Some('+') => out.push_str(&text),
            Some(sign) => {
                assert_eq!(old_lines[at], text, "what is removed or stays is what was there");
                at += 1;
                if sign == ' ' {
                    out.push_str(&text);
                }
            }
            None => panic!("a line without a sign"),
        }
    }
    out.push_str(&old_lines[at..].concat());
    out
}

fn texts() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a\n",
        "b\n",
        "\n",
        "c\r\n",
        "d\re\n",
        "+x\n",
        "-y\n",
        "@@ -1 +1 @@\n",
        " z\n",
        "end",
    ]);
    prop::collection::vec(line, 0..30).prop_map(|lines| {
        let mut lines = lines;
        // Only the last line may lack a line break.
        let last = lines.len().saturating_sub(1);
        let mut at = 0;
        lines.retain(|line| {
            at += 1;
            line.ends_with('\n') || at - 1 == last
        });
        lines.concat()
    })
}

proptest! {
    #[test]
    fn difference_says_all_that_changes(old in texts(), new in texts()) {
        prop_assume!(old != new);
        prop_assert_eq!(applied(&old, &difference("f", &old, &new)), new.as_str());
        let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let mut ends = "--- f\n+++ f".to_owned();
        compare_ends(&old_lines, &new_lines, &mut ends);
        prop_assert_eq!(applied(&old, &ends), new.as_str());
    }
}

#[test]
fn long_difference_is_not_cut() {
    let new: String = (0..5_000).map(|line| format!("line {line}\n")).collect();
    let shown = difference("f", "", &new);
    assert_eq!(added_lines(&shown).count(), 5_000);
    let large = new.repeat(50);
    assert_eq!(added_lines(&difference("f", "", &large)).count(), 250_000);
}
