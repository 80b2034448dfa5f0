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

fn recall(offer: Offer) -> Recall {
    let schema = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: "looks".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    Recall::new(Arc::new(Two(vec![schema("lcm_grep"), schema("lcm_expand")])), offer, 3, 1_000)
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
        let mut asked = request(wire, &json!({ "tools": [tool(wire, "bash")] }));
        let before = asked.tools().unwrap().0.to_owned();
        assert!(offered(&recall(Offer::Agents), &mut asked, &[]).unwrap());
        let after = asked.tools().unwrap().0;
        assert!(after.starts_with(before.trim_end_matches(']')), "{after}");
        let tools: Vec<Value> = serde_json::from_str(after).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| name_of(RawJson(&tool.to_string())).unwrap()).collect();
        assert_eq!(names, ["bash", "lcm_grep", "lcm_expand"]);
        let again = asked.tools().unwrap().0.to_owned();
        assert!(!offered(&recall(Offer::Agents), &mut asked, &[]).unwrap(), "they are there already");
        assert_eq!(asked.tools().unwrap().0, again);
    }
}

#[test]
fn requests_they_are_not_for_stay_as_they_are() {
    for wire in WireFormat::ALL {
        let bash = json!([tool(wire, "bash")]);
        let nobody = (recall(Offer::Nobody), json!({ "tools": bash }));
        let several = (recall(Offer::Agents), json!({ "tools": bash, "n": 2 }));
        let own = (recall(Offer::Agents), json!({ "tools": [tool(wire, "lcm_grep")] }));
        let none = (recall(Offer::Agents), json!({}));
        let empty = (recall(Offer::Agents), json!({ "tools": [] }));
        for (recall, more) in [nobody, several, own, none, empty] {
            let mut asked = request(wire, &more);
            let before = asked.encode();
            assert!(!offered(&recall, &mut asked, &[]).unwrap());
            assert_eq!(asked.encode(), before);
        }
    }
}
