//! Writing a small conversation of any wire, message by message.

use throughline_transcript::{Role, WireFormat, compact_json_string, text_message, tool_result_stub};

use crate::harness::Case;

/// A conversation being written.
pub(crate) struct Talk {
    wire_format: WireFormat,
    pub(crate) json: Vec<String>,
    calls_made: usize,
}

/// A tool, its arguments as JSON, and what it answered.
pub(crate) type Call<'a> = (&'a str, &'a str, &'a str);

impl Talk {
    pub(crate) fn new(wire_format: WireFormat) -> Self {
        Self { wire_format, json: Vec::new(), calls_made: 0 }
    }

    /// Goes on from a compacted list.
    pub(crate) fn after(case: &Case) -> Self {
        let json = case.messages.iter().map(|message| message.json().to_owned()).collect();
        Self { wire_format: case.wire_format, json, calls_made: 1_000 * case.messages.len() }
    }

    pub(crate) fn case(&self) -> Case {
        Case::from_json(self.wire_format, self.json.clone())
    }

    pub(crate) fn says(&mut self, role: Role, text: &str) -> &mut Self {
        self.json.push(text_message(self.wire_format, role, text));
        self
    }

    pub(crate) fn system(&mut self, text: &str) -> &mut Self {
        self.says(Role::System, text)
    }

    pub(crate) fn user(&mut self, text: &str) -> &mut Self {
        self.says(Role::User, text)
    }

    pub(crate) fn answer(&mut self, text: &str) -> &mut Self {
        self.says(Role::Assistant, text)
    }

    /// One call with its result.
    pub(crate) fn step(&mut self, tool: &str, arguments: &str, result: &str) -> &mut Self {
        self.steps(&[(tool, arguments, result)])
    }

    /// Calls of one answer, made together, with their results.
    pub(crate) fn steps(&mut self, calls: &[Call<'_>]) -> &mut Self {
        let ids = self.ask(calls);
        let results: Vec<String> =
            ids.iter().zip(calls).map(|(id, call)| tool_result_stub(self.wire_format, id, call.2)).collect();
        if self.wire_format == WireFormat::Anthropic {
            self.json.push(format!(r#"{{"role":"user","content":[{}]}}"#, results.join(",")));
        } else {
            self.json.extend(results);
        }
        self
    }

    /// Calls whose results are still on the way.
    pub(crate) fn open(&mut self, calls: &[Call<'_>]) -> &mut Self {
        self.ask(calls);
        self
    }

    fn ask(&mut self, calls: &[Call<'_>]) -> Vec<String> {
        let ids: Vec<String> = (0..calls.len()).map(|n| format!("call_{}", self.calls_made + n)).collect();
        self.calls_made += calls.len();
        let written = ids.iter().zip(calls).map(|(id, (tool, arguments, _))| {
            let text = compact_json_string(arguments);
            match self.wire_format {
                WireFormat::Chat => format!(
                    r#"{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":{text}}}}}"#
                ),
                WireFormat::Responses => format!(
                    r#"{{"type":"function_call","call_id":"{id}","name":"{tool}","arguments":{text}}}"#
                ),
                WireFormat::Anthropic => {
                    format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{arguments}}}"#)
                }
            }
        });
        let written: Vec<String> = written.collect();
        match self.wire_format {
            WireFormat::Responses => self.json.extend(written),
            WireFormat::Chat => self.json.push(format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#,
                written.join(",")
            )),
            WireFormat::Anthropic => {
                self.json.push(format!(r#"{{"role":"assistant","content":[{}]}}"#, written.join(",")));
            }
        }
        ids
    }
}
