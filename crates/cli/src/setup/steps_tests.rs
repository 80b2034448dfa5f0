//! Settings are written without other changes, and removed again, whatever was changed in the file in between.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn edit(path: &[&str], value: Value) -> SettingEdit {
    SettingEdit { path: path.iter().map(|name| (*name).to_owned()).collect(), value }
}

const URL: &str = "http://127.0.0.1:8790";

fn json_edits() -> Vec<SettingEdit> {
    vec![
        edit(&["env", "ANTHROPIC_BASE_URL"], json!(URL)),
        edit(&["mcpServers", "throughline"], json!({ "command": "throughline", "args": ["mcp"] })),
    ]
}

fn toml_edits() -> Vec<SettingEdit> {
    vec![
        edit(&["openai_base_url"], json!(format!("{URL}/v1"))),
        edit(&["mcp_servers", "throughline"], json!({ "command": "throughline", "args": ["mcp"] })),
    ]
}

fn yaml_edits() -> Vec<SettingEdit> {
    vec![
        edit(&["model", "base_url"], json!(format!("{URL}/v1"))),
        edit(&["compression", "enabled"], json!(false)),
        edit(&["mcp_servers", "throughline"], json!({ "command": "throughline", "args": ["mcp"] })),
    ]
}

/// Whether `after` contains all characters of `before` in order, so that nothing was removed.
fn is_kept(before: &str, after: &str) -> bool {
    let mut letters = after.chars();
    before.chars().all(|letter| letters.any(|other| other == letter))
}

#[track_caller]
fn check(format: FileFormat, before: &str, edits: &[SettingEdit]) -> String {
    let (after, written) = apply(format, before, edits).unwrap_or_else(|error| panic!("{before}: {error:?}"));
    assert!(is_kept(before, &after), "{before}\n---\n{after}");
    for edit in edits {
        assert_eq!(format.value(&after, &edit.path).unwrap(), Some(format.as_data(&edit.value)), "{after}");
    }
    assert_eq!(undo(format, &after, &written).unwrap().text, before, "{after}");
    let (again, nothing) = apply(format, &after, edits).unwrap();
    assert_eq!((again.as_str(), nothing.len()), (after.as_str(), 0));
    after
}

#[test]
fn json_settings_are_written_and_taken_out() {
    let after = check(FileFormat::Json, "{\n  \"theme\": \"dark\"\n}\n", &json_edits()[..1]);
    assert_eq!(
        after,
        "{\n  \"theme\": \"dark\",\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:8790\"\n  }\n}\n"
    );
    for before in [
        "",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "{\"a\":1}",
        "{\"a\": 1, \"env\": {}}",
        "{\n\t\"env\": {\n\t\t\"X\": \"1\"\n\t},\n\t\"b\": [1, 2]\n}",
        "{\r\n  \"a\": 1\r\n}\r\n",
        "{\n  // a note\n  \"a\": 1, // another, with }\n}\n",
        "{\n  \"a\": 1 // the last\n}\n",
        "{\n  \"a\": 1,\n}\n",
        "{\n  /* nothing */\n}\n",
        "// only a note\n",
        "{\"env\": {\"X\": \"a \\\" } b\"}, \"mcpServers\": {\"other\": {\"command\": \"x\"}}}",
    ] {
        check(FileFormat::Json, before, &json_edits());
    }
}

#[test]
fn toml_settings_are_written_and_taken_out() {
    for before in [
        "",
        "# a note\n",
        "model = \"x\"\n",
        "model = \"x\" # a note",
        "# a note\n[profiles.a]\nmodel = \"x\"\n",
        "model = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n",
        "model = \"x\"\r\nlist = [\r\n  1,\r\n  2,\r\n]\r\n\r\n[a]\r\nb = 1\r\n",
        "text = \"\"\"\n[not.a.table]\n\"\"\"\na.b = 1\n[[list]]\nx = 1\n",
    ] {
        let after = check(FileFormat::Toml, before, &toml_edits());
        assert!(after.contains("[mcp_servers.throughline]"), "{after}");
    }
    let (after, _) = apply(FileFormat::Toml, "model = \"x\"\n\n[a]\nb = 1\n", &toml_edits()[..1]).unwrap();
    assert_eq!(after, "model = \"x\"\nopenai_base_url = \"http://127.0.0.1:8790/v1\"\n\n[a]\nb = 1\n");
}

#[test]
fn yaml_settings_are_written_and_taken_out() {
    for before in [
        "",
        "# a note\n",
        "model:\n  default: x\n",
        "model:\n  default: x # a note\n\n# another\nother: [1, 2]\n",
        "model:\n    default: x\ncompression:\n    threshold: 0.5",
        "model:\r\n  default: x\r\nlist:\r\n- a\r\n- b\r\n",
        "text: |\n  line\n  line\nmodel:\n  text: |\n    more\n",
        "mcp_servers:\n  other:\n    command: y\n",
    ] {
        check(FileFormat::Yaml, before, &yaml_edits());
    }
}

