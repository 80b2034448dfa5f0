//! Lines of the log, and the totals at its end.

use throughline_compaction::BeforeAfter;
use throughline_engine::{CompressReport, Trigger};
use throughline_transcript::WireFormat;

use super::*;

fn compacted(quality: Quality, warnings: &[&str]) -> GatewayEvent {
    let report = CompressReport {
        messages: BeforeAfter { before: 40, after: 12 },
        tokens: BeforeAfter { before: 20_000, after: 6_000 },
        warnings: warnings.iter().map(|warning| (*warning).to_owned()).collect(),
        ..CompressReport::default()
    };
    let (old, new) = (SessionId::from_text("one"), SessionId::from_text("two"));
    let event = EngineEvent::CompactionCompleted {
        trigger: Trigger::Preflight,
        quality,
        report: Box::new(report),
        old: old.clone(),
        new,
    };
    GatewayEvent::Engine { conversation: old, event }
}

fn served(status: u16, end: AnswerEnd) -> GatewayEvent {
    GatewayEvent::Served(ServedRequest {
        wire: WireFormat::Chat,
        model: "worker".to_owned(),
        session: Some(SessionId::from_text("one")),
        status,
        head_ms: 3,
        whole_ms: 5,
        end,
    })
}

#[test]
fn a_summary_that_a_model_could_not_write_is_shown_with_the_reason() {
    let event = compacted(Quality::Rules, &["compacted by rules, because cheap-model refused the key (401)"]);
    let words = line(&event).unwrap();
    assert!(
        words.contains("summary by rules; goes on as two; compacted by rules, because cheap-model"),
        "{words}"
    );
    assert_eq!(level(&event), Level::Warning);
    assert_eq!(level(&compacted(Quality::Rules, &[])), Level::Info);
}

#[test]
fn a_refusal_names_method_path_and_wire() {
    let event = GatewayEvent::Refused {
        form: "responses",
        method: "GET".to_owned(),
        path: "/v1/responses/x".to_owned(),
        status: 404,
        message: "nothing there".to_owned(),
    };
    assert_eq!(line(&event).unwrap(), "refused  GET /v1/responses/x  responses  404  nothing there");
    assert_eq!(level(&event), Level::Info);
}

#[test]
fn the_sum_says_what_happened() {
    assert_eq!(ServeTotals::default().words(), "no requests answered");
    let mut totals = ServeTotals::default();
    for event in [
        GatewayEvent::Opened { session: SessionId::from_text("one"), link: None },
        GatewayEvent::Opened { session: SessionId::from_text("two"), link: None },
        GatewayEvent::Attached {
            session: SessionId::from_text("one"),
            link: (SessionId::from_text("two"), "side_call"),
        },
        served(200, AnswerEnd::Whole),
        served(200, AnswerEnd::Abandoned),
        served(529, AnswerEnd::Whole),
        compacted(Quality::Rules, &[]),
    ] {
        totals.count(&event);
    }
    assert_eq!(
        totals.words(),
        "3 requests answered (1 with an error, 1 whose client hung up), 1 new conversation, 1 compaction, 1 warning"
    );
}

#[test]
fn last_line_promises_a_complete_record_only_without_warnings() {
    let mut totals = ServeTotals::default();
    totals.count(&served(200, AnswerEnd::Whole));
    assert_eq!(totals.ending(), "stopped; everything that was answered is recorded");
    totals.count(&GatewayEvent::Warning("NOT RECORDED: the disk is full".to_owned()));
    assert!(totals.ending().ends_with("except where a warning says otherwise"), "{}", totals.ending());
}
