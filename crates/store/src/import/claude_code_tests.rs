//! Tests of Claude Code logs in the record: imported once, growing, branching, continued, with sub-agents and forks.

use throughline_transcript::WireFormat;

use crate::call::UsageKind;
use crate::ids::SessionId;
use crate::import::ImportCounts;
use crate::import::testing::{World, answer, user};
use crate::sessions::session::{EndReason, LinkKind};
use crate::store::Store;
use crate::views::item::{NewViewItem, ViewItem};
use crate::views::summary::Continuation;

#[test]
fn a_log_is_recorded_once() {
    let mut world = World::new();
    let title = r#"{"type":"custom-title","customTitle":"The fix","sessionId":"s1"}"#;
    let log = world.write("p/s1.jsonl", &[&user("a", "", "fix it"), &answer("b", "a", "done"), title]);
    let counts = world.counts(&log);
    assert_eq!(counts, ImportCounts { new: 1, messages: 2, calls: 1, ..ImportCounts::default() });
    let session = world.session("claude-code", "s1");
    assert_eq!(session.title.as_deref(), Some("The fix"));
    assert_eq!(session.origin.project.as_deref(), Some("/srv/app"));
    assert_eq!(session.model.as_deref(), Some("claude-opus-4-6"));
    assert_eq!(session.wire_format, WireFormat::Anthropic);
    assert_eq!(world.texts(&session), ["fix it", "done"]);
    let messages = world.store.messages(&world.owner, &session.id).unwrap();
    assert!(messages.iter().all(|message| message.tokens > 0 && message.at_ms > 1_770_000_000_000));

    let again = world.counts(world.folder.path().to_owned().as_path());
    assert_eq!(again, ImportCounts { unchanged: 1, ..ImportCounts::default() });
    assert_eq!(world.conversations(), 1);
}

#[test]
fn calls_are_booked_with_their_price() {
    let mut world = World::new();
    let log =
        world.write("s1.jsonl", &[&user("a", "", "fix it"), &answer("b", "a", "done, and here is why")]);
    world.counts(&log);
    let session = world.session("claude-code", "s1");
    let calls = world.store.calls(&world.owner, &session.id).unwrap();
    let call = &calls[0].call;
    assert_eq!((call.key.as_deref(), call.task.as_str()), (Some("msg_b"), "chat"));
    assert_eq!(call.sent_to_seq, Some(1), "the answer is the second message; the first was sent");
    assert_eq!(call.usage_kind, UsageKind::Measured, "figures of a log are not replaced by estimates");
    assert_eq!(call.usage.output, 1, "though usage was noted before the answer was written");
    assert_eq!((call.usage.input, call.usage.cache_read, call.usage.cache_write), (10, 1_000, 50));
    // 10 at 5, 1,000 at 0.5, 50 written for an hour at 10, the output at 25 dollars a million.
    let expected = 50 + 500 + 500 + 25 * call.usage.output;
    assert_eq!(call.cost_micro_usd, Some(expected));
    assert!(call.usage_raw.as_deref().unwrap().contains("ephemeral_1h_input_tokens"));
}

#[test]
fn a_log_that_grew_adds_what_is_new() {
    let mut world = World::new();
    let (a, b) = (user("a", "", "fix it"), answer("b", "a", "done"));
    let log = world.write("s1.jsonl", &[&a, &b]);
    world.counts(&log);
    world.write("s1.jsonl", &[&a, &b, &user("c", "b", "thanks"), &answer("d", "c", "welcome")]);
    let counts = world.counts(&log);
    assert_eq!(counts, ImportCounts { grown: 1, messages: 2, calls: 1, ..ImportCounts::default() });
    assert_eq!(world.texts(&world.session("claude-code", "s1")), ["fix it", "done", "thanks", "welcome"]);
    // A truncated file has nothing new.
    world.write("s1.jsonl", &[&a]);
    assert_eq!(world.counts(&log), ImportCounts { unchanged: 1, ..ImportCounts::default() });
}

