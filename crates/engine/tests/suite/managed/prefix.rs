//! Between two compactions the bytes of what was sent before are the same from call to call, marks aside: on every wire,
//! with tools, thinking and pictures, whatever is said.

use proptest::prelude::*;
use throughline_engine::{CallInput, IncomingMessage, ManagedSession};
use throughline_provider::CacheMarks;
use throughline_testkit::{Fault, any_conversation, broken_conversation};
use throughline_transcript::{Groups, Message, RawJson, Role, Violation, ViolationKind, WireFormat};
use throughline_wire::Request;

use crate::managed::support::{Act, Stage, envelope, talk};

/// A body without marks: its members and messages, each as it stands.
fn pieces(body: &str) -> (Vec<String>, Vec<String>) {
    let (mut around, mut items) = (Vec::new(), Vec::new());
    for (name, value) in RawJson(body).members() {
        if matches!(&*name, "messages" | "input") {
            items.extend(value.elements().map(|item| CacheMarks::removed_from(item.0).into_owned()));
        } else {
            around.push(format!("{name}:{}", CacheMarks::removed_from(value.0)));
        }
    }
    (around, items)
}

/// A body without marks, in one piece.
pub(crate) fn unmarked(body: &str) -> String {
    let (around, items) = pieces(body);
    format!("{}[{}]}}", around.join(","), items.join(","))
}

/// How many bytes two bodies share from the start, marks aside.
pub(crate) fn shared_prefix(one: &str, two: &str) -> usize {
    let (one, two) = (unmarked(one), unmarked(two));
    one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count()
}

/// The body that was sent last and the session it was sent for.
struct Last {
    body: String,
    session: String,
}

/// Holds a body against the one before it.
fn check(last: Option<&Last>, now: &Last) -> Result<(), TestCaseError> {
    let marks = CacheMarks::count_in(RawJson(&now.body).get("system").map_or("null", |system| system.0));
    let list = RawJson(&now.body).members().find(|(name, _)| matches!(&**name, "messages" | "input"));
    let on_items: usize =
        list.iter().flat_map(|(_, list)| list.elements()).map(|item| CacheMarks::count_in(item.0)).sum();
    prop_assert!(marks + on_items <= CacheMarks::MOST, "{} marks", marks + on_items);
    let Some(last) = last.filter(|last| last.session == now.session) else { return Ok(()) };
    let ((around, items), (now_around, now_items)) = (pieces(&last.body), pieces(&now.body));
    prop_assert_eq!(around, now_around);
    prop_assert!(now_items.len() >= items.len());
    for (at, (before, after)) in items.iter().zip(&now_items).enumerate() {
        prop_assert_eq!(before, after, "item {}", at);
    }
    Ok(())
}

/// Rules of the wire that a body breaks.
fn broken_rules(wire_format: WireFormat, body: &str) -> Result<Vec<ViolationKind>, TestCaseError> {
    let request = Request::decode(wire_format, body.as_bytes());
    let request = request.map_err(|error| TestCaseError::fail(format!("{error}: {body}")))?;
    // What stands before the list on the chat wire is the system prompt.
    let sent: Vec<Message> = request.messages().to_vec();
    let broken = Violation::find(wire_format, &sent, &Groups::of(&sent));
    Ok(broken.into_iter().map(|violation| violation.kind).collect())
}

