//! Tests of each kind on a small example, and of properties for any text.

use proptest::prelude::*;
use serde_json::Value;

use super::lines::{error_lines, split, tells_of_error};
use super::{ContentKind, Shrunk, shrink};

fn shrunk(text: &str) -> Shrunk {
    shrink(text, &[]).unwrap_or_else(|| panic!("it was not shortened: {}", text.len()))
}

fn log() -> String {
    let mut text = String::from("$ cargo test\n");
    for number in 0..400 {
        text.push_str(&format!("test module::case_{number} ... ok\n"));
        if number == 207 {
            text.push_str("test module::parser ... FAILED\nthread panicked at src/parse.rs:12\n");
        }
    }
    text + "test result: FAILED. 400 passed; 1 failed"
}

#[test]
fn log_keeps_errors_and_both_ends() {
    let short = shrunk(&log());
    assert_eq!(short.kind, ContentKind::Log);
    for line in [
        "$ cargo test",
        "module::parser ... FAILED",
        "panicked at src/parse.rs:12",
        "400 passed; 1 failed",
        "case_207 ... ok",
    ] {
        assert!(short.text.contains(line), "{line}: {}", short.text);
    }
    assert!(!short.text.contains("case_100 "));
    assert!(short.text.contains("[left out: ") && short.note.starts_with("[left out: "), "{}", short.note);
    assert!(short.text.len() < 2_500, "{}", short.text);
}

#[test]
fn long_line_keeps_both_ends_or_its_error() {
    let short = shrunk(&format!("begin {} end", "x".repeat(100_000)));
    assert!(short.text.starts_with("begin x") && short.text.ends_with(" end"), "{}", short.text.len());
    let short = shrunk(&format!("{} error: no such file {}", "x".repeat(50_000), "y".repeat(50_000)));
    assert!(short.text.contains("error: no such file"), "{}", short.text);
    assert!(short.text.len() < 2_000);
}

#[test]
fn json_list_keeps_shapes_outliers_and_errors() {
    let item = |number: usize| match number {
        57 => r#"{"id":57,"status":"failed","error":"timed out"}"#.to_owned(),
        80 => r#"{"id":80,"status":"ok","error":null,"extra":true}"#.to_owned(),
        number => format!(r#"{{"id":{number},"status":"ok","error":null}}"#),
    };
    let list = format!("[{}]", (0..200).map(item).collect::<Vec<_>>().join(","));
    let short = shrunk(&list);
    assert_eq!(short.kind, ContentKind::Json);
    let value: Value = serde_json::from_str(&short.text).unwrap();
    let ids: Vec<i64> = value.as_array().unwrap().iter().filter_map(|item| item["id"].as_i64()).collect();
    assert!(ids.contains(&57) && ids.contains(&80) && ids.contains(&199), "{ids:?}");
    assert!(ids.len() < 20, "{ids:?}");
}

#[test]
fn json_numbers_keep_their_extremes() {
    let mut numbers: Vec<String> = (0..500).map(|number| format!("{}.50", 100 + number % 7)).collect();
    numbers[321] = "-12.750".to_owned();
    let short = shrunk(&format!("{{\"series\":[{}]}}", numbers.join(", ")));
    assert!(short.text.contains("-12.750") && short.text.contains("106.50"), "{}", short.text);
    assert!(serde_json::from_str::<Value>(&short.text).is_ok());
}

#[test]
fn half_of_a_json_value_is_a_text_like_any_other() {
    let list: String = (0..200).map(|number| format!("{{\"id\":{number},\n\"status\":\"ok\"}},\n")).collect();
    let short = shrunk(&format!("[{list}"));
    assert_eq!(short.kind, ContentKind::Log);
}

#[test]
fn deep_json_is_copied() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(shrink(&deep, &[]), None);
    let too_deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(shrink(&too_deep, &[]).is_none_or(|short| short.text.len() < too_deep.len()));
}