#[test]
fn a_title_that_comes_later_is_taken_and_one_given_here_stays() {
    let mut world = World::new();
    let a = user("a", "", "fix it");
    let log = world.write("s1.jsonl", &[&a]);
    world.counts(&log);
    let titled = r#"{"type":"ai-title","aiTitle":"The fix","sessionId":"s1"}"#;
    world.write("s1.jsonl", &[&a, titled]);
    assert_eq!(world.counts(&log).grown, 1);
    let id = world.session("claude-code", "s1").id;
    assert_eq!(world.session("claude-code", "s1").title.as_deref(), Some("The fix"));
    world.store.rename(&world.owner, &id, Some("mine")).unwrap();
    assert_eq!(world.counts(&log).unchanged, 1);
    assert_eq!(world.session("claude-code", "s1").title.as_deref(), Some("mine"));
}

#[test]
fn growth_goes_to_the_tip_whatever_its_view() {
    let mut world = World::new();
    let (a, b) = (user("a", "", "fix it"), answer("b", "a", "done"));
    let log = world.write("s1.jsonl", &[&a, &b]);
    world.counts(&log);
    let root = world.session("claude-code", "s1");
    let compacted = Continuation {
        lease: None,
        from: root.id.clone(),
        id: SessionId::from_text("tip"),
        reason: EndReason::COMPRESSION,
        at_ms: 5,
        made_at_seq: 2,
        summary: None,
        view: vec![NewViewItem::Kept(ViewItem::Synthetic {
            kind: "test".into(),
            json: r#"{"role":"user","content":"short"}"#.into(),
            tokens: 3,
        })],
    };
    world.store.continue_session(&world.owner, compacted).unwrap();
    assert_eq!(world.counts(&log).unchanged, 1);
    world.write("s1.jsonl", &[&a, &b, &user("c", "b", "thanks")]);
    let counts = world.counts(&log);
    assert_eq!((counts.grown, counts.branched, counts.messages), (1, 0, 1));
    let chain = world.chain("claude-code", "s1");
    assert_eq!(chain.len(), 2);
    assert_eq!(world.shown(&chain[1]).len(), 2, "the short view and what is new");
    assert_eq!(world.texts(&chain[1]), ["fix it", "done", "thanks"]);
}

#[test]
fn a_session_that_ended_goes_on_in_a_continuation() {
    let mut world = World::new();
    let a = user("a", "", "fix it");
    let log = world.write("s1.jsonl", &[&a]);
    world.counts(&log);
    let root = world.session("claude-code", "s1");
    world.store.end_session(&world.owner, &root.id, &EndReason::NEW, 9).unwrap();
    world.write("s1.jsonl", &[&a, &answer("b", "a", "done")]);
    assert_eq!(world.counts(&log).grown, 1);
    let chain = world.chain("claude-code", "s1");
    assert_eq!(chain.len(), 2);
    assert_eq!(world.shown(&chain[1]).len(), 2);
    assert_eq!(world.counts(&log).unchanged, 1);
}

