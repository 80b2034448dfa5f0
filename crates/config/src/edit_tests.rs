//! Tests of where changes are written, and that nothing else changes.

use proptest::prelude::*;

use super::*;
use crate::{Loader, Settings, ValueOrigin};

fn set(file: &str, key: &str, value: &str) -> String {
    Editor::new("config.yaml", file.as_bytes()).unwrap().set(key, value).unwrap().text
}

fn unset(file: &str, key: &str) -> String {
    Editor::new("config.yaml", file.as_bytes()).unwrap().unset(key).unwrap().text
}

fn set_error(file: &str, key: &str, value: &str) -> String {
    let editor = Editor::new("config.yaml", file.as_bytes());
    editor.and_then(|editor| editor.set(key, value)).unwrap_err().to_string()
}

#[test]
fn a_value_is_replaced_where_it_stands() {
    let key = "compression.threshold";
    for (before, after) in [
        ("compression:\n  threshold: 0.5\n", "compression:\n  threshold: 0.60\n"),
        (
            "compression:\n  threshold: 0.5  # why\n  enabled: no\n",
            "compression:\n  threshold: 0.60  # why\n  enabled: no\n",
        ),
        ("compression:\n    threshold:   '0.5'   \n", "compression:\n    threshold:   0.60   \n"),
        ("compression: {threshold: 0.5}\n", "compression: {threshold: 0.60}\n"),
        ("{\"compression\": {\"threshold\": 0.5}}", "{\"compression\": {\"threshold\": 0.60}}"),
        ("compression:\n  threshold:\n  enabled: no\n", "compression:\n  threshold: 0.60\n  enabled: no\n"),
        ("compression:\n  threshold: # later\n", "compression:\n  threshold: 0.60 # later\n"),
        ("compression:\n  threshold:\n    0.5 # here\n", "compression:\n  threshold:\n    0.60 # here\n"),
        ("compression:\n  threshold: wrong\n", "compression:\n  threshold: 0.60\n"),
        ("compression:\r\n  threshold: 0.5\r\n", "compression:\r\n  threshold: 0.60\r\n"),
        ("compression: {threshold: }\n", "compression: {threshold: 0.60 }\n"),
        (
            "compression:\n  threshold: |  # block\n    0.5\n\n\nmodel: x\n",
            "compression:\n  threshold: 0.60 # block\n\n\nmodel: x\n",
        ),
        (
            "x: &x 0.4\ncompression:\n  threshold: *x # alias\n",
            "x: &x 0.4\ncompression:\n  threshold: 0.60 # alias\n",
        ),
        ("compression:\n  threshold: !!float 0.5 # tag\n", "compression:\n  threshold: 0.60 # tag\n"),
        ("compression:\n  threshold: &unused 0.5\n", "compression:\n  threshold: 0.60\n"),
        ("compression:\n  \"threshold\" : 0.5\n", "compression:\n  \"threshold\" : 0.60\n"),
        ("compression: {threshold}\n", "cannot"),
    ] {
        if after == "cannot" {
            assert!(set_error(before, key, "0.60").contains("edit the file by hand"));
        } else {
            assert_eq!(set(before, key, "0.60"), after);
        }
    }
}

