//! Carrying a step out on a record, and telling what came of it.

use throughline_store::{
    Artifact, Continuation, Dependants, EndReason, Guard, GuardScope, Holder, Link, LockRequest, MessageRun,
    NewArtifact, NewCall, NewMessage, NewSession, NewSummary, NewViewItem, Origin, Owner, Result, Selection,
    Session, SessionId, Store, StoredRendition, SummaryId, UsageKind, ViewItem, ViewSelection,
};
use throughline_tokens::Usage;
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

use super::script::{Said, Shown, Step};

const OWNERS: [&str; 2] = ["local", "stranger"];
const TITLES: [Option<&str>; 4] = [None, Some("Roof"), Some("roof "), Some("\u{5c4b}\u{9876}")];
/// Words that collide: the same ones, parts of others, other scripts, identifiers, paths, nothing.
pub(crate) const WORDS: [&str; 20] = [
    "the quick brown fox",
    "quick",
    "a brown bear, quick",
    "getUserById(42)",
    "get user by id",
    "parse_http_header",
    "\u{5317}\u{4eac}\u{51fa}\u{5dee}",
    "\u{4eac}",
    "\u{6771}\u{4eac}\u{30bf}\u{30ef}\u{30fc}",
    "see src/main.rs:42 for it",
    "main.rs",
    "version 3.54.1",
    "reconfigured",
    "config",
    "",
    "\"quoted\" AND (odd) *",
    "caf\u{e9} CAF\u{c9} cafe",
    "\u{1f600} smile",
    "one\ntwo\n\tthree",
    "error: E0599 at line 7",
];

pub(crate) fn owner(number: u8) -> Owner {
    Owner::new(OWNERS[usize::from(number) % OWNERS.len()])
}

/// The name of the session a step opens.
pub(crate) fn name(step: usize) -> SessionId {
    SessionId::from_text(format!("2026_{step:03}"))
}

/// Another view for a conversation to go on with.
fn selecting(session: SessionId, selection: Selection, at: usize, limit_tokens: u64) -> ViewSelection {
    ViewSelection { session, selection, successor: name(at), at_ms: at as i64, limit_tokens, lease: None }
}

/// The session a number means at a step: counted back from the latest one that is there, and now and then none.
fn meant(store: &dyn Store, at: usize, number: usize) -> (Owner, SessionId) {
    let mut there = (0..at).rev().filter_map(|step| {
        let id = name(step);
        let owner =
            OWNERS.iter().map(|name| Owner::new(*name)).find(|owner| store.session(owner, &id).is_ok())?;
        Some((owner, id))
    });
    there.nth(number).unwrap_or_else(|| (owner(0), SessionId::from_text("nobody")))
}