#[test]
fn another_way_is_a_branch() {
    let mut world = World::new();
    let (a, b) = (user("a", "r", "fix it"), answer("b", "a", "done"));
    let first = user("c", "b", "now test it");
    let log = world.write("s1.jsonl", &[&a, &b, &first, &answer("d", "c", "tested")]);
    world.counts(&log);
    // The user went back and asked something else instead.
    let other = user("e", "b", "now ship it");
    let lines = [&a, &b, &first, &answer("d", "c", "tested"), &other, &answer("f", "e", "shipped")];
    world.write("s1.jsonl", &lines.map(String::as_str));
    let counts = world.counts(&log);
    assert_eq!((counts.branched, counts.messages, counts.calls), (1, 2, 1));
    let root = world.session("claude-code", "s1");
    let branch = world.session("claude-code", "s1#2");
    assert_eq!(world.texts(&root), ["fix it", "done", "now test it", "tested"]);
    assert_eq!(world.texts(&branch), ["fix it", "done", "now ship it", "shipped"]);
    let link = branch.link.clone().unwrap();
    assert_eq!((link.parent, link.kind, link.leaves_at), (root.id, LinkKind::Branch, 2));
    assert_eq!(world.counts(&log), ImportCounts { unchanged: 1, ..ImportCounts::default() });
    // It grows at the new end.
    let more = user("g", "f", "great");
    let lines = [&a, &b, &first, &answer("d", "c", "tested"), &other, &answer("f", "e", "shipped"), &more];
    world.write("s1.jsonl", &lines.map(String::as_str));
    assert_eq!(world.counts(&log).grown, 1);
    assert_eq!(world.texts(&branch).last().map(String::as_str), Some("great"));
}

#[test]
fn the_clients_compactions_are_continuations() {
    let mut world = World::new();
    let summary =
        user("c", "b", "so far").replace("\"type\":\"user\"", "\"type\":\"user\",\"isCompactSummary\":true");
    let lines = [
        &user("a", "", "fix it"),
        &answer("b", "a", "done"),
        &summary,
        &user("d", "c", "go on"),
        &answer("e", "d", "ok"),
    ];
    let log = world.write("s1.jsonl", &lines.map(String::as_str));
    let counts = world.counts(&log);
    assert_eq!((counts.new, counts.messages, counts.calls), (1, 5, 2));
    let chain = world.chain("claude-code", "s1");
    assert_eq!(chain.len(), 2);
    assert_eq!(chain[0].end_reason, Some(EndReason::COMPRESSION));
    assert_eq!(chain[1].link.as_ref().unwrap().kind, LinkKind::Continuation);
    assert_eq!(world.texts(&chain[1]).len(), 5, "everything that was said");
    let shown = world.shown(&chain[1]);
    assert_eq!(shown.len(), 3, "from the summary on: {shown:?}");
    assert!(shown[0].contains("so far"));
    let first = world.store.messages(&world.owner, &chain[1].id).unwrap();
    assert!(first[0].machine_written, "a summary is nobody's words");
    let calls = world.store.calls(&world.owner, &chain[0].id).unwrap();
    let booked: Vec<&SessionId> = calls.iter().map(|call| &call.session).collect();
    assert_eq!(booked, [&chain[0].id, &chain[1].id], "each call to the window it was made in");
    assert_eq!(world.counts(&log).unchanged, 1);
    assert_eq!(world.chain("claude-code", "s1").len(), 2);
}

#[test]
fn an_import_that_was_broken_off_is_taken_up() {
    let summary =
        user("c", "b", "so far").replace("\"type\":\"user\"", "\"type\":\"user\",\"isCompactSummary\":true");
    let lines = [user("a", "", "fix it"), answer("b", "a", "done"), summary, user("d", "c", "go on")];
    for stop in 1..=lines.len() {
        let mut world = World::new();
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let log = world.write("s1.jsonl", &refs[..stop]);
        world.counts(&log);
        if stop == 2 {
            // Interrupted between opening the continuation and writing to it.
            let root = world.session("claude-code", "s1");
            let empty = Continuation {
                lease: None,
                from: root.id,
                id: SessionId::from_text("empty"),
                reason: EndReason::COMPRESSION,
                at_ms: 1,
                made_at_seq: 2,
                summary: None,
                view: Vec::new(),
            };
            world.store.continue_session(&world.owner, empty).unwrap();
        }
        world.write("s1.jsonl", &refs);
        world.counts(&log);
        let chain = world.chain("claude-code", "s1");
        assert_eq!(chain.len(), 2, "stopped after {stop}");
        assert_eq!(world.texts(&chain[1]), ["fix it", "done", "so far", "go on"]);
        assert_eq!(world.shown(&chain[1]).len(), 2);
    }
}