#[test]
fn a_missing_key_is_added_to_its_section() {
    let key = "compression.threshold";
    for (before, after) in [
        ("", "compression:\n  threshold: 0.6\n"),
        ("# mine\n", "# mine\n\ncompression:\n  threshold: 0.6\n"),
        ("# mine", "# mine\n\ncompression:\n  threshold: 0.6\n"),
        ("---\n", "---\n\ncompression:\n  threshold: 0.6\n"),
        ("model:\n  default: x\n", "model:\n  default: x\n\ncompression:\n  threshold: 0.6\n"),
        ("model:\n    default: x", "model:\n    default: x\n\ncompression:\n    threshold: 0.6\n"),
        ("model: {}\n...\n", "model: {}\n\ncompression:\n  threshold: 0.6\n...\n"),
        (
            "compression:\n  enabled: no\n\n# next\nmodel: {}\n",
            "compression:\n  enabled: no\n  threshold: 0.6\n\n# next\nmodel: {}\n",
        ),
        (
            "compression:\n   enabled: no # off\nmodel: {}\n",
            "compression:\n   enabled: no # off\n   threshold: 0.6\nmodel: {}\n",
        ),
        ("compression:\nmodel: {}\n", "compression:\n  threshold: 0.6\nmodel: {}\n"),
        ("compression: # all default\n", "compression: # all default\n  threshold: 0.6\n"),
        ("compression: ~ # none\n", "compression: {threshold: 0.6} # none\n"),
        ("compression: {}\n", "compression: {threshold: 0.6}\n"),
        ("compression: { enabled: no }\n", "compression: { enabled: no, threshold: 0.6 }\n"),
        (
            "compression: {\n  enabled: no, # off\n}\n",
            "compression: {\n  enabled: no, threshold: 0.6, # off\n}\n",
        ),
        ("{model: {}}", "{model: {}, compression: {threshold: 0.6}}"),
        ("{}", "{compression: {threshold: 0.6}}"),
        ("compression:\r\n  enabled: no\r\n", "compression:\r\n  enabled: no\r\n  threshold: 0.6\r\n"),
        (
            "compression:\n  enabled: |+\n    yes\n\n\nmodel: {}\n",
            "compression:\n  enabled: |+\n    yes\n\n\n  threshold: 0.6\nmodel: {}\n",
        ),
        (
            "compression:\n  models:\n    gpt: {threshold: 0.7}\n",
            "compression:\n  models:\n    gpt: {threshold: 0.7}\n  threshold: 0.6\n",
        ),
        ("terminal:\n- a\n- b\n", "terminal:\n- a\n- b\n\ncompression:\n  threshold: 0.6\n"),
    ] {
        assert_eq!(set(before, key, "0.6"), after, "{before:?}");
    }
}

#[test]
fn a_key_lands_below_its_commented_out_line() {
    let file = "compression:\n  # threshold: 0.5   (the default)\n  enabled: no\n  # target_ratio: 0.2\n\nmodel:\n  # default: x\n";
    assert_eq!(
        set(
            &set(&set(file, "compression.threshold", "0.6"), "compression.target_ratio", "0.3"),
            "model.default",
            "gpt-5"
        ),
        "compression:\n  # threshold: 0.5   (the default)\n  threshold: 0.6\n  enabled: no\n  # target_ratio: 0.2\n  target_ratio: 0.3\n\nmodel:\n  # default: x\n  default: gpt-5\n"
    );
    let all_out = "# compression:\n#   threshold: 0.5\n#   enabled: true\n\n# model:\n#   default: x\n";
    assert_eq!(
        set(all_out, "compression.threshold", "0.6"),
        "# compression:\n#   threshold: 0.5\n#   enabled: true\n\ncompression:\n  threshold: 0.6\n\n# model:\n#   default: x\n"
    );
    let one_out = "# compression:\n#   threshold: 0.5\n\nmodel:\n  default: x\n";
    assert_eq!(
        set(one_out, "compression.threshold", "0.6"),
        "# compression:\n#   threshold: 0.5\n\ncompression:\n  threshold: 0.6\n\nmodel:\n  default: x\n"
    );
}

#[test]
fn deeper_keys_and_tables_get_their_sections() {
    assert_eq!(
        set("", "auxiliary.compression.model", "gpt-5"),
        "auxiliary:\n  compression:\n    model: gpt-5\n"
    );
    assert_eq!(
        set("auxiliary:\n  vision: {}\n", "auxiliary.compression.timeout", "60"),
        "auxiliary:\n  vision: {}\n  compression:\n    timeout: 60\n"
    );
    assert_eq!(
        set("compression:\n  models: {}\n", "compression.models.gpt-5.5*.threshold", "0.7"),
        "compression:\n  models: {\"gpt-5.5*\": {threshold: 0.7}}\n"
    );
    let first = set("", "compression.models.*opus*.threshold", "0.7");
    assert_eq!(first, "compression:\n  models:\n    \"*opus*\":\n      threshold: 0.7\n");
    assert_eq!(
        set(&first, "compression.models.*opus*.threshold_tokens", "90_000"),
        "compression:\n  models:\n    \"*opus*\":\n      threshold: 0.7\n      threshold_tokens: 90000\n"
    );
}

