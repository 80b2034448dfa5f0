use serde_json::{Value, json};

use super::*;

struct Two(Vec<ToolSchema>);

impl RecallTools for Two {
    fn schemas(&self) -> &[ToolSchema] {
        &self.0
    }

    fn call<'a>(&'a self, _owner: &'a Owner, _call: &'a ToolRequest) -> RecallFuture<'a> {
        Box::pin(async { ToolAnswer { text: String::new(), is_error: false } })
    }
}

fn recall(offer: RecallOffer) -> RecallConfig {
    let schema = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: "looks".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    RecallConfig::new(Arc::new(Two(vec![schema("lcm_grep"), schema("lcm_expand")])), offer, 3, 1_000)
}

fn request(wire: WireFormat, more: &Value) -> Request {
    let list = if wire == WireFormat::Responses { "input" } else { "messages" };
    let mut body = json!({ "model": "m", list: [] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    Request::decode(wire, body.to_string()).unwrap()
}

fn tool(wire: WireFormat, name: &str) -> Value {
    match wire {
        WireFormat::Chat => json!({ "type": "function", "function": { "name": name } }),
        WireFormat::Responses => json!({ "type": "function", "name": name }),
        WireFormat::Anthropic => json!({ "name": name, "input_schema": {} }),
    }
}

#[test]
fn tools_stand_behind_the_clients_own_and_leave_those_as_they_are() {
    for wire in WireFormat::ALL {
        let mut inbound = request(wire, &json!({ "tools": [tool(wire, "bash")] }));
        let before = inbound.tools().unwrap().0.to_owned();
        assert!(offered(&recall(RecallOffer::Agents), RecallOffer::Agents, &mut inbound, &[]).unwrap());
        let after = inbound.tools().unwrap().0;
        assert!(after.starts_with(before.trim_end_matches(']')), "{after}");
        let tools: Vec<Value> = serde_json::from_str(after).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| name_of(RawJson(&tool.to_string())).unwrap()).collect();
        assert_eq!(names, ["bash", "lcm_grep", "lcm_expand"]);
        let again = inbound.tools().unwrap().0.to_owned();
        assert!(
            !offered(&recall(RecallOffer::Agents), RecallOffer::Agents, &mut inbound, &[]).unwrap(),
            "they are there already"
        );
        assert_eq!(inbound.tools().unwrap().0, again);
    }
}

#[test]
fn requests_they_are_not_for_stay_as_they_are() {
    for wire in WireFormat::ALL {
        let bash = json!([tool(wire, "bash")]);
        let nobody = (recall(RecallOffer::Nobody), json!({ "tools": bash }));
        let several = (recall(RecallOffer::Agents), json!({ "tools": bash, "n": 2 }));
        let own = (recall(RecallOffer::Agents), json!({ "tools": [tool(wire, "lcm_grep")] }));
        let none = (recall(RecallOffer::Agents), json!({}));
        let empty = (recall(RecallOffer::Agents), json!({ "tools": [] }));
        for (recall, more) in [nobody, several, own, none, empty] {
            let mut inbound = request(wire, &more);
            let before = inbound.encode();
            assert!(!offered(&recall, recall.offer(), &mut inbound, &[]).unwrap());
            assert_eq!(inbound.encode(), before);
        }
    }
}