/// Replays a list: what a model said is what the upstream answers, everything else comes in. Every body is held against
/// the one before it, and against the rules of the wire but for those that the list itself breaks. Returns how many calls
/// and compactions there were.
pub(crate) async fn replay(
    stage: &Stage,
    session: &mut ManagedSession,
    messages: &[Message],
    allowed: &[ViolationKind],
) -> Result<(usize, u64), TestCaseError> {
    let is_answer = |message: &Message| message.role() == Role::Assistant;
    let mut last: Option<Last> = None;
    let mut calls = 0;
    let mut at = 0;
    while at < messages.len() {
        let said = messages[at..].iter().take_while(|message| !is_answer(message)).count();
        let answered = messages[at + said..].iter().take_while(|message| is_answer(message)).count();
        let incoming: Vec<IncomingMessage> =
            messages[at..at + said].iter().cloned().map(IncomingMessage::from).collect();
        stage.script.then(Act::Repeat(messages[at + said..at + said + answered].to_vec()));
        at += said + answered;
        session.call(CallInput::new(envelope(stage.wire_format), incoming)).await.unwrap();
        calls += 1;
        let now = Last { body: stage.script.last_body(), session: session.id().to_string() };
        check(last.as_ref(), &now)?;
        for kind in broken_rules(stage.wire_format, &now.body)? {
            prop_assert!(allowed.contains(&kind), "{:?}: {}", kind, now.body);
        }
        last = Some(now);
    }
    Ok((calls, session.compactions()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(192)))]

    #[test]
    fn what_was_sent_stays_sent(list in any_conversation(), window_tokens in 4_000u64..40_000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let stage = Stage::new(list.wire_format, window_tokens);
            let mut session = stage.open().await;
            replay(&stage, &mut session, &list.messages(), &[]).await.map(|_| ())
        })?;
    }

    #[test]
    fn what_is_broken_gets_no_worse(
        broken in (0usize..3).prop_flat_map(|at| broken_conversation(WireFormat::ALL[at])),
        window_tokens in 4_000u64..40_000,
    ) {
        let messages = broken.list.messages();
        // Each beginning of the list is sent, and may break rules of its own.
        let beginnings = (0..=messages.len()).map(|end| &messages[..end]);
        let found = beginnings.flat_map(|part| Violation::find(broken.list.wire_format, part, &Groups::of(part)));
        let mut allowed: Vec<ViolationKind> = found.map(|violation| violation.kind).collect();
        // What comes in is paired: no result goes out that answers nothing.
        allowed.retain(|kind| !matches!(kind, ViolationKind::ResultWithoutCall | ViolationKind::ResultBeforeCall));
        // Calls that nobody answered are answered by stubs as the conversation goes on.
        if broken.fault == Fault::ResultsMissing {
            allowed.retain(|kind| *kind != ViolationKind::CallWithoutResult);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let stage = Stage::new(broken.list.wire_format, window_tokens);
            let mut session = stage.open().await;
            replay(&stage, &mut session, &messages, &allowed).await.map(|_| ())
        })?;
    }
}

#[tokio::test]
async fn what_was_sent_stays_sent_through_a_long_coding_session() {
    for wire_format in WireFormat::ALL {
        let json = throughline_testkit::big_transcript(wire_format, 600_000, 400, 3);
        let options = throughline_transcript::DecodeOptions::default();
        let messages =
            throughline_transcript::Transcript::decode(json.into_bytes(), &options).unwrap().messages;
        let stage = Stage::new(wire_format, 40_000);
        let mut session = stage.open().await;
        let (calls, compactions) = replay(&stage, &mut session, &messages, &[]).await.unwrap();
        assert!(calls > 50 && compactions > 3, "{wire_format}: {calls} calls, {compactions} compactions");
    }
}

#[tokio::test]
async fn a_refused_call_does_not_move_the_prefix() {
    use throughline_provider::ProviderErrorKind;
    let stage = Stage::new(WireFormat::Anthropic, 200_000);
    let mut session = stage.open().await;
    for turn in 0..4 {
        talk(&stage, &mut session, turn).await;
    }
    let before = stage.script.last_body();
    stage.script.then(Act::fail(ProviderErrorKind::Auth));
    let input = crate::managed::support::saying(WireFormat::Anthropic, "Hello?");
    session.call(input).await.unwrap_err();
    talk(&stage, &mut session, 9).await;
    let shared = shared_prefix(&before, &stage.script.last_body());
    assert_eq!(shared, unmarked(&before).len() - "]}".len());
}
