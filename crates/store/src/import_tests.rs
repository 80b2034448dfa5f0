//! Imports of logs and files: nothing twice, nothing lost, what is broken is named.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use throughline_transcript::Dialect;

use super::{FileOutcome, ImportCounts, ImportEvent, ImportReport, Importer, history_places};
use crate::call::UsageKind;
use crate::ids::{IdLength, Millis, Owner, SessionId};
use crate::memory::MemoryStore;
use crate::session::{EndReason, LinkKind, Session, SessionFilter};
use crate::store::Store;
use crate::summary::Continuation;
use crate::view::{NewViewItem, ViewItem};

/// A record and a folder to import from.
struct World {
    store: MemoryStore,
    owner: Owner,
    folder: TempDir,
    drawn: u32,
    now_ms: Option<Millis>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: MemoryStore::new(), owner: Owner::default(), folder, drawn: 0, now_ms: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, lines: &[&str]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }

    fn import(&mut self, path: &Path) -> ImportReport {
        let mut report = ImportReport::default();
        let drawn = &mut self.drawn;
        let mut new_id = |at_ms: Millis| {
            *drawn += 1;
            SessionId::new(at_ms, *drawn, IdLength::Local)
        };
        let mut importer = Importer::new(&self.store, self.owner.clone(), &mut new_id);
        if let Some(now_ms) = self.now_ms {
            importer = importer.at(now_ms);
        }
        importer.import_path(path, &mut report, &mut |_| {}).unwrap();
        report
    }

    /// Imports a path that must be read without trouble.
    fn counts(&mut self, path: &Path) -> ImportCounts {
        let report = self.import(path);
        assert_eq!(report.failures().collect::<Vec<_>>(), []);
        report.totals()
    }

    fn session(&self, program: &str, key: &str) -> Session {
        self.store.session_by_origin(&self.owner, program, key).unwrap().expect(key)
    }

    fn chain(&self, program: &str, key: &str) -> Vec<Session> {
        self.store.chain(&self.owner, &self.session(program, key).id).unwrap()
    }

    fn texts(&self, session: &Session) -> Vec<String> {
        let messages = self.store.transcript(&self.owner, &session.id).unwrap();
        messages.iter().map(|message| message.decode().unwrap().text().into_owned()).collect()
    }

    fn shown(&self, session: &Session) -> Vec<String> {
        self.store.view(&self.owner, &session.id, None).unwrap().iter().map(|s| s.json().to_owned()).collect()
    }

    fn conversations(&self) -> usize {
        let filter = SessionFilter { include_attached: true, ..SessionFilter::default() };
        self.store.conversations(&self.owner, &filter).unwrap().len()
    }
}

