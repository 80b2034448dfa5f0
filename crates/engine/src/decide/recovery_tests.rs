//! Tests of the step that follows each error and history.

use std::time::Duration;

use throughline_provider::{
    ConnectStage, ImageComplaint, ProviderError, ProviderErrorKind, RequestComplaint, WrongWireSign,
};

use super::{
    AlternativeModel, FailureContext, PartialAnswer, RecoveryAction, RecoveryAdvice, RecoveryFailure,
    RecoveryStep, WaitPolicy, next_step,
};
use crate::decide::trigger::Automatic;

/// A window of 200,000, a prompt of 150,000 in 600,000 bytes, a limit of 32,000, no images, no alternatives.
const HERE: FailureContext<'static> = FailureContext {
    automatic: Automatic::On,
    waiting: WaitPolicy::Here,
    window_tokens: 200_000,
    prompt_tokens: 150_000,
    body_bytes: 600_000,
    old_image_bytes: 0,
    output_cap_tokens: Some(32_000),
    answer: PartialAnswer::Nothing,
    alternatives: &[],
    jitter_permille: 0,
};

fn too_long(window_tokens: Option<u64>) -> ProviderErrorKind {
    ProviderErrorKind::PromptTooLong { window_tokens, prompt_tokens: None }
}

fn cap(largest: Option<u64>, window: Option<u64>, prompt: Option<u64>) -> ProviderErrorKind {
    ProviderErrorKind::OutputCapTooLarge {
        largest_cap_tokens: largest,
        window_tokens: window,
        prompt_tokens: prompt,
    }
}

fn bytes(limit_bytes: Option<u64>, sent_bytes: Option<u64>) -> ProviderErrorKind {
    ProviderErrorKind::PayloadTooLarge { limit_bytes, sent_bytes }
}

fn compacted() -> RecoveryAction {
    RecoveryAction::Compacted { before_tokens: 150_000, after_tokens: 40_000 }
}

fn in_vain() -> RecoveryAction {
    RecoveryAction::CompactedInVain { detail: "everything is protected".to_owned() }
}

fn compact(learn_window_tokens: Option<u64>, target_tokens: Option<u64>) -> RecoveryStep {
    RecoveryStep::Compact { learn_window_tokens, target_tokens }
}

fn step(kind: ProviderErrorKind, tried: &[RecoveryAction], here: &FailureContext<'_>) -> RecoveryStep {
    next_step(&ProviderError::of(kind), tried, here)
}

#[test]
fn a_prompt_that_is_too_long() {
    let cases = [
        (too_long(None), vec![], compact(None, None)),
        // A window is learnt if it is stated, plausible and smaller.
        (too_long(Some(131_072)), vec![], compact(Some(131_072), None)),
        (too_long(Some(200_000)), vec![], compact(None, None)),
        (too_long(Some(1_000_000)), vec![], compact(None, None)),
        (too_long(Some(60)), vec![], compact(None, None)),
        // Refused again: smaller.
        (too_long(None), vec![compacted()], compact(None, Some(75_000))),
        (too_long(Some(32_768)), vec![compacted()], compact(Some(32_768), None)),
        (too_long(None), vec![compacted(), compacted()], compact(None, Some(75_000))),
        // Gives up after three compactions, or one ineffective one.
        (
            too_long(None),
            vec![compacted(), compacted(), compacted()],
            RecoveryStep::GiveUp(RecoveryAdvice::MakeRoom),
        ),
        (too_long(None), vec![in_vain()], RecoveryStep::GiveUp(RecoveryAdvice::MakeRoom)),
    ];
    for (kind, tried, expected) in cases {
        assert_eq!(step(kind.clone(), &tried, &HERE), expected, "{kind} after {tried:?}");
    }
}

