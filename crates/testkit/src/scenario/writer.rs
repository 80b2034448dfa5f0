//! Writes the messages of a scenario in one of the three wire formats, with the tools of an agent that uses it.

use throughline_transcript::{Role, WireFormat, compact_json_string, text_message, tool_result_stub};

use crate::code::{self, Language};
use crate::json_text::{Object, Style};
use crate::rng::Rng;

/// The list being written.
pub(super) struct Writer {
    pub(super) rng: Rng,
    wire_format: WireFormat,
    pub(super) json: Vec<String>,
    calls: usize,
}

impl Writer {
    pub(super) fn new(wire_format: WireFormat, seed: u64) -> Self {
        Self { rng: Rng::new(seed), wire_format, json: Vec::new(), calls: 0 }
    }

    /// Writes a message and returns its index.
    pub(super) fn say(&mut self, role: Role, text: &str) -> usize {
        self.json.push(text_message(self.wire_format, role, text));
        self.json.len() - 1
    }

    /// Writes a tool call with its result.
    pub(super) fn call(&mut self, note: &str, tool: &str, arguments: &str, result: &str) {
        self.calls += 1;
        let id = format!("call_{:04}", self.calls);
        let told = tool_result_stub(self.wire_format, &id, result);
        let (note_json, arguments_json) = (compact_json_string(note), compact_json_string(arguments));
        match self.wire_format {
            WireFormat::Chat => {
                self.json.push(format!(
                    r#"{{"role":"assistant","content":{note_json},"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":{arguments_json}}}}}]}}"#
                ));
                self.json.push(told);
            }
            WireFormat::Anthropic => {
                let text = if note.is_empty() {
                    String::new()
                } else {
                    format!(r#"{{"type":"text","text":{note_json}}},"#)
                };
                self.json.push(format!(
                    r#"{{"role":"assistant","content":[{text}{{"type":"tool_use","id":"{id}","name":"{tool}","input":{arguments}}}]}}"#
                ));
                self.json.push(format!(r#"{{"role":"user","content":[{told}]}}"#));
            }
            WireFormat::Responses => {
                if !note.is_empty() {
                    self.say(Role::Assistant, note);
                }
                self.json.push(format!(
                    r#"{{"type":"function_call","call_id":"{id}","name":"{tool}","arguments":{arguments_json}}}"#
                ));
                self.json.push(told);
            }
        }
    }

    /// Writes the read of a file; `line` is inserted in the middle of its text.
    pub(super) fn read(&mut self, note: &str, file: &str, line: Option<&str>) {
        let mut text = String::new();
        let bytes = self.rng.between(300, 1_600);
        code::source(&mut self.rng, Language::of_path(file), bytes, &mut text);
        if let Some(line) = line {
            text.push_str(line);
            text.push('\n');
            code::source(&mut self.rng, Language::of_path(file), 200, &mut text);
        }
        let (tool, key) = match self.wire_format {
            WireFormat::Anthropic => ("Read", "file_path"),
            WireFormat::Chat | WireFormat::Responses => ("read_file", "path"),
        };
        self.call(note, tool, &object().text(key, file).end(), &text);
    }

    /// Writes the edit of a file.
    pub(super) fn edit(&mut self, note: &str, file: &str) {
        let (mut old, mut new) = (String::new(), String::new());
        code::source(&mut self.rng, Language::of_path(file), 80, &mut old);
        code::source(&mut self.rng, Language::of_path(file), 140, &mut new);
        match self.wire_format {
            WireFormat::Chat => {
                let arguments = object().text("path", file).text("old_string", &old).text("new_string", &new);
                self.call(note, "patch", &arguments.end(), r#"{"success":true}"#);
            }
            WireFormat::Anthropic => {
                let arguments =
                    object().text("file_path", file).text("old_string", &old).text("new_string", &new);
                self.call(note, "Edit", &arguments.end(), &format!("The file {file} has been updated."));
            }
            WireFormat::Responses => {
                let line = |sign: char, text: &str| -> String {
                    text.lines().map(|line| format!("{sign}{line}\n")).collect()
                };
                let patch = format!(
                    "*** Begin Patch\n*** Update File: {file}\n@@\n{}{}*** End Patch\n",
                    line('-', &old),
                    line('+', &new)
                );
                self.call(
                    note,
                    "apply_patch",
                    &object().text("input", &patch).end(),
                    "Success. Updated the following files:\nM ",
                );
            }
        }
    }

    /// Writes the run of a command. Behind a pipe, its exit code is not visible.
    pub(super) fn run(&mut self, note: &str, command: &str, has_failed: bool) {
        let is_piped = command.contains(" | ");
        let output = if has_failed {
            "--- FAIL: TestRows (0.02s)\n    rows_test.go:41: got 3 rows, want 4\nFAIL\nFAIL\texample.org/app/rows\t0.031s"
        } else {
            "ok  \texample.org/app/rows\t0.029s\nok  \texample.org/app/io\t0.112s"
        };
        let code = u8::from(has_failed && !is_piped);
        match self.wire_format {
            WireFormat::Chat => {
                let result = object().text("output", output).raw("exit_code", &code.to_string()).end();
                self.call(note, "terminal", &object().text("command", command).end(), &result);
            }
            WireFormat::Anthropic => {
                let result = if code > 0 { format!("Exit code {code}\n{output}") } else { output.to_owned() };
                self.call(note, "Bash", &object().text("command", command).end(), &result);
            }
            WireFormat::Responses => {
                let metadata =
                    object().raw("exit_code", &code.to_string()).raw("duration_seconds", "0.4").end();
                let result = object().text("output", output).raw("metadata", &metadata).end();
                let words = ["bash", "-lc", command].map(compact_json_string);
                self.call(note, "shell", &object().list("command", &words).end(), &result);
            }
        }
    }

    /// Writes a call that the user refused, with the user's reason.
    pub(super) fn refused(&mut self, file: &str, said: &str) -> usize {
        let result = format!(
            "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to \
             proceed, the user said:\n{said}"
        );
        let arguments =
            object().text("file_path", file).text("old_string", "a").text("new_string", "b").end();
        self.call("", "Edit", &arguments, &result);
        self.json.len() - 1
    }
}

/// An object in the compact style.
pub(super) fn object() -> Object {
    Object::new(Style::default())
}