#[test]
fn values_that_were_there_come_back() {
    for (format, before, edits) in [
        (FileFormat::Json, "{\"env\": {\"ANTHROPIC_BASE_URL\" :  \"http://own\" }}", &json_edits()[..1]),
        (FileFormat::Toml, "openai_base_url = 'http://own' # mine\n", &toml_edits()[..1]),
        (FileFormat::Yaml, "model:\n  base_url: \"http://own\" # mine\n", &yaml_edits()[..1]),
    ] {
        assert_eq!(replaced(format, before, edits).unwrap().len(), 1);
        let (after, written) = apply(format, before, edits).unwrap();
        assert!(after.contains(URL) && !after.contains("http://own"), "{after}");
        assert_eq!(
            undo(format, &after, &written).unwrap(),
            Removal { text: before.to_owned(), changed: Vec::new() }
        );
    }
}

#[test]
fn values_that_were_changed_since_stay() {
    let (after, written) = apply(FileFormat::Json, "{}", &json_edits()).unwrap();
    let changed = after.replace(URL, "http://other");
    let undone = undo(FileFormat::Json, &changed, &written).unwrap();
    assert_eq!(undone.changed, [json_edits()[0].path.clone()]);
    assert_eq!(
        FileFormat::Json.data(&undone.text).unwrap(),
        json!({ "env": { "ANTHROPIC_BASE_URL": "http://other" } })
    );
}

#[test]
fn files_that_are_not_what_they_should_be_are_refused() {
    for (format, text) in [
        (FileFormat::Json, "{\"a\": 1"),
        (FileFormat::Json, "[1]"),
        (FileFormat::Json, "{\"a\": 1, \"a\": 2}"),
        (FileFormat::Toml, "a = \n"),
        (FileFormat::Yaml, "a: [1\n"),
        (FileFormat::Yaml, "- a\n"),
        (FileFormat::Yaml, "a: 1\n---\nb: 1\n"),
    ] {
        let edits = [edit(&["key"], json!("x"))];
        assert!(matches!(apply(format, text, &edits), Err(EditRefusal::Invalid(_))), "{text}");
    }
    for (format, text) in [
        (FileFormat::Json, "{\"key\": 1}"),
        (FileFormat::Toml, "key = 1\n"),
        (FileFormat::Yaml, "key: 1\n"),
        (FileFormat::Yaml, "key: {a: 1}\n"),
    ] {
        let edits = [edit(&["key", "inner"], json!("x"))];
        assert_eq!(apply(format, text, &edits), Err(EditRefusal::Unusual), "{text}");
    }
}

/// A settings file: keys with values, comments and blank lines between them.
#[derive(Clone, Debug)]
struct Generated {
    entries: Vec<(String, Value)>,
    comments: bool,
    compact: bool,
    newline: &'static str,
}

fn generated() -> impl Strategy<Value = Generated> {
    let scalar = prop_oneof![
        "[a-z {}#:,/\"]{0,8}".prop_map(|text| json!(text)),
        any::<i16>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(|answer| json!(answer)),
    ];
    let value = prop_oneof![
        3 => scalar.clone(),
        1 => proptest::collection::vec(scalar.clone(), 1..3).prop_map(Value::Array),
        2 => proptest::collection::btree_map("[a-z]{1,5}", scalar, 1..4)
            .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
    ];
    let key = prop_oneof![4 => "[a-z]{1,6}", 1 => Just("env".to_owned()), 1 => Just("model".to_owned()), 1 => Just("mcp_servers".to_owned())];
    let entries = proptest::collection::btree_map(key, value, 0..6);
    (entries, any::<bool>(), any::<bool>(), prop_oneof![Just("\n"), Just("\r\n")]).prop_map(
        |(entries, comments, compact, newline)| Generated {
            entries: entries
                .into_iter()
                .filter(|(name, value)| {
                    // Sections for settings must be sections in the file.
                    !["env", "model", "mcp_servers"].contains(&name.as_str()) || value.is_object()
                })
                .collect(),
            comments,
            compact,
            newline,
        },
    )
}

impl Generated {
    fn text(&self, format: FileFormat) -> String {
        let text = match format {
            FileFormat::Json => self.json(),
            FileFormat::Toml => self.toml(),
            FileFormat::Yaml => self.yaml(),
        };
        text.replace('\n', self.newline)
    }

    fn note(&self, start: &str) -> String {
        if self.comments { format!(" {start} a note: {{1}}") } else { String::new() }
    }