#[test]
fn a_larger_model_is_asked_before_giving_up() {
    let larger = |tokens| [AlternativeModel { model: "big".to_owned(), prompt_room_tokens: tokens }];
    let ask = RecoveryStep::AskAnother { alternative: 0 };
    let all = vec![compacted(), compacted(), compacted()];
    let (same, big) = (larger(200_000), larger(1_000_000));
    // Only after a compaction was tried, and only if the window is larger; also with compaction off.
    assert_eq!(
        step(too_long(None), &[], &FailureContext { alternatives: &big, ..HERE }),
        compact(None, None)
    );
    assert_eq!(step(too_long(None), &all, &FailureContext { alternatives: &big, ..HERE }), ask);
    assert_eq!(
        step(too_long(None), &all, &FailureContext { alternatives: &same, ..HERE }),
        RecoveryStep::GiveUp(RecoveryAdvice::MakeRoom)
    );
    let off = FailureContext { automatic: Automatic::Off, ..HERE };
    assert_eq!(step(too_long(None), &[], &FailureContext { alternatives: &big, ..off }), ask);
    assert_eq!(
        step(too_long(Some(131_072)), &[], &off),
        RecoveryStep::GiveUp(RecoveryAdvice::TurnCompactionOn)
    );
    // The first model that fits is called, not the first in the list.
    let two = [
        AlternativeModel { model: "same".to_owned(), prompt_room_tokens: 200_000 },
        AlternativeModel { model: "big".to_owned(), prompt_room_tokens: 400_000 },
    ];
    let here = FailureContext { alternatives: &two, ..HERE };
    assert_eq!(step(too_long(None), &all, &here), RecoveryStep::AskAnother { alternative: 1 });
}

#[test]
fn an_output_cap_is_lowered_and_nothing_else() {
    let lower = |tokens| RecoveryStep::LowerCap { tokens };
    let lowered = |tokens| RecoveryAction::LoweredCap { tokens };
    let cases = [
        (cap(Some(8_192), None, None), vec![], lower(8_192)),
        // "190000 + 20000 > 200000": room for 10,000, less a margin.
        (cap(None, Some(200_000), Some(190_000)), vec![], lower(9_936)),
        (cap(Some(10_000), Some(200_000), Some(190_000)), vec![], lower(9_936)),
        // A window smaller than assumed, more than half of it filled by the prompt: the prompt is compacted.
        (cap(None, Some(160_000), None), vec![], compact(Some(160_000), None)),
        (cap(None, Some(160_000), Some(90_000)), vec![], compact(Some(160_000), None)),
        (cap(None, Some(100_000), Some(40_000)), vec![], RecoveryStep::LowerCap { tokens: 16_000 }),
        // No limit stated, or an implausible one: half.
        (cap(None, None, None), vec![], lower(16_000)),
        (cap(Some(64_000), None, None), vec![], lower(16_000)),
        // Three times at most.
        (
            cap(None, None, None),
            vec![lowered(1), lowered(1), lowered(1)],
            RecoveryStep::GiveUp(RecoveryAdvice::SetOutputCap),
        ),
        // No answer fits at all: the prompt is compacted.
        (cap(None, Some(200_000), Some(200_000)), vec![], compact(None, None)),
    ];
    for (kind, tried, expected) in cases {
        assert_eq!(step(kind.clone(), &tried, &HERE), expected, "{kind:?} after {tried:?}");
    }
    // Without a cap in the request there is no half of it.
    let none = FailureContext { output_cap_tokens: None, ..HERE };
    assert_eq!(step(cap(None, None, None), &[], &none), RecoveryStep::GiveUp(RecoveryAdvice::SetOutputCap));
    assert_eq!(step(cap(Some(64_000), None, None), &[], &none), lower(64_000));
    // Lowering the limit is not a compaction, so it also happens with compaction off.
    let off = FailureContext { automatic: Automatic::Off, ..HERE };
    assert_eq!(step(cap(Some(8_192), None, None), &[], &off), lower(8_192));
}

#[test]
fn too_many_bytes() {
    let pictures = FailureContext { old_image_bytes: 400_000, ..HERE };
    let removed = RecoveryAction::RemovedImages { bytes: 400_000 };
    let off = FailureContext { automatic: Automatic::Off, ..pictures };
    let cases = [
        // Images are removed first.
        (bytes(None, None), vec![], pictures, RecoveryStep::RemoveOldImages),
        (bytes(Some(300_000), Some(600_000)), vec![removed.clone()], pictures, compact(None, Some(67_500))),
        (bytes(Some(300_000), None), vec![], HERE, compact(None, Some(67_500))),
        (bytes(None, None), vec![], HERE, compact(None, Some(101_250))),
        (bytes(None, None), vec![in_vain()], HERE, RecoveryStep::GiveUp(RecoveryAdvice::SmallerPictures)),
        (bytes(None, None), vec![], off, RecoveryStep::GiveUp(RecoveryAdvice::TurnCompactionOn)),
    ];
    for (kind, tried, here, expected) in cases {
        assert_eq!(step(kind.clone(), &tried, &here), expected, "{kind:?} after {tried:?}");
    }
    let refused = |complaint| ProviderErrorKind::ImageRefused { complaint };
    assert_eq!(step(refused(ImageComplaint::TooMany), &[], &pictures), RecoveryStep::RemoveOldImages);
    assert_eq!(
        step(refused(ImageComplaint::NotSupported), &[removed], &pictures),
        RecoveryStep::GiveUp(RecoveryAdvice::ModelThatSees)
    );
    assert_eq!(
        step(refused(ImageComplaint::TooLarge { limit_bytes: None }), &[], &HERE),
        RecoveryStep::GiveUp(RecoveryAdvice::SmallerPictures)
    );
}