/// A line of a Claude Code log.
fn line(kind: &str, uuid: &str, parent: &str, text: &str) -> String {
    let usage = r#","usage":{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":50},"output_tokens":1}"#;
    let (head, tail) = match kind {
        "assistant" => (format!(r#""id":"msg_{uuid}","model":"claude-opus-4-6","stop_reason":null,"#), usage),
        _ => (String::new(), ""),
    };
    let second = uuid.bytes().map(u32::from).sum::<u32>() % 60;
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s1","cwd":"/srv/app","timestamp":"2026-02-07T00:00:{second:02}Z","message":{{{head}"role":"{kind}","content":"{text}"{tail}}}}}"#
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    line("user", uuid, parent, text)
}

fn answer(uuid: &str, parent: &str, text: &str) -> String {
    line("assistant", uuid, parent, text)
}

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
    assert_eq!(session.dialect, Dialect::Anthropic);
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
    assert_eq!(call.usage_kind, UsageKind::Estimated, "usage was noted before the answer was written");
    assert!(call.usage.output > 1, "what the answer says is counted: {}", call.usage.output);
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
    // A file that was cut back has nothing new.
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
    // It grows where it went.
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
            // Broken off between opening the continuation and writing into it.
            let root = world.session("claude-code", "s1");
            let empty = Continuation {
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
    // By name the fork comes first; what it was copied from is read before it.
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

const CODEX_HEAD: &str = r#"{"timestamp":"2026-03-04T10:00:00Z","type":"session_meta","payload":{"id":"c1","cwd":"/srv/app","model_provider":"openai","base_instructions":{"text":"be brief"}}}"#;
const CODEX_TURN: &str = r#"{"timestamp":"2026-03-04T10:00:01Z","type":"turn_context","payload":{"cwd":"/srv/app","model":"gpt-5.2-codex"}}"#;

fn item(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(
        r#"{{"timestamp":"2026-03-04T10:00:02Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
    )
}

fn token_count(total: u64, last: u64) -> String {
    format!(
        r#"{{"timestamp":"2026-03-04T10:00:03Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":{last},"cached_input_tokens":40,"output_tokens":5,"reasoning_output_tokens":2}}}}}}}}"#
    )
}

#[test]
fn a_codex_rollout_with_its_calls_and_instructions() {
    let mut world = World::new();
    let reasoning = r#"{"timestamp":"2026-03-04T10:00:02Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}"#;
    let lines = [
        CODEX_HEAD,
        CODEX_TURN,
        &item("user", "fix it"),
        reasoning,
        &item("assistant", "done"),
        &token_count(105, 100),
    ];
    let log = world.write("2026/03/04/rollout-2026-03-04T10-00-00-c1.jsonl", &lines);
    let folder = world.folder.path().to_owned();
    let counts = world.counts(&folder);
    assert_eq!((counts.new, counts.messages, counts.calls), (1, 3, 1));
    let session = world.session("codex", "c1");
    assert_eq!(session.dialect, Dialect::Responses);
    let call = &world.store.calls(&world.owner, &session.id).unwrap()[0].call;
    assert_eq!((call.model.as_str(), call.provider.as_str()), ("gpt-5.2-codex", "openai"));
    assert_eq!((call.usage.input, call.usage.cache_read, call.usage.reasoning), (60, 40, 2));
    assert_eq!(call.sent_to_seq, Some(1), "sent before the reasoning that begins the answer");
    assert_eq!(call.cost_micro_usd, Some(182), "60 at 1.75, 40 at 0.175 and 5 at 14 dollars a million");
    let preamble = world.store.preamble(call.preamble.as_ref().unwrap()).unwrap().unwrap();
    assert_eq!(preamble.system.as_deref(), Some(r#"{"text":"be brief"}"#));
    assert_eq!(world.counts(&log).unchanged, 1);
}

#[test]
fn a_codex_compaction_shows_what_it_kept_and_its_summary() {
    let mut world = World::new();
    let compacted = r#"{"timestamp":"2026-03-04T11:00:00Z","type":"compacted","payload":{"message":"so far","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"summary: so far"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}]}}"#;
    let lines =
        [CODEX_HEAD, &item("user", "fix it"), &item("assistant", "done"), compacted, &item("user", "next")];
    let log = world.write("rollout-c1.jsonl", &lines);
    world.counts(&log);
    let chain = world.chain("codex", "c1");
    assert_eq!(chain.len(), 2);
    assert_eq!(world.texts(&chain[1]), ["fix it", "done", "next"]);
    let items = world.store.view_items(&world.owner, &chain[1].id).unwrap();
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| match item {
            ViewItem::Range { .. } => "range",
            ViewItem::Summary { .. } => "summary",
            ViewItem::Synthetic { .. } => "synthetic",
            ViewItem::Rendition { .. } => "rendition",
        })
        .collect();
    assert_eq!(kinds, ["range", "summary", "synthetic", "range"]);
    let summaries = world.store.summaries(&world.owner, &chain[1].id).unwrap();
    assert_eq!((summaries[0].author.as_str(), summaries[0].document.as_str()), ("codex", "so far"));
    let sources: Vec<(u64, u64)> =
        summaries[0].sources.iter().map(|run| (run.first_seq, run.end_seq)).collect();
    assert_eq!(sources, [(1, 2)], "the answer is no longer shown");
    assert_eq!(world.counts(&log).unchanged, 1);
}

#[test]
fn a_compaction_at_the_end_of_a_log_is_recorded_once() {
    let mut world = World::new();
    let compacted = r#"{"type":"compacted","payload":{"message":"so far"}}"#;
    let lines = [CODEX_HEAD, &item("user", "fix it")];
    let log = world.write("rollout-c1.jsonl", &lines);
    world.counts(&log);
    let ask = item("user", "fix it");
    world.write("rollout-c1.jsonl", &[CODEX_HEAD, &ask, compacted]);
    world.counts(&log);
    assert_eq!(world.chain("codex", "c1").len(), 2);
    assert_eq!(world.counts(&log).unchanged, 1);
    world.write("rollout-c1.jsonl", &[CODEX_HEAD, &ask, compacted, &item("user", "next")]);
    assert_eq!(world.counts(&log).grown, 1);
    let chain = world.chain("codex", "c1");
    assert_eq!(chain.len(), 2);
    assert_eq!(world.shown(&chain[1]).len(), 2);
}

#[test]
fn plain_transcripts_are_known_by_where_they_lie() {
    let mut world = World::new();
    let first = r#"{"role":"user","content":"hi"}"#;
    let list = world.write("a.json", &["[", first, "]"]);
    let twin = world.write("b.json", &["[", first, "]"]);
    assert_eq!((world.counts(&list).new, world.counts(&twin).new), (1, 1));
    world.write("a.json", &["[", first, ",", r#"{"role":"assistant","content":"hello"}"#, "]"]);
    let counts = world.counts(&list);
    assert_eq!((counts.grown, counts.messages), (1, 1));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&fs::read(&list).unwrap()).unwrap();
    fs::remove_file(&list).unwrap();
    fs::write(world.path("a.json.gz"), packed.finish().unwrap()).unwrap();
    assert_eq!(
        world.counts(&world.path("a.json.gz")).unchanged,
        1,
        "packing a file does not make it another"
    );
}

#[test]
fn collections_are_taken_apart() {
    let mut world = World::new();
    let of = |text: &str| format!(r#"{{"traj":[{{"role":"user","content":"{text}"}}]}}"#);
    let array = world.write("all.json", &[&format!("[{},{}]", of("one"), of("two"))]);
    assert_eq!(world.counts(&array).new, 2);
    let lines = world.write("all.jsonl", &[&of("three"), "", &of("four")]);
    assert_eq!(world.counts(&lines).new, 2);
    assert_eq!(world.counts(&lines).unchanged, 2);
    assert_eq!(world.conversations(), 4);
}

#[test]
fn broken_lines_are_named_and_the_rest_is_recorded() {
    let mut world = World::new();
    let log = world.path("s1.jsonl");
    let mut bytes = user("a", "", "fix it").into_bytes();
    bytes.extend_from_slice(b"\n{\"type\":\"user\",\"mess\n\xff\xfe{\n");
    bytes.extend_from_slice(answer("b", "a", "done").as_bytes());
    bytes.extend_from_slice(b"\n{\"type\":\"assis");
    fs::write(&log, bytes).unwrap();
    let report = world.import(&log);
    assert_eq!(report.totals().messages, 2);
    let mut lines: Vec<Option<usize>> = report.files[0].notes.iter().map(|note| note.line).collect();
    lines.sort();
    assert_eq!(lines, [Some(2), Some(3), Some(5)]);
    assert_eq!(report.files[0].outcome, FileOutcome::Imported);
}

#[test]
fn a_packed_file_that_breaks_off_is_read_as_far_as_it_goes() {
    let mut world = World::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for number in 0..2_000 {
        let text = format!("{number} {}", number * 7_919 % 1_000_003);
        writeln!(packed, "{}", user(&format!("u{number}"), "", &text)).unwrap();
    }
    let packed = packed.finish().unwrap();
    let log = world.path("s1.jsonl.gz");
    fs::write(&log, &packed[..packed.len() / 2]).unwrap();
    let report = world.import(&log);
    let recorded = report.totals().messages;
    assert!((100..2_000).contains(&recorded), "{recorded}");
    assert!(report.files[0].notes.iter().any(|note| note.text.contains("breaks off")));
    fs::write(&log, &packed).unwrap();
    let counts = world.counts(&log);
    assert_eq!((counts.grown, counts.branched, recorded + counts.messages), (1, 0, 2_000));
}

#[test]
fn what_is_no_conversation_is_a_failure_by_name_and_passed_over_in_a_folder() {
    let mut world = World::new();
    world.write("notes.txt", &["not looked at"]);
    let index = world.write("index.json", &[r#"{"version":1}"#]);
    let empty = world.write("empty.jsonl", &[""]);
    let cut = world.write("cut.json", &[r#"[{"role":"user","content":"#]);
    let good = world.write("good.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    let folder = world.folder.path().to_owned();
    let report = world.import(&folder);
    assert_eq!((report.files.len(), report.skipped(), report.totals().new), (4, 2, 1));
    let failed: Vec<&Path> = report.failures().map(|(path, _)| path).collect();
    assert_eq!(failed, [cut.as_path()]);
    for path in [&index, &empty] {
        assert_eq!(world.import(path).failures().count(), 1, "{}", path.display());
    }
    assert_eq!(world.counts(&good).unchanged, 1);
    let missing = world.import(Path::new("/nowhere/at/all"));
    let (path, reason) = missing.failures().next().unwrap();
    assert_eq!(path, Path::new("/nowhere/at/all"));
    assert!(reason.contains("No such file") || reason.contains("not found"), "{reason}");
}

#[test]
fn progress_is_told() {
    let world = World::new();
    world.write("a.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    world.write("b.json", &["{}"]);
    let mut told = Vec::new();
    let mut drawn = 0;
    let mut new_id = |at_ms: Millis| {
        drawn += 1;
        SessionId::new(at_ms, drawn, IdLength::Local)
    };
    let mut importer = Importer::new(&world.store, world.owner.clone(), &mut new_id);
    let mut report = ImportReport::default();
    importer
        .import_path(world.folder.path(), &mut report, &mut |event| {
            told.push(match event {
                ImportEvent::Listed { files } => format!("listed {files}"),
                ImportEvent::Began { number, of, .. } => format!("began {number} of {of}"),
                ImportEvent::Recorded { conversations, of } => format!("recorded {conversations} of {of}"),
                ImportEvent::Ended(file) => format!("ended {:?}", file.counts.new),
            });
        })
        .unwrap();
    assert_eq!(told, ["listed 2", "began 1 of 2", "ended 1", "began 2 of 2", "ended 0"]);
}

#[test]
fn an_id_that_is_taken_is_drawn_again() {
    let world = World::new();
    let list = world.write("a.json", &[r#"[{"role":"user","content":"hi"}]"#]);
    let other = world.write("b.json", &[r#"[{"role":"user","content":"ho"}]"#]);
    let mut drawn = 0;
    let mut new_id = |_: Millis| {
        drawn += 1;
        SessionId::from_text(format!("s{}", drawn / 2))
    };
    let mut report = ImportReport::default();
    let mut importer = Importer::new(&world.store, world.owner.clone(), &mut new_id);
    for path in [&list, &other] {
        importer.import_path(path, &mut report, &mut |_| {}).unwrap();
    }
    assert_eq!(report.totals().new, 2);
}

#[test]
fn owners_do_not_see_each_others_imports() {
    let mut world = World::new();
    let log = world.write("s1.jsonl", &[&user("a", "", "fix it")]);
    assert_eq!(world.counts(&log).new, 1);
    world.owner = Owner::new("another");
    assert_eq!(world.counts(&log).new, 1);
    assert_eq!(world.counts(&log).unchanged, 1);
}

#[test]
fn the_places_of_histories() {
    let places = history_places(Path::new("/home/u"));
    let told: Vec<(&str, &Path)> = places.iter().map(|place| (place.program, place.path.as_path())).collect();
    assert_eq!(
        told,
        [
            ("claude-code", Path::new("/home/u/.claude/projects")),
            ("codex", Path::new("/home/u/.codex/sessions")),
            ("codex", Path::new("/home/u/.codex/archived_sessions")),
            ("hermes", Path::new("/home/u/.hermes/state.db")),
        ]
    );
}