#[test]
fn text_is_quoted_when_it_must_be_and_as_it_was() {
    let set_model = |file: &str, value: &str| set(file, "model.default", value);
    assert_eq!(set_model("model:\n  default: \"a\"\n", "b"), "model:\n  default: \"b\"\n");
    assert_eq!(set_model("model:\n  default: 'a'\n", "it's"), "model:\n  default: 'it''s'\n");
    for (value, written) in [
        ("claude-opus-4.6", "claude-opus-4.6"),
        ("anthropic/claude", "anthropic/claude"),
        ("yes", "\"yes\""),
        ("5", "\"5\""),
        ("a: b # c", "\"a: b # c\""),
        ("*star", "\"*star\""),
        ("say \"hi\" \\ now", "\"say \\\"hi\\\" \\\\ now\""),
        ("", "\"\""),
        ("modèle", "\"modèle\""),
    ] {
        assert_eq!(set_model("", value), format!("model:\n  default: {written}\n"));
    }
    assert_eq!(set("", "model.context_length", "null"), "model:\n  context_length: null\n");
    assert_eq!(set("", "compression.enabled", "off"), "compression:\n  enabled: false\n");
    assert_eq!(set("", "model.base_url", "http://${HOST}/v1"), "model:\n  base_url: \"http://${HOST}/v1\"\n");
}

#[test]
fn removing_leaves_comments_and_neighbours() {
    let key = "compression.threshold";
    for (before, after) in [
        ("compression:\n  threshold: 0.5\n  enabled: no\n", "compression:\n  enabled: no\n"),
        ("compression:\n  # about\n  threshold: 0.5 # why\n", "compression:\n  # about\n  # why\n"),
        ("compression:\n  threshold: 0.5", "compression:\n"),
        ("compression: {threshold: 0.5}\n", "compression: {}\n"),
        ("compression: {threshold: 0.5,}\n", "compression: {}\n"),
        ("compression: {threshold: 0.5, enabled: no}\n", "compression: {enabled: no}\n"),
        ("compression: {enabled: no, threshold: 0.5}\n", "compression: {enabled: no}\n"),
        (
            "compression: {enabled: no, threshold: 0.5, protect_last_n: 3}\n",
            "compression: {enabled: no, protect_last_n: 3}\n",
        ),
        ("compression:\n  threshold: |\n    0.5\n\n  enabled: no\n", "compression:\n\n  enabled: no\n"),
        ("compression:\n  enabled: no\n", "compression:\n  enabled: no\n"),
        ("compression: 5\n", "compression: 5\n"),
        ("", ""),
    ] {
        assert_eq!(unset(before, key), after, "{before:?}");
    }
    let editor = Editor::new("config.yaml", b"model: {}\n").unwrap();
    assert!(!editor.unset(key).unwrap().is_changed);
}

#[test]
fn entries_and_tables_can_be_removed_whole() {
    let file = "compression:\n  models:\n    # opus\n    opus:\n      threshold: 0.7 # late\n    gpt-5.5: {threshold: 0.6}\n  enabled: no\n";
    assert_eq!(
        unset(file, "compression.models.opus"),
        "compression:\n  models:\n    # opus\n    # late\n    gpt-5.5: {threshold: 0.6}\n  enabled: no\n"
    );
    assert_eq!(unset(file, "compression.models"), "compression:\n  # opus\n  # late\n  enabled: no\n");
    assert_eq!(
        unset(file, "compression.models.gpt-5.5.threshold"),
        "compression:\n  models:\n    # opus\n    opus:\n      threshold: 0.7 # late\n    gpt-5.5: {}\n  enabled: no\n"
    );
}

