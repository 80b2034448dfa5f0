//! Every way in which a summariser can fail, at every moment at which it can: the conversation goes on, the record stays
//! whole, nothing is dropped without a summary, and it is reported.

use std::sync::Arc;
use std::time::Duration;

use throughline_compaction::Quality;
use throughline_engine::{EngineEvent, SummaryRoute};
use throughline_testkit::{Reply, ReplyFault, refused_url};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, Seal, StopReason, ToolCall};
use tokio::sync::Semaphore;

use crate::summaries::stage::{MODEL, RULE, Stage, Summary, good_notes, notes_about, target, words};

/// How a summariser fails.
struct Failure {
    name: &'static str,
    reply: fn() -> Reply,
    /// What people must be told.
    told: &'static str,
    /// What comes of it where there is room.
    with_room: WithRoom,
    /// How long it is waited for.
    time_limit: Duration,
    /// Asked first, where nobody listens.
    first: FirstRoute,
}

/// What comes of a failure while there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WithRoom {
    /// The compaction is put off.
    PutOff,
    /// Rules make the summary.
    Rules,
    /// It is no failure of the summary: it is mended and used.
    Mended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstRoute {
    None,
    Refused,
    TooSmall,
}

const PATIENT: Duration = Duration::from_secs(60);
const IMPATIENT: Duration = Duration::from_secs(8);
/// Cases that run at the same time; most of them wait.
const AT_ONCE: usize = 32;
const SECRET: &str = "AKIAQ3EGRLZ7XJ2MWVNT";

fn failure(name: &'static str, reply: fn() -> Reply, told: &'static str, with_room: WithRoom) -> Failure {
    Failure { name, reply, told, with_room, time_limit: PATIENT, first: FirstRoute::None }
}

fn all() -> Vec<Failure> {
    use WithRoom::{Mended, PutOff, Rules};
    vec![
        Failure {
            first: FirstRoute::Refused,
            ..failure(
                "refused",
                || Reply::error(503, "overloaded", "busy"),
                "nothing answers at this address",
                PutOff,
            )
        },
        failure("401", || Reply::error(401, "authentication_error", "bad key"), "HTTP 401", Rules),
        failure("402", || Reply::error(402, "insufficient_quota", "no credit"), "HTTP 402", Rules),
        failure("403", || Reply::error(403, "permission_error", "not allowed"), "HTTP 403", Rules),
        failure("404", || Reply::error(404, "not_found_error", "model: talker not found"), "HTTP 404", Rules),
        failure("408", || Reply::error(408, "timeout", "request timeout"), "HTTP 408", PutOff),
        failure("413", || Reply::error(413, "request_too_large", "too large"), "HTTP 413", Rules),
        failure(
            "429",
            || Reply::error(429, "rate_limit_error", "slow down").header("retry-after", "77"),
            "HTTP 429",
            PutOff,
        ),
        failure("500", || Reply::error(500, "api_error", "internal"), "HTTP 500", PutOff),
        failure("502", || Reply::html(502, "Bad Gateway"), "HTTP 502", PutOff),
        failure("503", || Reply::error(503, "api_error", "unavailable"), "HTTP 503", PutOff),
        failure("529", || Reply::error(529, "overloaded_error", "overloaded"), "HTTP 529", PutOff),
        Failure { time_limit: IMPATIENT, ..failure("timeout", Reply::stall, "no word for", PutOff) },
        Failure {
            time_limit: IMPATIENT,
            ..failure(
                "stall",
                || Reply::text(good_notes()).failing_after(4, ReplyFault::Stall),
                "no word for",
                PutOff,
            )
        },
        failure(
            "cut stream",
            || Reply::text(good_notes()).failing_after(6, ReplyFault::Cut),
            "broke off",
            PutOff,
        ),
        failure("HTML", || Reply::html(200, "Please sign in"), "a web page answered", Rules),
        failure("invalid JSON", || Reply::json(200, "{\"choices\": [{\"mess"), "no JSON", Rules),
        failure("empty", || Reply::text(""), "the answer was empty", Rules),
        failure("whitespace", || Reply::text(" \n\t \n"), "the answer was blank", Rules),
        failure("only reasoning", only_reasoning, "reasoning and nothing else", Rules),
        failure(
            "longer than the source",
            || Reply::text(notes_about(&words(3, 12_000))),
            "what it replaces",
            Rules,
        ),
        failure("wrong language of sections", || Reply::text(in_german()), "of the thirteen headings", Rules),
        failure("cut off by its cap", cut_off, "cut off", Rules),
        failure("a tool call", tool_call, "called the tool `paint`", Rules),
        failure(
            "secrets in it",
            || Reply::text(notes_about(&format!("the key is {SECRET}"))),
            "were masked",
            Mended,
        ),
        Failure {
            first: FirstRoute::TooSmall,
            ..failure(
                "window too small",
                || {
                    Reply::error(
                        400,
                        "invalid_request_error",
                        "prompt is too long: 9000 tokens > 300 maximum",
                    )
                },
                "is too small to read",
                Rules,
            )
        },
    ]
}

