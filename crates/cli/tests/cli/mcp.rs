//! `throughline mcp` as an agent meets it: over standard input and output, a line a message.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::chat::{served, world_of};
use crate::harness::World;
use throughline_testkit::Reply;

/// A server that was started, and what it says.
struct Server {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn start(world: &World) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .arg("mcp")
            .env_clear()
            .env("THROUGHLINE_HOME", world.home())
            .env("HOME", world.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from, id: 0 }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "it ended before it answered {method}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn introduce(&mut self) -> Value {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let said = self.ask("initialize", params);
        self.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        said
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Closes its input, and waits for its end.
    fn end(mut self) {
        drop(self.to.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| unreachable!("{answer:#}"))
}

#[test]
fn an_agent_finds_and_reads_what_was_said_in_another() {
    let served =
        served(vec![Reply::text("The lighthouse keeper is called Ingeborg."), Reply::text("It is closed.")]);
    let world = world_of(&served);
    assert_eq!(world.run(&["chat", "-q", "Who keeps the lighthouse?"]).code, Some(0));
    let mut server = Server::start(&world);
    let said = server.introduce();
    assert_eq!(said["result"]["serverInfo"]["name"], "throughline", "{said:#}");
    assert_eq!(said["result"]["protocolVersion"], "2025-06-18", "{said:#}");
    let listed = server.ask("tools/list", json!({}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let across = ["recall_search", "recall_sessions", "recall_messages", "recall_artifact"];
    assert_eq!(names, [&across[..], &["lcm_grep", "lcm_describe", "lcm_expand"]].concat());
    let grep = &listed["result"]["tools"][4];
    assert_eq!(grep["inputSchema"]["required"], json!(["query", "session"]), "{grep:#}");
    let found = server.call("lcm_grep", json!({ "query": "Ingeborg", "session": "last" }));
    let found = text_of(&found).to_owned();
    assert!(found.starts_with("message ") && found.contains("is called Ingeborg"), "{found}");
    let number: u64 = found.split(' ').nth(1).unwrap().parse().unwrap();
    let read = server.call("lcm_expand", json!({ "message": number, "session": "last" }));
    assert!(text_of(&read).contains("The lighthouse keeper is called Ingeborg."), "{read:#}");
    assert_eq!(listed["result"]["tools"][0]["inputSchema"]["required"], json!(["query"]));
    let found = server.call("recall_search", json!({ "query": "lighthouse keeper" }));
    let found = text_of(&found).to_owned();
    assert!(found.contains("Ingeborg"), "{found}");
    let hit = found.lines().find(|line| line.contains("Ingeborg")).unwrap();
    let session = hit.split([' ', ',']).nth(1).unwrap();
    let number: u64 = hit.split("message ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let read = server.call("recall_messages", json!({ "session": session, "first": number, "count": 1 }));
    assert!(text_of(&read).contains("The lighthouse keeper is called Ingeborg."), "{read:#}");
    // What is said meanwhile is found at once.
    assert!(
        text_of(&server.call("recall_search", json!({ "query": "harbour" })))
            .starts_with("nothing was found")
    );
    assert_eq!(world.run(&["chat", "-q", "And the harbour?"]).code, Some(0));
    let found = server.call("recall_search", json!({ "query": "harbour" }));
    assert!(text_of(&found).contains("And the harbour?"), "{found:#}");
    server.end();
}

#[test]
fn what_is_wrong_is_answered_and_the_server_goes_on() {
    let world = World::with_config("");
    let mut server = Server::start(&world);
    server.introduce();
    let wrong = server.call("recall_search", json!({ "words": "x" }));
    assert_eq!(wrong["result"]["isError"], true, "{wrong:#}");
    assert!(text_of(&wrong).contains("unknown field `words`"), "{wrong:#}");
    let unknown = server.call("recall_everything", json!({}));
    assert_eq!(unknown["error"]["message"], "there is no tool `recall_everything`", "{unknown:#}");
    let nowhere = server.call("recall_messages", json!({ "session": "nowhere", "first": 0 }));
    assert_eq!(nowhere["result"]["isError"], true, "{nowhere:#}");
    for (tool, arguments, words) in [
        ("lcm_grep", json!({ "query": "x" }), "`session` says which conversation is meant"),
        ("lcm_grep", json!({ "query": "x", "session": 7 }), "`session` says which conversation is meant"),
        ("lcm_expand", json!({ "node": "n1", "session": "last" }), "last"),
    ] {
        let wrong = server.call(tool, arguments);
        assert_eq!(wrong["result"]["isError"], true, "{wrong:#}");
        assert!(text_of(&wrong).contains(words), "{wrong:#}");
    }
    let method = server.ask("no/such_method", json!({}));
    assert!(method["error"]["code"].is_i64(), "{method:#}");
    assert_eq!(text_of(&server.call("recall_sessions", json!({}))), "nothing is recorded yet");
    server.end();
}

#[test]
fn it_says_how_to_add_it_to_agents() {
    let world = World::with_config("");
    let shown = String::from_utf8(world.run(&["mcp", "--show"]).stdout).unwrap();
    for words in ["claude mcp add throughline -- throughline mcp", "codex mcp add", "opencode", "mcpServers"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}