#[test]
fn old_names_are_written_under_the_present_one_and_removed_with_it() {
    let editor = Editor::new("config.yaml", b"compression:\n  summary_model: old # was\n").unwrap();
    let edit = editor.set("compression.summary_model", "new").unwrap();
    assert_eq!(edit.key, "auxiliary.compression.model");
    assert_eq!(
        edit.text,
        "compression:\n  summary_model: old # was\n\nauxiliary:\n  compression:\n    model: new\n"
    );
    assert_eq!(
        edit.warnings[0].to_string(),
        "config.yaml: compression.summary_model is read as auxiliary.compression.model, its present name"
    );
    assert_eq!(
        unset(&edit.text, "auxiliary.compression.model"),
        "compression:\n  # was\n\nauxiliary:\n  compression:\n"
    );
    assert_eq!(
        unset(
            "compression:\n  model_thresholds: {glm-5.2: 0.4, gpt: 0.5}\n",
            "compression.models.glm-5.2.threshold"
        ),
        "compression:\n  model_thresholds: {gpt: 0.5}\n"
    );
}

#[test]
fn a_section_written_as_one_value_is_that_value() {
    assert_eq!(set("model: gpt-5 # mine\n", "model.default", "gpt-5.5"), "model: gpt-5.5 # mine\n");
    assert_eq!(unset("model: gpt-5 # mine\n", "model.default"), "# mine\n");
    assert_eq!(unset("model: {default: gpt-5}\n", "model.default"), "model: {}\n");
}

#[test]
fn what_cannot_be_done_is_said() {
    let cases = [
        ("", "compression.threshold", "1.7"),
        ("", "compression.treshold", "0.6"),
        ("", "compression", "0.6"),
        ("", "compression.models", "{}"),
        ("", "compression.models.gpt-5", "0.6"),
        ("", "", "x"),
        ("compression: [\n", "compression.threshold", "0.6"),
        ("compression:\n\tthreshold: 1\n", "compression.threshold", "0.6"),
        ("- list\n", "compression.threshold", "0.6"),
        ("compression: 5\n", "compression.threshold", "0.6"),
        ("model: gpt-5\n", "model.provider", "openai"),
        ("compression:\n  threshold: [0.5]\n", "compression.threshold", "0.6"),
        ("base: &b {threshold: 0.5}\ncompression: *b\n", "compression.threshold", "0.6"),
        ("compression: &c\n  threshold: 0.5\nother: *c\n", "compression.threshold", "0.6"),
        ("compression:\n  threshold: &t 0.5\n  target_ratio: *t\n", "compression.threshold", "0.6"),
        ("? compression\n: threshold: 0.5\n", "compression.enabled", "no"),
        ("", "auxiliary.compression.api_key_env", "sk-live-123"),
    ];
    let sheet: Vec<String> = cases
        .iter()
        .map(|(file, key, value)| {
            let editor = Editor::new("config.yaml", file.as_bytes());
            let outcome = match editor.and_then(|editor| editor.set(key, value)) {
                Ok(edit) => format!("wrote\n{}", edit.text),
                Err(errors) => errors.to_string(),
            };
            format!("{file}set {key} {value}\n=> {outcome}\n")
        })
        .collect();
    insta::assert_snapshot!(sheet.join("\n"));
}

#[test]
fn an_alias_in_the_way_of_removing_is_said_too() {
    let editor = Editor::new("config.yaml", b"base: &b {threshold: 0.5}\ncompression: *b\n").unwrap();
    let error = editor.unset("compression.threshold").unwrap_err().to_string();
    assert!(
        error.starts_with("config.yaml:2: compression.threshold cannot be changed: an alias stands there"),
        "{error}"
    );
}