#[test]
fn table_keeps_header_extremes_and_rare_values() {
    let mut rows = vec!["id,name,size,state".to_owned()];
    rows.extend((0..300).map(|number| format!("{number},file{number},{},done", 100 + number % 10)));
    rows[150] = "149,file149,99999,done".to_owned();
    rows[200] = "199,file199,100,pending".to_owned();
    let short = shrunk(&rows.join("\n"));
    assert_eq!(short.kind, ContentKind::Table);
    for row in [0, 150, 200, 300] {
        assert!(short.text.lines().any(|line| line == rows[row]), "{row}: {}", short.text);
    }
    assert!(short.text.lines().all(|line| line.split(',').count() == 4));
    assert!(short.text.lines().count() < 30);
}

#[test]
fn diff_keeps_every_change() {
    let context: String = (0..40).map(|number| format!(" unchanged {number}\n")).collect();
    let lock: String = (0..200).map(|number| format!("+checksum {number}\n")).collect();
    let text = format!(
        "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,90 +1,90 @@\n{context}-old\n+new\n{context}\
         diff --git a/Cargo.lock b/Cargo.lock\n--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -1 +1,200 @@\n{lock}"
    );
    let short = shrunk(&text);
    assert_eq!(short.kind, ContentKind::Diff);
    assert!(short.text.contains("-old\n+new") && short.text.contains("@@ -1,90"), "{}", short.text);
    assert!(short.text.contains("+++ b/Cargo.lock") && !short.text.contains("checksum 90"), "{}", short.text);
}

#[test]
fn page_keeps_words_and_links() {
    let script = "var x = 1;".repeat(300);
    let text = format!(
        "<!DOCTYPE html><html><head><title>Docs</title><script>{script}</script></head><body><h1>Limits &amp; more</h1>\
         <p>The limit is <b>42</b>, see <a href=\"/limits\">limits</a>.</p></body></html>"
    );
    let short = shrunk(&text);
    assert_eq!(short.kind, ContentKind::Html);
    assert_eq!(short.text, "Docs\nLimits & more\nThe limit is 42, see limits (/limits).");
}

#[test]
fn lines_that_begin_with_a_time_are_a_log() {
    for moment in ["2026-11-18T10:02:33", "[2026-11-18T10:02:33.120Z]", "10:02:33", "2026/11/18T10:02:33"] {
        let text: String =
            (0..400).map(|at| format!("{moment} worker {at} took job {at} and was done\n")).collect();
        assert_eq!(shrink(&text, &[]).unwrap().kind, ContentKind::Log, "{moment}");
    }
}

#[test]
fn search_keeps_something_of_every_file() {
    let text: String = (0..300)
        .map(|number| format!("src/file{}.rs:{number}:    let value = call({number});\n", number / 50))
        .collect();
    let short = shrunk(&text);
    assert_eq!(short.kind, ContentKind::Search);
    for file in 0..6 {
        assert!(short.text.contains(&format!("src/file{file}.rs:")), "{}", short.text);
    }
    assert!(short.text.contains("[left out: 47 hits in src/file0.rs]"), "{}", short.text);
}

#[test]
fn listing_groups_paths_by_folder() {
    let text: String = (0..200).map(|number| format!("./crates/engine/src/part{number}.rs\n")).collect();
    let short = shrunk(&text);
    assert_eq!(short.kind, ContentKind::Listing);
    assert!(short.text.starts_with("./crates/engine/src/ part0.rs part1.rs"), "{}", short.text);
}

#[test]
fn code_keeps_signatures_and_only_large_files_are_shortened() {
    let file = |lines: usize| {
        let line = |number: usize| match number % 50 {
            0 => format!("{number:>6}\tpub fn part_{number}() {{\n"),
            25 => format!("{number:>6}\t    let budget_tokens = {number};\n"),
            _ => format!("{number:>6}\t    work({number});\n"),
        };
        (1..=lines).map(line).collect::<String>()
    };
    assert_eq!(shrink(&file(500), &[]), None, "it may be about to be edited");
    let short = shrink(&file(2_000), &["budget_tokens = 1025"]).unwrap();
    assert_eq!(short.kind, ContentKind::Code);
    assert!(short.text.contains("pub fn part_1950()"), "{}", short.text);
    assert!(short.text.contains("work(1020);") && !short.text.contains("work(1320);"));
}