#[test]
fn a_plan_that_allows_less() {
    let kind = |allowed_tokens| ProviderErrorKind::OverAllowance { allowed_tokens, asked_tokens: None };
    // A limit in bytes never changes the window.
    assert_eq!(step(kind(Some(30_000)), &[], &HERE), compact(None, Some(27_000)));
    assert_eq!(step(kind(None), &[], &HERE), compact(None, Some(75_000)));
    assert_eq!(step(kind(None), &[in_vain()], &HERE), RecoveryStep::GiveUp(RecoveryAdvice::MakeRoom));
}

#[test]
fn what_passes_is_waited_for() {
    let waited = RecoveryAction::Waited { ms: 1_000 };
    let transient = [
        ProviderErrorKind::RateLimit,
        ProviderErrorKind::Overload,
        ProviderErrorKind::Interrupted,
        ProviderErrorKind::ServerFault,
        ProviderErrorKind::Unreachable { stage: ConnectStage::Closed },
    ];
    for kind in transient {
        assert_eq!(step(kind.clone(), &[], &HERE), RecoveryStep::Wait { ms: 500 }, "{kind}");
        let twice = vec![waited.clone(), waited.clone()];
        let late = FailureContext { jitter_permille: 999, ..HERE };
        assert_eq!(step(kind.clone(), &twice, &late), RecoveryStep::Wait { ms: 3_998 }, "{kind}");
        let thrice = vec![waited.clone(); 3];
        assert_eq!(
            step(kind.clone(), &thrice, &HERE),
            RecoveryStep::GiveUp(RecoveryAdvice::TryLater),
            "{kind}"
        );
        let other = [AlternativeModel { model: "other".to_owned(), prompt_room_tokens: 200_000 }];
        let here = FailureContext { alternatives: &other, ..HERE };
        assert_eq!(step(kind.clone(), &thrice, &here), RecoveryStep::AskAnother { alternative: 0 }, "{kind}");
    }
    // A request that timed out may be billed each time.
    assert_eq!(step(ProviderErrorKind::Timeout, &[], &HERE), RecoveryStep::Wait { ms: 500 });
    assert_eq!(
        step(ProviderErrorKind::Timeout, &[waited], &HERE),
        RecoveryStep::GiveUp(RecoveryAdvice::TryLater)
    );
    // The provider's own wait applies, up to the limit.
    let asks = |secs| ProviderError {
        retry_after: Some(Duration::from_secs(secs)),
        ..ProviderError::of(ProviderErrorKind::RateLimit)
    };
    assert_eq!(next_step(&asks(20), &[], &HERE), RecoveryStep::Wait { ms: 20_000 });
    assert_eq!(next_step(&asks(3_600), &[], &HERE), RecoveryStep::GiveUp(RecoveryAdvice::TryLater));
}

#[test]
fn what_waiting_does_not_mend_is_said_at_once() {
    let cases = [
        (ProviderErrorKind::Auth, RecoveryAdvice::CheckKey),
        (ProviderErrorKind::Forbidden, RecoveryAdvice::CheckKey),
        (ProviderErrorKind::UnknownModel, RecoveryAdvice::CheckModel),
        (ProviderErrorKind::WrongWire { sign: WrongWireSign::Html }, RecoveryAdvice::CheckAddress),
        (ProviderErrorKind::Unreachable { stage: ConnectStage::Name }, RecoveryAdvice::CheckAddress),
        (ProviderErrorKind::Unreachable { stage: ConnectStage::Tls }, RecoveryAdvice::CheckAddress),
        (ProviderErrorKind::ContentPolicy, RecoveryAdvice::Rephrase),
        (
            ProviderErrorKind::MalformedRequest { complaint: RequestComplaint::Other },
            RecoveryAdvice::CheckRequest,
        ),
        (ProviderErrorKind::Quota { affordable_tokens: None }, RecoveryAdvice::TopUp),
        (ProviderErrorKind::Quota { affordable_tokens: Some(12) }, RecoveryAdvice::TopUp),
    ];
    for (kind, advice) in cases {
        assert_eq!(step(kind.clone(), &[], &HERE), RecoveryStep::GiveUp(advice), "{kind}");
    }
    let affordable = ProviderErrorKind::Quota { affordable_tokens: Some(4_000) };
    assert_eq!(step(affordable, &[], &HERE), RecoveryStep::LowerCap { tokens: 4_000 });
}