fn said(said: &Said) -> NewMessage {
    let words = WORDS[usize::from(said.words) % WORDS.len()];
    let role =
        [Role::User, Role::Assistant, Role::Tool, Role::System, Role::User][usize::from(said.role) % 5];
    let tools =
        [vec![], vec!["bash"], vec!["Edit", "bash"], vec!["edit"]][usize::from(said.tool) % 4].clone();
    let json = match role {
        // Now and then one so large that it becomes an artifact.
        Role::Tool if said.words == 0 => {
            let output = "a line that is printed over and over\n".repeat(2_800) + "the needle at the end\n";
            format!(r#"{{"role":"tool","tool_call_id":"c","content":{}}}"#, serde_json::json!(output))
        }
        _ => text_message(WireFormat::Chat, role, words),
    };
    let rendition = said.rendition.then(|| StoredRendition {
        kinds: vec!["trimmed".into()],
        json: text_message(WireFormat::Chat, role, "shorter"),
        tokens: 3,
    });
    NewMessage {
        message: decode_message_text(json).unwrap(),
        tokens: u64::from(said.words) + 1,
        at_ms: said.at_ms,
        tools: tools.into_iter().map(str::to_owned).collect(),
        rendition,
    }
}

/// Carries the step at a place of a script out. What came of it is told in full.
pub(crate) fn carry_out(store: &dyn Store, script: &[Step], at: usize) -> String {
    let meant = |number: &usize| meant(store, at, *number);
    match &script[at] {
        Step::Open { owner: whose, link, title, key } => {
            let parent = link.as_ref().map(|(kind, number, leaves_at)| {
                let (whose, parent) = meant(number);
                let first = store.session(&whose, &parent).map_or(0, |session| session.first_seq);
                (whose, Link { parent, kind: *kind, leaves_at: first + leaves_at })
            });
            let whose = parent
                .as_ref()
                .filter(|_| *whose == 0)
                .map_or_else(|| owner(*whose), |(whose, _)| whose.clone());
            let new = NewSession {
                id: name(at),
                owner: whose,
                link: parent.map(|(_, link)| link),
                started_ms: 1_000 - at as i64,
                model: Some("model-a".into()),
                title: TITLES[usize::from(*title)].map(Into::into),
                origin: Origin {
                    program: ["chat", "codex"][usize::from(*key) % 2].into(),
                    key: (*key == 1).then(|| format!("key-{}", at % 3)),
                    project: (*key == 0).then(|| "/roof".into()),
                },
                wire_format: WireFormat::Chat,
            };
            told(store.open_session(new, None))
        }
        Step::Append { session, words } => {
            let (owner, id) = meant(session);
            told(store.append(&owner, &id, words.iter().map(said).collect()))
        }
        Step::Continue { session, made_before, has_summary, view } => {
            let (owner, id) = meant(session);
            told(continue_session(store, &owner, &id, at, *made_before, *has_summary, view))
        }
        Step::Undo { session, limit } => {
            let (owner, id) = meant(session);
            told(store.select_view(&owner, selecting(id, Selection::Undo, at, *limit)))
        }
        Step::Redo { session } => {
            let (owner, id) = meant(session);
            told(store.select_view(&owner, selecting(id, Selection::Redo, at, u64::MAX)))
        }
        Step::End { session, reason } => {
            let (owner, id) = meant(session);
            let reason =
                [EndReason::NEW, EndReason::RESET, EndReason::named("logout")][usize::from(*reason)].clone();
            told(store.end_session(&owner, &id, &reason, at as i64 * 100))
        }
        Step::Rename { session, title } => {
            let (owner, id) = meant(session);
            told(store.rename(&owner, &id, TITLES[usize::from(*title)]))
        }
        Step::Delete { session, with_dependants } => {
            let (owner, id) = meant(session);
            let dependants = if *with_dependants { Dependants::Delete } else { Dependants::Refuse };
            told(store.delete(&owner, &id, dependants))
        }
        Step::Book { session, calls } => {
            let (owner, id) = meant(session);
            told(store.record_calls(&owner, &id, calls.iter().map(call).collect()))
        }
        Step::Keep { session, text } => {
            let (owner, id) = meant(session);
            let text = format!("{}\nkept text {text}\n", WORDS[usize::from(*text)]);
            let new = NewArtifact { session: &id, text: &text, label: "bash", at_ms: at as i64 };
            told(store.put_artifact(&owner, new).map(comparable))
        }
        Step::Guard { session, name, expires_ms, is_set } => {
            let (owner, id) = meant(session);
            let name = ["cooldown", "strikes"][usize::from(*name)];
            let guard = Guard { name: name.into(), value: at.into(), set_ms: 0, expires_ms: *expires_ms };
            told(store.set_guard(&GuardScope::Chain(owner, id), name, is_set.then_some(&guard)))
        }
        Step::Lock { name, holder, now_ms } => {
            let request = LockRequest {
                name: format!("lock {name}"),
                holder: self::holder(*holder),
                now_ms: *now_ms,
                expires_ms: now_ms + 500,
            };
            told(store.lock(&request, &|holder| holder.process_id != 1))
        }
        Step::Unlock { name, holder } => told(store.unlock(&format!("lock {name}"), &self::holder(*holder))),
    }
}

fn continue_session(
    store: &dyn Store,
    owner: &Owner,
    id: &SessionId,
    at: usize,
    made_before: u64,
    has_summary: bool,
    view: &[Shown],
) -> Result<Session> {
    let from = store.session(owner, id)?;
    let json = |words: &str| text_message(WireFormat::Chat, Role::User, words);
    let place = |number: &usize, first: u64| {
        let (_, session) = meant(store, at, *number);
        let start = store.session(owner, &session).map_or(0, |session| session.first_seq);
        (session, start + first)
    };
    let view = view.iter().map(|item| match item {
        Shown::Summary => NewViewItem::Summary { json: json("a summary"), tokens: 7 },
        Shown::Range { session, first, length, is_open } => {
            let (session, first_seq) = place(session, *first);
            let end_seq = (!is_open).then_some(first_seq + length);
            NewViewItem::Kept(ViewItem::Range { session, first_seq, end_seq })
        }
        Shown::Rendition { session, seq } => {
            let (session, seq) = place(session, *seq);
            let rendition = StoredRendition { kinds: vec!["pruned".into()], json: json("pruned"), tokens: 2 };
            NewViewItem::Kept(ViewItem::Rendition { session, seq, rendition })
        }
        Shown::OldSummary(number) => {
            let summary = SummaryId(*number);
            NewViewItem::Kept(ViewItem::Summary { summary, json: json("an old summary"), tokens: 5 })
        }
        Shown::Synthetic => {
            NewViewItem::Kept(ViewItem::Synthetic { kind: "note".into(), json: json("a note"), tokens: 1 })
        }
    });
    let summary = NewSummary {
        author: "rules".into(),
        document: format!("what was said until step {at}"),
        sources: vec![MessageRun { session: id.clone(), first_seq: from.first_seq, end_seq: from.next_seq }],
        supersedes: None,
        facts: serde_json::json!({"at": at}),
        figures: serde_json::json!(null),
    };
    let continuation = Continuation {
        lease: None,
        from: id.clone(),
        id: name(at),
        reason: EndReason::COMPRESSION,
        at_ms: at as i64 * 10,
        made_at_seq: from.next_seq.saturating_sub(made_before),
        summary: has_summary.then_some(summary),
        view: view.collect(),
    };
    store.continue_session(owner, continuation)
}

fn call((key, model, at_ms): &(u8, u8, i64)) -> NewCall {
    NewCall {
        key: (*key > 0).then(|| format!("call-{key}")),
        model: format!("model-{model}"),
        provider: "someone".into(),
        task: ["chat", "compression"][usize::from(*key) % 2].into(),
        usage: Usage { input: u64::from(*key), output: 2, cache_read: 3, cache_write: 4, reasoning: 1 },
        usage_kind: if *model == 2 { UsageKind::Estimated } else { UsageKind::Measured },
        cost_micro_usd: (*model > 0).then_some(100 * u64::from(*key)),
        uncached_micro_usd: (*key > 1).then_some(500),
        at_ms: *at_ms,
        latency_ms: Some(10),
        error: (*key == 3).then(|| "overloaded".into()),
        ..NewCall::default()
    }
}

fn holder(number: u8) -> Holder {
    Holder { host: "here".into(), process_id: number.into(), process_start: 1, what: "chat".into() }
}

/// Without what only a file has.
pub(crate) fn comparable(artifact: Artifact) -> Artifact {
    Artifact { stored_bytes: 0, ..artifact }
}

pub(crate) fn told<T: std::fmt::Debug>(result: Result<T>) -> String {
    format!("{result:?}")
}
