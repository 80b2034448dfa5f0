//! A client with a tool, on any wire.

use serde_json::{Value, json};
use throughline_transcript::WireFormat;
use throughline_wire::{Answer, Delta, StreamDecoder};

use crate::stage::{MODEL, Stage};

/// A client that keeps its conversation as its wire has it.
pub(crate) struct Talk {
    pub(crate) wire: WireFormat,
    pub(crate) messages: Vec<Value>,
}

impl Talk {
    pub(crate) fn say(&mut self, text: &str) {
        self.messages.push(json!({ "role": "user", "content": text }));
    }

    pub(crate) fn body(&self, stream: bool) -> String {
        let list = if self.wire == WireFormat::Responses { "input" } else { "messages" };
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tool = match self.wire {
            WireFormat::Chat => {
                json!({ "type": "function", "function": { "name": "read", "parameters": schema } })
            }
            WireFormat::Responses => json!({ "type": "function", "name": "read", "parameters": schema }),
            WireFormat::Anthropic => json!({ "name": "read", "input_schema": schema }),
        };
        let cap = if self.wire == WireFormat::Responses { "max_output_tokens" } else { "max_tokens" };
        let mut body =
            json!({ "model": MODEL, cap: 500, "stream": stream, "tools": [tool], list: self.messages });
        if stream && self.wire == WireFormat::Chat {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body.to_string()
    }

    pub(crate) async fn ask(&mut self, stage: &Stage, stream: bool) -> Answer {
        let response = stage.ask(self.wire, &self.body(stream)).await;
        let (status, body) = (response.status(), response.bytes().await.unwrap());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let answer = match stream {
            false => Answer::decode(self.wire, &body).unwrap(),
            true => {
                let mut decoder = StreamDecoder::new(self.wire);
                let mut deltas: Vec<Delta> = Vec::new();
                decoder.feed(&body, &mut deltas).unwrap();
                decoder.finish(&mut deltas).unwrap()
            }
        };
        let said = answer.messages.iter().map(|message| serde_json::from_str(message.json()).unwrap());
        self.messages.extend(said.collect::<Vec<Value>>());
        answer
    }

    pub(crate) fn result(&mut self, id: &str, text: &str) {
        self.messages.push(match self.wire {
            WireFormat::Chat => json!({ "role": "tool", "tool_call_id": id, "content": text }),
            WireFormat::Responses => json!({ "type": "function_call_output", "call_id": id, "output": text }),
            WireFormat::Anthropic => json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": text }] }),
        });
    }
}