#[test]
fn the_default_file_can_be_edited_key_by_key() {
    let mut text = Settings::default_file().to_owned();
    let comments = text.lines().filter(|line| line.trim_start().starts_with('#')).count();
    for value in Loader::new().load().unwrap().values {
        let new = match value.datum {
            Datum::Switch(on) => (!on).to_string(),
            Datum::Whole(number) => (number + 1).to_string(),
            Datum::Number(number) if number > 1.0 => "60".to_owned(),
            Datum::Number(_) => "0.33".to_owned(),
            Datum::Absent if value.key.ends_with(".models") || value.key.ends_with(".upstreams") => continue,
            Datum::Absent
                if ["economy.clients", "economy.tokens", "store.retention.owners"]
                    .contains(&value.key.as_str()) =>
            {
                continue;
            }
            Datum::Absent if value.key.ends_with("price_per_million") => "0.5".to_owned(),
            Datum::Absent if value.key.starts_with("economy.") => "true".to_owned(),
            Datum::Absent if value.key.ends_with("parallel_requests") => "4".to_owned(),
            Datum::Absent => "4321".to_owned(),
            Datum::Text(_) | Datum::Secret(_)
                if ["store.url", "store.direct_url"].contains(&value.key.as_str()) =>
            {
                "postgres://me@db/record".to_owned()
            }
            Datum::Text(_) if value.key.ends_with("_url") => "https://example.com/v1".to_owned(),
            Datum::Text(_) if value.key.ends_with("cache_ttl") => "1h".to_owned(),
            Datum::Text(_) if value.key == "context.fallback" => "compressor".to_owned(),
            Datum::Text(_) if value.key == "economy.mode" => "thrift".to_owned(),
            Datum::Text(_) if value.key == "gateway.log" => "json".to_owned(),
            Datum::Text(_) if value.key.ends_with(".wire") => "chat".to_owned(),
            Datum::Text(_) | Datum::Secret(_) => "other".to_owned(),
        };
        text = set(&text, &value.key, &new);
        let loaded = Loader::new().file("config.yaml", text.clone()).load().unwrap();
        let found = loaded.values.iter().find(|other| other.key == value.key).unwrap();
        assert_ne!(found.datum, value.datum, "{}", value.key);
    }
    assert_eq!(text.lines().count(), Settings::default_file().lines().count());
    assert_eq!(text.lines().filter(|line| line.trim_start().starts_with('#')).count(), comments);
}

/// A settings file as people write them: sections in any order, block or flow, with comments of all sorts.
fn file() -> impl Strategy<Value = String> {
    let comment =
        prop_oneof![Just(""), Just("  # inline"), Just(" # threshold: 9"), Just("   # ünï: {code}")];
    let line = (
        prop::sample::select(vec![
            "enabled: yes",
            "threshold: 0.5",
            "threshold: '0.4'",
            "protect_last_n: 7",
            "target_ratio:",
            "models: {}",
            "models: {gpt: {threshold: 0.6}, \"*\": {}}",
            "in_place: true",
            "odd: [1, 2]",
            "text: |\n      a\n      b\n",
            "nested:\n      deep: 1 # d\n      deeper: {a: 1}",
            "# threshold: 0.3",
            "# nothing",
            "",
            "hygiene_ratio: .9",
        ]),
        comment,
    );
    let section = (
        prop::sample::select(vec!["compression", "model", "auxiliary", "terminal", "tool_output"]),
        prop_oneof![Just(""), Just(" # about"), Just(" ")],
        prop::collection::vec(line, 0..6),
        prop_oneof![Just(""), Just("\n"), Just("# between\n"), Just("\n  # indented\n\n")],
    );
    let flow = prop_oneof![
        Just(""),
        Just("context: {engine: compressor} # flow\n"),
        Just("security: {}\n"),
        Just("prompt_caching: ~\n")
    ];
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::collection::vec(section, 0..4), flow, ending, any::<bool>()).prop_map(
        |(sections, flow, ending, cut_end)| {
            let mut seen = std::collections::HashSet::new();
            let mut text = String::new();
            for (name, about, lines, after) in sections {
                if !seen.insert(name) {
                    continue;
                }
                text.push_str(&format!("{name}:{about}\n"));
                let mut keys = std::collections::HashSet::new();
                for (line, comment) in lines {
                    let is_key = !line.is_empty() && !line.starts_with('#');
                    if is_key && !keys.insert(line.split(':').next()) {
                        continue;
                    }
                    let comment = if line.contains('\n') || !is_key { "" } else { comment };
                    text.push_str(&format!("    {line}{comment}\n"));
                }
                text.push_str(after);
            }
            text.push_str(flow);
            let text = text.replace('\n', ending);
            if cut_end { text.trim_end().to_owned() } else { text }
        },
    )
}

