//! Lists of tools.

use proptest::prelude::*;

use super::*;

fn request(wire_format: WireFormat, more: &Value) -> Request {
    let list = if wire_format == WireFormat::Responses { "input" } else { "messages" };
    let mut body = json!({ "model": "m", list: [] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    Request::decode(wire_format, body.to_string()).unwrap()
}

fn tool(wire_format: WireFormat, name: &str) -> Value {
    let words = format!("About {name}");
    match wire_format {
        WireFormat::Chat => json!({ "type": "function", "function": { "name": name, "description": words } }),
        WireFormat::Responses => json!({ "type": "function", "name": name, "description": words }),
        WireFormat::Anthropic => json!({ "name": name, "description": words, "input_schema": {} }),
    }
}

fn list(wire_format: WireFormat, names: &[&str]) -> ToolList {
    let tools: Vec<Value> = names.iter().map(|name| tool(wire_format, name)).collect();
    ToolList::of(&request(wire_format, &json!({ "tools": tools })), "claude-code", &[]).unwrap()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const WAYS: [ToolDeferral; 2] = [ToolDeferral::ByList, ToolDeferral::ByReference];

#[test]
fn tools_that_stay_keep_their_bytes_and_the_list_says_which_left() {
    for wire_format in WireFormat::ALL {
        let list = list(wire_format, &["Bash", "Cron", "mcp__git__log", "mcp__git__show"]);
        let left = set(&["Cron", "mcp__git__log"]);
        for deferral in WAYS {
            let json = list.without(&left, deferral);
            let names: Vec<_> = RawJson(&json).elements().filter_map(name_of).collect();
            let bash = tool(wire_format, "Bash").to_string();
            assert!(json.starts_with(&format!("[{bash},")), "{json}");
            match deferral {
                ToolDeferral::ByReference => {
                    assert_eq!(names, ["Bash", "Cron", "mcp__git__log", "mcp__git__show", FIND_TOOLS]);
                    assert_eq!(json.matches("\"defer_loading\":true").count(), 2);
                }
                _ => assert_eq!(names, ["Bash", "mcp__git__show", FIND_TOOLS]),
            }
            assert!(serde_json::from_str::<Value>(&json).is_ok());
            assert_eq!(list.left_in(&json, deferral), Some(left.clone()), "{wire_format}");
        }
    }
}

#[test]
fn a_list_made_of_other_tools_is_not_recognised() {
    for wire_format in WireFormat::ALL {
        let before = list(wire_format, &["Bash", "Cron", "Plan"]);
        let after = list(wire_format, &["Bash", "Cron", "Plan", "New"]);
        for deferral in WAYS {
            let sent = before.without(&set(&["Cron"]), deferral);
            assert_eq!(after.left_in(&sent, deferral), None);
            assert_eq!(before.left_in(&format!("[{}]", tool(wire_format, "Bash")), deferral), None);
        }
    }
}

#[test]
fn nothing_leaves_where_a_client_brings_tools_back_itself() {
    for wire_format in WireFormat::ALL {
        let bash = tool(wire_format, "Bash");
        for more in [
            json!({}),
            json!({ "tools": [] }),
            json!({ "tools": [bash, tool(wire_format, FIND_TOOLS)] }),
            json!({ "tools": [bash, { "type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25" }] }),
            json!({ "tools": [bash, { "type": "tool_search" }] }),
            json!({ "tools": [bash, { "name": "x", "defer_loading": true, "input_schema": {} }] }),
            json!({ "tools": [bash], "tool_choice": { "type": "allowed_tools", "tools": [] } }),
        ] {
            assert!(ToolList::of(&request(wire_format, &more), "codex", &[]).is_none(), "{more}");
        }
    }
}

#[test]
fn what_reads_edits_and_runs_commands_is_forced_or_runs_elsewhere_never_leaves() {
    for wire_format in WireFormat::ALL {
        let mut marked = tool(wire_format, "Marked");
        marked["cache_control"] = json!({ "type": "ephemeral" });
        let choice = match wire_format {
            WireFormat::Chat => json!({ "type": "function", "function": { "name": "Forced" } }),
            WireFormat::Responses => json!({ "type": "function", "name": "Forced" }),
            WireFormat::Anthropic => json!({ "type": "tool", "name": "Forced" }),
        };
        let names = ["Bash", "Read", "Edit", "Forced", "lcm_grep", "Workflow"];
        let mut tools: Vec<Value> = names.iter().map(|name| tool(wire_format, name)).collect();
        tools.push(marked);
        tools.push(json!({ "type": "web_search_20250305", "name": "web_search" }));
        let request = request(wire_format, &json!({ "tools": tools, "tool_choice": choice }));
        for (program, may_leave) in
            [("claude-code", vec!["Workflow"]), ("codex", vec!["Bash", "Read", "Edit", "Workflow"])]
        {
            let list = ToolList::of(&request, program, &["lcm_grep".to_owned()]).unwrap();
            let leaving: Vec<_> =
                list.tools.iter().filter(|tool| tool.may_leave).map(|tool| tool.name.as_str()).collect();
            assert_eq!(leaving, may_leave, "{wire_format} {program}");
        }
        let of_anyone = ToolList::of(&request, "gateway", &[]).unwrap();
        assert!(
            of_anyone.tools.iter().all(|tool| !tool.may_leave || !["Bash", "Read"].contains(&&*tool.name))
        );
    }
}

#[test]
fn tools_are_found_by_name_by_the_end_of_a_name_and_by_words() {
    let list = list(WireFormat::Anthropic, &["mcp__git__log", "mcp__git__show", "WebFetch", "Workflow"]);
    let left = list.only(&set(&["mcp__git__log", "mcp__git__show", "WebFetch", "Workflow"]));
    for (arguments, names) in [
        (json!({ "names": ["WebFetch", "mcp__git__log"] }), vec!["WebFetch", "mcp__git__log"]),
        (json!({ "names": ["show"] }), vec!["mcp__git__show"]),
        (json!({ "query": "git log" }), vec!["mcp__git__log", "mcp__git__show"]),
        (json!({ "query": "nothing fits" }), vec![]),
        (json!({ "names": ["absent"], "query": "workflow" }), vec!["Workflow"]),
        (json!("text"), vec![]),
        (json!({ "names": "WebFetch" }), vec![]),
    ] {
        assert_eq!(found(&left, &arguments), names, "{arguments}");
    }
}

proptest! {
    #[test]
    fn any_choice_of_tools_is_read_back(picked in proptest::collection::vec(any::<bool>(), 1..20), by_list in any::<bool>()) {
        let names: Vec<String> = (0..picked.len()).map(|n| format!("mcp__s{}__t{n}", n % 3)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let left: BTreeSet<String> =
            names.iter().zip(&picked).filter(|(_, picked)| **picked).map(|(name, _)| (*name).to_owned()).collect();
        let deferral = if by_list { ToolDeferral::ByList } else { ToolDeferral::ByReference };
        for wire_format in WireFormat::ALL {
            let list = list(wire_format, &names);
            let json = list.without(&left, deferral);
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
            prop_assert_eq!(list.left_in(&json, deferral), Some(left.clone()));
            prop_assert_eq!(list.without(&left, deferral), json, "the same bytes");
        }
    }
}