fn only_reasoning() -> Reply {
    let reasoning = AnswerPart::Reasoning { text: "Let me think about it.".to_owned(), seal: Seal::None };
    Reply::answer(AnswerDraft::of_parts(vec![reasoning]))
}

fn cut_off() -> Reply {
    Reply::answer(AnswerDraft { stop: StopReason::OutputLimit, ..AnswerDraft::text(good_notes()) })
}

fn tool_call() -> Reply {
    let call = ToolCall { id: "c1".to_owned(), name: "paint".to_owned(), arguments: "{}".to_owned() };
    Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::Text(good_notes()), AnswerPart::ToolCall(call)]))
}

fn in_german() -> String {
    let headings = [
        "Aufgabe",
        "Ziel",
        "Vorgaben",
        "Erledigt",
        "Stand",
        "In Arbeit",
        "Hindernisse",
        "Entscheidungen",
        "Antworten",
        "Offene Fragen",
        "Dateien",
        "Rest",
        "Wichtiges",
    ];
    headings.map(|heading| format!("## {heading}\n- alles in Ordnung\n")).concat()
}

/// When it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The threshold is passed, and the window has room left.
    RoomLeft,
    /// Nothing could be sent otherwise.
    Overflow,
    /// While a summary is prepared ahead of time.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    First,
    Later,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_at_every_moment() {
    let moments = [Moment::RoomLeft, Moment::Overflow, Moment::Background];
    let mut cases = Vec::new();
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    for (row, failure) in all().into_iter().enumerate() {
        let failure = Arc::new(failure);
        for (column, moment) in moments.into_iter().enumerate() {
            for which in [Which::First, Which::Later] {
                let wire_format = WireFormat::ALL[(row + column + usize::from(which == Which::Later)) % 3];
                let (failure, at_once) = (Arc::clone(&failure), Arc::clone(&at_once));
                cases.push(tokio::spawn(async move {
                    let _turn = at_once.acquire().await.unwrap();
                    run(failure, moment, which, wire_format).await;
                }));
            }
        }
    }
    assert_eq!(cases.len(), 26 * 6);
    let mut broken = Vec::new();
    for case in cases {
        if let Err(error) = case.await {
            broken.push(error.to_string());
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

async fn run(failure: Arc<Failure>, moment: Moment, which: Which, wire_format: WireFormat) {
    let case = format!("{} / {moment:?} / {which:?} / {wire_format}", failure.name);
    let reply = failure.reply;
    let refused = refused_url().await.unwrap();
    let first = failure.first;
    let routes = move |_: &str| match first {
        FirstRoute::None => Vec::new(),
        FirstRoute::Refused => vec![route(&refused, "absent", wire_format, 100_000)],
        FirstRoute::TooSmall => vec![route(&refused, "tiny", wire_format, 300)],
    };
    let failing: Summary = Arc::new(move |_| reply());
    let mut stage = Stage::new(wire_format, failing, failure.time_limit, routes).await;
    if which == Which::Later {
        stage.talk_until_compacted(&case).await;
        stage.assert_nothing_lost(&case);
    }
    let before = stage.session.compactions();
    stage.fill_to(78).await;
    let messages_before = stage.session.messages().len();
    stage.fail();
    match moment {
        Moment::RoomLeft => {
            stage.say(words(5, 4_300)).await;
        }
        Moment::Overflow => {
            stage.say(words(5, 21_000)).await;
        }
        Moment::Background => {
            // A summary is prepared near the threshold, and what came of it is told with the next call.
            stage.fill_to(94).await;
            while stage.session.is_preparing() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stage.say(words(5, 3_000)).await;
            let told = stage.told();
            let ended = if failure.with_room == WithRoom::Mended {
                "preparation_ready"
            } else {
                "preparation_failed"
            };
            assert!(told.contains("preparation_started") && told.contains(ended), "{case}: {told}");
        }
    }
    // Whatever happened, it goes on.
    let went_on = stage.say("And what now?".to_owned()).await;
    assert_eq!(went_on.answer.text(), "All right.", "{case}");
    stage.assert_nothing_lost(&case);
    let told = stage.told();
    assert!(told.contains(failure.told), "{case}: nobody was told `{}`:\n{told}", failure.told);
    let calls = stage.booked();
    assert!(!calls.is_empty(), "{case}: nothing was booked");
    if failure.with_room != WithRoom::Mended {
        let last = calls.last().unwrap();
        assert!(last.error.is_some(), "{case}: {last:?}");
    }

    let compacted = stage.session.compactions() > before;
    let by = quality(&stage);
    match (moment, failure.with_room) {
        (_, WithRoom::Mended) => {
            assert_eq!((compacted, by), (true, Some(Quality::Model)), "{case}: {told}");
            let summary = stage.summary().unwrap();
            assert!(!summary.contains(SECRET) && summary.contains("[redacted:"), "{case}: {summary}");
        }
        (Moment::Overflow, _) | (_, WithRoom::Rules) => {
            assert_eq!((compacted, by), (true, Some(Quality::Rules)), "{case}: {told}");
            let summary = stage.summary().unwrap();
            assert!(summary.contains("made by fixed rules"), "{case}: {summary}");
            assert!(summary.contains(RULE), "{case}: the person's rule is gone: {summary}");
            if which == Which::Later {
                assert!(summary.contains("kept in good order"), "{case}: the earlier summary is gone");
            }
        }
        (_, WithRoom::PutOff) => {
            assert!(!compacted, "{case}: {told}");
            assert!(stage.session.messages().len() > messages_before, "{case}: something was dropped");
            assert!(
                told.contains("compaction_aborted") || told.contains("compaction_blocked"),
                "{case}: {told}"
            );
        }
    }
}

fn route(url: &str, model: &str, wire_format: WireFormat, window_tokens: u64) -> SummaryRoute {
    SummaryRoute { target: target(url, model, wire_format, window_tokens), time_limit: PATIENT }
}

/// How good the first summary is that came after the failures began.
fn quality(stage: &Stage) -> Option<Quality> {
    stage.events().into_iter().find_map(|event| match event {
        EngineEvent::CompactionCompleted { quality, .. } => Some(quality),
        _ => None,
    })
}

#[tokio::test]
async fn after_failures_the_next_model_is_asked_and_people_hear_why() {
    let failing: Summary = Arc::new(|_| Reply::error(500, "api_error", "internal"));
    let mut stage = Stage::new(WireFormat::Chat, failing, PATIENT, |url| {
        vec![route(url, "first", WireFormat::Chat, 100_000), route(url, "second", WireFormat::Chat, 100_000)]
    })
    .await;
    stage.upstream.for_model("second", throughline_testkit::Script::always(Reply::text(good_notes())));
    stage.fill_to(78).await;
    stage.fail();
    stage.say(words(5, 4_300)).await;
    assert_eq!(stage.session.compactions(), 1, "{}", stage.told());
    let done = stage.events().into_iter().find_map(|event| match event {
        EngineEvent::CompactionCompleted { report, .. } => Some(report),
        _ => None,
    });
    let report = done.unwrap();
    let written_by = report.written_by.unwrap();
    assert_eq!((written_by.model.as_str(), written_by.form.as_str()), ("second", "apart"));
    assert!(
        report
            .warnings
            .iter()
            .any(|note| note.contains("not written by first at custom: the provider failed"))
    );
    let models: Vec<String> = stage.booked().into_iter().map(|call| call.model).collect();
    assert_eq!(models, ["first", "first", "second"]);
    assert!(!models.contains(&MODEL.to_owned()));
}