#[test]
fn short_texts_and_shortened_ones_stay() {
    for text in ["", "ok", "one\ntwo\nthree", r#"{"a":1}"#, "[]"] {
        assert_eq!(shrink(text, &[]), None, "{text}");
    }
    let short = shrunk(&log());
    assert_eq!(shrink(&format!("{}\n{}", short.text, short.note), &[]), None);
}

/// Lines of all kinds, errors among them.
fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,60}",
        2 => "[0-9]{1,6}: [a-z]{1,10} [0-9]{1,4} ms",
        1 => "(ERROR|error|Failed|panicked at|Exception): [a-zé ]{0,40}",
        1 => "src/[a-z]{1,3}\\.rs:[0-9]{1,3}:[a-z ]{0,30}",
        1 => "[a-z]{1,3},[0-9]{1,3},[a-z]{1,5}",
        1 => "[+-@ ][a-z ]{0,30}",
        1 => "\\PC{0,40}",
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,30}".prop_map(Value::from),
        "(error|failed): [a-z]{1,20}".prop_map(Value::from),
        "[a-z ]{900,1200}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 400, 60, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..60).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,6}|error", inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn holds(text: &str, short: &Shrunk) -> Result<(), TestCaseError> {
    prop_assert!(short.text.len() + short.note.len() < text.len());
    let sent = format!("{}\n{}", short.text, short.note);
    prop_assert_eq!(shrink(&sent, &[]), None, "once is enough");
    Ok(())
}

proptest! {
    #[test]
    fn text_keeps_every_line_with_an_error(lines in prop::collection::vec(any_line(), 0..300), repeat in 1_usize..4) {
        let text = lines.join("\n").repeat(repeat);
        let Some(short) = shrink(&text, &["parser"]) else { return Ok(()) };
        holds(&text, &short)?;
        if !matches!(short.kind, ContentKind::Html | ContentKind::Json) {
            for line in split(&text).into_iter().filter(|line| tells_of_error(line)) {
                let line = if short.kind == ContentKind::Listing { line.rsplit('/').next().unwrap() } else { line };
                prop_assert!(short.text.contains(line), "{:?}: {line}\n{}", short.kind, short.text);
            }
        }
    }

    #[test]
    fn json_stays_valid_and_keeps_what_tells_of_an_error(value in any_json(), is_pretty: bool) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        let Some(short) = shrink(&text, &[]) else { return Ok(()) };
        holds(&text, &short)?;
        if short.kind == ContentKind::Json {
            let left: Value = serde_json::from_str(&short.text).expect("valid JSON");
            prop_assert_eq!(left.is_array(), value.is_array());
            let mut errors = Vec::new();
            collect_errors(&value, &mut errors);
            for error in errors {
                prop_assert!(short.text.contains(&error), "{error}: {}", short.text);
            }
        }
    }

    #[test]
    fn table_keeps_its_columns(rows in prop::collection::vec(("[a-z]{0,8}", any::<i32>(), "(ok|error|done)"), 12..200)) {
        let text: String = rows.iter().map(|(name, number, state)| format!("{name};{number};{state}\n")).collect();
        let text = format!("name;number;state\n{text}");
        let Some(short) = shrink(&text, &[]) else { return Ok(()) };
        holds(&text, &short)?;
        if short.kind == ContentKind::Table {
            prop_assert!(short.text.starts_with("name;number;state\n"));
            for line in short.text.lines() {
                prop_assert!(text.lines().any(|known| known == line));
            }
        }
    }

    #[test]
    fn errors_are_found_in_one_pass_as_line_by_line(lines in prop::collection::vec(any_line(), 0..60)) {
        let text = lines.join("\n");
        let lines = split(&text);
        let one_by_one: Vec<usize> =
            lines.iter().enumerate().filter(|(_, line)| tells_of_error(line)).map(|(index, _)| index).collect();
        prop_assert_eq!(error_lines(&lines, &text), one_by_one);
    }
}

fn collect_errors(value: &Value, errors: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with("error: ") || text.starts_with("failed: ") => {
            errors.push(text.clone());
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_errors(element, errors)),
        Value::Object(members) => members.values().for_each(|member| collect_errors(member, errors)),
        _ => {}
    }
}