#[test]
fn an_answer_that_has_begun_is_not_asked_for_twice() {
    let begun = FailureContext { answer: PartialAnswer::Begun, ..HERE };
    for kind in [ProviderErrorKind::Interrupted, ProviderErrorKind::Overload, too_long(None)] {
        assert_eq!(step(kind, &[], &begun), RecoveryStep::GiveUp(RecoveryAdvice::AskAgain));
    }
}

#[test]
fn the_message_says_what_was_tried_and_what_to_do() {
    let gave_up = RecoveryFailure {
        trouble: ProviderError {
            status: Some(400),
            ..ProviderError::of(ProviderErrorKind::PromptTooLong {
                window_tokens: Some(32_768),
                prompt_tokens: Some(90_000),
            })
        },
        tried: vec![
            RecoveryAction::LearntWindow { tokens: 32_768 },
            RecoveryAction::Compacted { before_tokens: 90_000, after_tokens: 35_000 },
            in_vain(),
            RecoveryAction::AskedAnother { model: "big".to_owned() },
        ],
        advice: RecoveryAdvice::MakeRoom,
        hint: None,
        refusal: None,
    };
    let words = [
        "the prompt is too long: 90000 tokens for a window of 32768 (HTTP 400)",
        "tried: took the window to be 32768 tokens, then compacted from 90000 to 35000 tokens, then compacting changed \
         nothing (everything is protected), then asked big",
        "the conversation is intact",
        "what is left cannot be compacted: choose a model with a larger window, shorten the system prompt or the tools, or \
         begin a new conversation",
    ];
    assert_eq!(gave_up.to_string(), words.join("; "));
    // The upstream's hint is used for the endpoint's settings, not for the size of the conversation.
    let hinted = RecoveryFailure { hint: Some("check the key in MY_KEY".to_owned()), ..gave_up };
    assert!(!hinted.to_string().contains("MY_KEY"));
    assert!(
        RecoveryFailure { advice: RecoveryAdvice::CheckKey, ..hinted }
            .to_string()
            .ends_with("; check the key in MY_KEY")
    );
}

/// The steps end, whatever a provider answers and however often.
#[test]
fn every_row_of_steps_ends() {
    let kinds = [
        too_long(None),
        too_long(Some(100_000)),
        cap(None, None, None),
        bytes(None, None),
        ProviderErrorKind::RateLimit,
    ];
    for kind in kinds {
        let mut tried = Vec::new();
        for round in 0.. {
            assert!(round < 10, "{kind}: {tried:?}");
            match step(kind.clone(), &tried, &FailureContext { old_image_bytes: 9, ..HERE }) {
                RecoveryStep::Compact { .. } => tried.push(compacted()),
                RecoveryStep::LowerCap { tokens } => tried.push(RecoveryAction::LoweredCap { tokens }),
                RecoveryStep::RemoveOldImages => tried.push(RecoveryAction::RemovedImages { bytes: 9 }),
                RecoveryStep::Wait { ms } => tried.push(RecoveryAction::Waited { ms }),
                RecoveryStep::AskAnother { .. } | RecoveryStep::GiveUp(_) => break,
            }
        }
    }
}

#[test]
fn a_caller_who_waits_by_themselves_is_told_at_once() {
    let here = FailureContext { waiting: WaitPolicy::ByCaller, ..HERE };
    for kind in [ProviderErrorKind::RateLimit, ProviderErrorKind::Overload, ProviderErrorKind::Timeout] {
        assert_eq!(step(kind, &[], &here), RecoveryStep::GiveUp(RecoveryAdvice::TryLater));
    }
    // Errors that waiting does not solve are handled as always.
    assert_eq!(step(too_long(None), &[], &here), compact(None, None));
}