#[test]
fn sub_agents_hang_on_the_session_they_worked_for() {
    let mut world = World::new();
    let side = |uuid: &str, text: &str| {
        user(uuid, "", text)
            .replace("\"type\":\"user\"", "\"type\":\"user\",\"isSidechain\":true,\"agentId\":\"x7\"")
    };
    world.write("p/s1.jsonl", &[&user("a", "", "fix it"), &answer("b", "a", "asking an agent")]);
    world.write("p/s1/subagents/agent-x7.jsonl", &[&side("t", "look into it")]);
    // A second session with the agent's rows in its own log.
    let inside = side("u", "look again").replace("s1", "s2");
    let rows = [user("a", "", "fix that").replace("s1", "s2"), inside];
    world.write("p/s2.jsonl", &[&rows[0], &rows[1]]);
    let folder = world.folder.path().to_owned();
    let counts = world.counts(&folder);
    assert_eq!((counts.new, counts.messages), (4, 5));
    for (session, agent, place) in [("s1", "s1/agent-x7", 2), ("s2", "s2/agent-x7", 1)] {
        let link = world.session("claude-code", agent).link.unwrap();
        assert_eq!((link.kind, link.leaves_at), (LinkKind::SubAgent, place), "{agent}");
        assert_eq!(link.parent, world.session("claude-code", session).id);
    }
    assert_eq!(world.counts(&folder).unchanged, 4);
}

#[test]
fn a_file_of_an_agent_alone_is_recorded_too() {
    let mut world = World::new();
    let side =
        user("t", "", "look into it").replace("\"type\":\"user\"", "\"type\":\"user\",\"isSidechain\":true");
    let log = world.write("agent-t.jsonl", &[&side]);
    assert_eq!(world.counts(&log).new, 1);
    assert_eq!(world.session("claude-code", "s1/agent-t").link, None);
}

#[test]
fn a_session_forked_from_another_shares_its_beginning() {
    let mut world = World::new();
    let (a, b) = (user("a", "", "fix it"), answer("b", "a", "done"));
    let copied = [a.clone(), b.clone(), user("c", "b", "other way").replace("\"s1\"", "\"s0\"")];
    // The fork comes first by name; its origin is read before it.
    world.write("s0.jsonl", &copied.each_ref().map(String::as_str));
    world.write("s1.jsonl", &[&a, &b, &user("d", "b", "this way")]);
    let folder = world.folder.path().to_owned();
    let report = world.import(&folder);
    let counts = report.totals();
    assert_eq!((counts.new, counts.branched, counts.messages, counts.calls), (1, 1, 4, 1));
    let fork = world.session("claude-code", "s0");
    let link = fork.link.clone().unwrap();
    assert_eq!((link.kind, link.leaves_at), (LinkKind::Branch, 2));
    assert_eq!(world.texts(&fork), ["fix it", "done", "other way"]);
    assert_eq!(world.counts(&folder).unchanged, 2);
    assert_eq!(report.files.len(), 2, "each file is reported once");
}

#[test]
fn what_is_being_written_is_left_for_the_next_time() {
    let mut world = World::new();
    let call = r#"{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s1","timestamp":"2026-02-07T00:00:59Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}],"usage":{"output_tokens":1}}}"#;
    let log = world.write("s1.jsonl", &[&user("a", "", "fix it"), call]);
    world.now_ms = Some(1_770_422_400_000 + 120_000);
    let counts = world.counts(&log);
    assert_eq!((counts.new, counts.messages, counts.calls, counts.held_back), (1, 1, 0, 1));
    world.now_ms = Some(1_770_422_400_000 + 3_600_000);
    let counts = world.counts(&log);
    assert_eq!((counts.grown, counts.messages, counts.calls, counts.held_back), (1, 1, 1, 0));
    assert_eq!(world.conversations(), 1);
}