fn change() -> impl Strategy<Value = (&'static str, String)> {
    prop_oneof![
        (0.05f64..0.95).prop_map(|ratio| ("compression.threshold", format!("{ratio:.3}"))),
        (0.05f64..0.95).prop_map(|ratio| ("compression.models.gpt.threshold", format!("{ratio:.3}"))),
        (1u64..1000).prop_map(|tokens| ("compression.models.new-5.5.threshold_tokens", tokens.to_string())),
        any::<bool>().prop_map(|on| ("security.redact_secrets", on.to_string())),
        (1u64..10_000).prop_map(|tokens| ("model.context_length", tokens.to_string())),
        "[ -~é*{}:#&!'\"]{0,12}".prop_map(|text| ("model.default", text)),
        "[ -~]{0,12}".prop_map(|text| ("auxiliary.compression.api_key", text)),
        prop_oneof![Just("5m"), Just("1h")].prop_map(|ttl| ("prompt_caching.cache_ttl", ttl.to_owned())),
        "[a-z]{1,8}".prop_map(|name| ("context.engine", name)),
    ]
}

fn comments(text: &str) -> Vec<String> {
    let mut found: Vec<String> =
        yaml::parse(text).unwrap().comments.into_iter().map(|comment| comment.text).collect();
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(2_000)))]

    #[test]
    fn setting_gives_that_value_and_keeps_everything_else(file in file(), (key, value) in change()) {
        let editor = Editor::new("f", file.as_bytes()).unwrap();
        let edit = editor.set(key, &value).unwrap();
        let before = Loader::new().file("f", file.clone()).load();
        let after = Loader::new().file("f", edit.text.clone()).load();
        if let (Ok(before), Ok(after)) = (&before, &after) {
            let expected = Loader::new().flag("--set", key, value.clone()).load().unwrap();
            let of = |loaded: &crate::Loaded| loaded.values.iter().find(|found| found.key == key).map(|found| found.datum.clone());
            // A value that names a variable is expanded when it comes from a file.
            if !value.contains("${") {
                prop_assert_eq!(of(after), of(&expected));
            }
            let origin = after.values.iter().find(|found| found.key == key).map(|found| found.origin.clone());
            let is_from_file = matches!(origin, Some(ValueOrigin::File { .. }));
            prop_assert!(is_from_file);
            for found in before.values.iter().filter(|found| found.key != key && found.key != "compression.models") {
                let same = after.values.iter().find(|other| other.key == found.key).map(|other| other.datum.clone());
                prop_assert_eq!(same.as_ref(), Some(&found.datum));
            }
        } else {
            prop_assert!(before.is_err(), "a good file became bad: {:?}", after);
        }
        prop_assert_eq!(comments(&file), comments(&edit.text));
        for line in file.lines().filter(|line| line.trim_start().starts_with('#')) {
            prop_assert!(edit.text.lines().any(|other| other.trim_end() == line.trim_end()), "lost {:?}", line);
        }
        let blank = |text: &str| text.lines().filter(|line| line.trim().is_empty()).count();
        prop_assert!(blank(&edit.text) >= blank(&file), "lost a blank line");
        prop_assert!(!edit.text.replace("\r\n", "").contains('\n') || !file.contains("\r\n"), "mixed line ends");
    }

    #[test]
    fn setting_twice_changes_nothing_and_unsetting_takes_it_back(file in file(), (key, value) in change()) {
        let once = Editor::new("f", file.as_bytes()).unwrap().set(key, &value).unwrap();
        let editor = Editor::new("f", once.text.as_bytes()).unwrap();
        prop_assert!(!editor.set(key, &value).unwrap().is_changed);
        let gone = editor.unset(key).unwrap();
        prop_assert_eq!(comments(&file), comments(&gone.text));
        let again = Editor::new("f", gone.text.as_bytes()).unwrap().unset(key).unwrap();
        prop_assert!(!again.is_changed);
        if let Ok(loaded) = Loader::new().file("f", gone.text).load() {
            let is_default = loaded.values.iter().filter(|found| found.key == key).all(|found| found.origin == ValueOrigin::Default);
            prop_assert!(is_default);
        }
    }

    #[test]
    fn no_text_makes_it_panic_or_break_a_file(text in crate::loader::tests::yaml_soup(), (key, value) in change()) {
        if let Ok(editor) = Editor::new("f", text.as_bytes()) {
            for edit in [editor.set(key, &value), editor.unset(key)].into_iter().flatten() {
                prop_assert!(yaml::parse(&edit.text).is_ok());
                prop_assert_eq!(comments(&text), comments(&edit.text));
            }
        }
    }
}