    fn json(&self) -> String {
        let map: Map<String, Value> = self.entries.iter().cloned().collect();
        if self.compact {
            return Value::Object(map).to_string();
        }
        let lines: Vec<String> =
            self.entries.iter().map(|(name, value)| format!("    {}: {value}", json!(name))).collect();
        match self.comments {
            true => format!(
                "// head\n{{\n{}{}\n}}\n",
                lines.join(", // a note\n"),
                if lines.is_empty() { "  // none" } else { " // last" }
            ),
            false => format!("{{\n{}\n}}\n", lines.join(",\n")),
        }
    }

    fn toml(&self) -> String {
        let mut text = if self.comments { "# head\n\n".to_owned() } else { String::new() };
        let is_table = |value: &Value| value.is_object();
        for (name, value) in self.entries.iter().filter(|(_, value)| !is_table(value)) {
            text.push_str(&format!("{name} = {value}{}\n", self.note("#")));
        }
        for (name, value) in self.entries.iter().filter(|(_, value)| is_table(value)) {
            text.push_str(&format!("\n[{name}]{}\n", self.note("#")));
            for (name, value) in value.as_object().unwrap() {
                text.push_str(&format!("{name} = {value}\n"));
            }
        }
        if self.compact { text.trim_end().to_owned() } else { text }
    }

    fn yaml(&self) -> String {
        let mut text = if self.comments { "# head\n".to_owned() } else { String::new() };
        for (name, value) in &self.entries {
            match value {
                Value::Object(map) => {
                    text.push_str(&format!("\"{name}\":{}\n", self.note("#")).replace('"', ""));
                    for (name, value) in map {
                        text.push_str(&format!("  {}: {value}\n", json!(name)));
                    }
                }
                value => text.push_str(&format!("{}: {value}{}\n", json!(name), self.note("#"))),
            }
            if self.comments {
                text.push_str("\n# between\n");
            }
        }
        if self.compact { text.trim_end().to_owned() } else { text }
    }
}

fn of(format: FileFormat) -> Vec<SettingEdit> {
    match format {
        FileFormat::Json => json_edits(),
        FileFormat::Toml => toml_edits(),
        FileFormat::Yaml => yaml_edits(),
    }
}

fn formats() -> impl Strategy<Value = FileFormat> {
    prop_oneof![Just(FileFormat::Json), Just(FileFormat::Toml), Just(FileFormat::Yaml)]
}

/// An edit by another program, made to the file with and without our settings.
fn elsewhere(format: FileFormat, text: &str, name: &str, value: &Value) -> Option<String> {
    format.set(text, &[name.to_owned()], value).ok()?.apply(text)
}

proptest! {
    #[test]
    fn undo_gives_the_original_bytes_back(file in generated(), format in formats()) {
        let before = file.text(format);
        let Ok((after, written)) = apply(format, &before, &of(format)) else {
            // A refusal is allowed if a section has an unusual form.
            return Ok(());
        };
        prop_assert!(is_kept(&before, &after), "{before}\n---\n{after}");
        prop_assert_eq!(undo(format, &after, &written).unwrap().text, before, "{}", after);
    }

    #[test]
    fn undo_after_edits_elsewhere_leaves_what_they_would_have_left(
        file in generated(),
        format in formats(),
        names in proptest::collection::vec("[a-z]{7,9}", 1..4),
        value in "[a-z]{1,8}",
        reformat in any::<bool>(),
    ) {
        let before = file.text(format);
        let Ok((after, written)) = apply(format, &before, &of(format)) else { return Ok(()) };
        let (mut with, mut without) = (after, before);
        for name in &names {
            let value = json!(value);
            let (Some(one), Some(other)) =
                (elsewhere(format, &with, name, &value), elsewhere(format, &without, name, &value)) else { return Ok(()) };
            (with, without) = (one, other);
        }
        // Also removes existing entries.
        for (name, value) in file.entries.iter().take(1).filter(|(_, value)| !value.is_object()) {
            let path = [name.clone()];
            let (Ok(one), Ok(other)) = (format.remove(&with, &path), format.remove(&without, &path)) else { return Ok(()) };
            (with, without) = (one.apply(&with).unwrap(), other.apply(&without).unwrap());
            prop_assert_eq!(format.value(&with, &path).unwrap(), None, "{}", value);
        }
        if reformat && format == FileFormat::Json {
            // As a program does that parses its settings and rewrites the whole file.
            with = serde_json::to_string_pretty(&format.data(&with).unwrap()).unwrap();
        }
        let undone = undo(format, &with, &written).unwrap();
        prop_assert_eq!(format.data(&undone.text).unwrap(), format.data(&without).unwrap(), "{}", with);
        prop_assert!(undone.changed.is_empty());
        prop_assert!(is_kept(&undone.text, &with), "{}\n---\n{}", with, undone.text);
    }
}
