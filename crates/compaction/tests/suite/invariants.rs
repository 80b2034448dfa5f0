//! What must hold after every attempt, said as checks that name what is wrong.

use throughline_compaction::{Attempt, Outcome, Plan, RenditionKind, SummaryFrame, Synthetic, ViewItem};
use throughline_transcript::{Message, Role, Violation, ViolationKind};

use crate::harness::Case;

/// What is wrong, or nothing.
pub(crate) type Check = Result<(), String>;

macro_rules! hold {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use hold;

/// Everything that must hold for a conversation a provider accepts.
pub(crate) fn check(case: &Case, attempt: &Attempt) -> Check {
    match &attempt.outcome {
        Outcome::Completed(_) => check_completed(case, attempt),
        Outcome::NoOp { .. } => check_unchanged(case, attempt),
        Outcome::Aborted { detail, .. } => Err(format!("aborted: {detail}")),
    }
}

/// An attempt that did nothing left everything as it was.
pub(crate) fn check_unchanged(case: &Case, attempt: &Attempt) -> Check {
    let untouched: Vec<ViewItem> = (0..case.messages.len()).map(ViewItem::Verbatim).collect();
    hold!(attempt.items == untouched, "an attempt without result changed the view");
    hold!(attempt.summary.is_none(), "an attempt without result has a summary");
    hold!(
        attempt.report.tokens.after == attempt.report.tokens.before,
        "an attempt without result reports a change"
    );
    Ok(())
}

fn check_completed(case: &Case, attempt: &Attempt) -> Check {
    let plan = attempt.plan.as_ref().ok_or("completed without a plan")?;
    check_ranges(case, plan)?;
    let after = case.after(attempt);
    let broken = Violation::find(case.wire_format, &after.messages, &after.groups);
    hold!(broken.is_empty(), "the view breaks rules: {broken:?}");
    check_neighbours(&attempt.items, &after.messages)?;
    check_summary(&attempt.items, &after.messages)?;
    check_order(attempt, plan)?;
    check_renditions(case, attempt)?;
    check_last_human(case, attempt, plan, &after.messages)?;
    check_figures(case, attempt, &after)
}

/// The three stretches cover the list, and the cut parts no group.
fn check_ranges(case: &Case, plan: &Plan) -> Check {
    let count = case.messages.len();
    hold!(
        plan.head.start == 0
            && plan.head.end == plan.middle.start
            && plan.middle.end == plan.tail.start
            && plan.tail.end == count,
        "the plan does not cover the list: {plan:?}"
    );
    hold!(!plan.tail.is_empty(), "there is no tail");
    for cut in [plan.head.end, plan.tail.start] {
        let inside = case.groups.as_slice().iter().any(|group| group.start < cut && cut < group.end);
        hold!(!inside, "the cut at {cut} parts a group");
    }
    Ok(())
}

/// No two neighbours share a role that were not neighbours before.
fn check_neighbours(items: &[ViewItem], view: &[Message]) -> Check {
    for (at, pair) in items.windows(2).enumerate() {
        let (left, right) = (view[at].role(), view[at + 1].role());
        let old_neighbours = match (pair[0].message(), pair[1].message()) {
            (Some(first), Some(second)) => second == first + 1,
            _ => false,
        };
        let speaks = matches!(left, Role::User | Role::Assistant);
        hold!(!speaks || left != right || old_neighbours, "items {at} and {} are both {left:?}", at + 1);
    }
    Ok(())
}

/// Exactly one summary, with tag and end marker, and it is the one we made.
fn check_summary(items: &[ViewItem], view: &[Message]) -> Check {
    let ours: Vec<usize> = (0..items.len()).filter(|at| matches!(items[*at], ViewItem::Summary(_))).collect();
    let known: Vec<usize> = (0..view.len()).filter(|at| SummaryFrame::find(&view[*at]).is_some()).collect();
    hold!(ours.len() == 1, "{} items are summaries", ours.len());
    hold!(known == ours, "summaries are known at {known:?} but stand at {ours:?}");
    let text = view[ours[0]].text();
    hold!(text.starts_with(SummaryFrame::TAG), "the summary does not open with its tag");
    hold!(text.ends_with(SummaryFrame::END_MARKER), "the summary does not close with its end marker");
    Ok(())
}

/// Head in order, summary, acknowledgement where planned, pinned message, tail in order and untouched; nothing else.
fn check_order(attempt: &Attempt, plan: &Plan) -> Check {
    let mut items = attempt.items.iter();
    for index in plan.head.clone() {
        let item = items.next();
        hold!(item.and_then(ViewItem::message) == Some(index), "the head lacks message {index}");
    }
    let mut after_head = items.next();
    // Where the head ends with the person's prompt, a line of the assistant stands between it and notes of the same role.
    if matches!(after_head, Some(ViewItem::Synthetic(Synthetic::Acknowledgement, _))) {
        hold!(!plan.head.is_empty() && plan.summary_role == Role::User, "a line without a prompt before it");
        after_head = items.next();
    }
    hold!(matches!(after_head, Some(ViewItem::Summary(_))), "no summary after the head");
    if plan.acknowledge {
        let acknowledged = matches!(items.next(), Some(ViewItem::Synthetic(Synthetic::Acknowledgement, _)));
        hold!(acknowledged, "no acknowledgement after the summary");
    }
    for index in plan.pinned.clone().into_iter().flatten().chain(plan.tail.clone()) {
        let item = items.next();
        hold!(item == Some(&ViewItem::Verbatim(index)), "message {index} is not verbatim where it should be");
    }
    hold!(items.next().is_none(), "something stands after the tail");
    Ok(())
}

/// A rendition says what was changed, is smaller (a note aside) and keeps the message what it was.
fn check_renditions(case: &Case, attempt: &Attempt) -> Check {
    for item in &attempt.items {
        let ViewItem::Rendition { message, rendition } = item else { continue };
        let (index, before) = (*message, &case.messages[*message]);
        let after = throughline_transcript::decode_message_text(rendition.json.clone())
            .map_err(|error| format!("rendition of message {index}: {error}"))?;
        hold!(!rendition.kinds.is_empty(), "message {index} was changed without a word");
        hold!(rendition.json != before.json(), "message {index} is called changed and is not");
        hold!(after.role() == before.role(), "message {index} changed its role");
        hold!(
            after.parts().len() == before.parts().len() || noted(&rendition.kinds),
            "message {index} lost parts"
        );
        let ids = |message: &Message| -> Vec<String> {
            let calls = message.calls().map(|(id, _, _)| id);
            calls.chain(message.answered()).map(|id| message.str(id).into_owned()).collect()
        };
        hold!(ids(&after) == ids(before), "message {index} lost an id");
        for (_, _, arguments) in after.calls() {
            let text = after.arguments_text(arguments);
            let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let was_valid = before.calls().all(|(_, _, arguments)| {
                serde_json::from_str::<serde::de::IgnoredAny>(&before.arguments_text(arguments)).is_ok()
            });
            hold!(valid || !was_valid, "message {index} has arguments that are no longer JSON: {text}");
        }
        for part in before.parts() {
            if let throughline_transcript::Part::Reasoning { block, .. } = part {
                hold!(rendition.json.contains(before.raw(*block)), "message {index} lost reasoning");
            }
        }
        // A picture may be a few bytes that stand for many tokens.
        hold!(
            noted(&rendition.kinds) || before.has_image() || rendition.json.len() <= before.json().len(),
            "message {index} grew from {} to {} bytes: {}",
            before.json().len(),
            rendition.json.len(),
            rendition.json
        );
    }
    Ok(())
}

fn noted(kinds: &[RenditionKind]) -> bool {
    kinds.contains(&RenditionKind::Noted)
}

/// The latest human message stands once, verbatim, after the summary, and no other human message after it.
fn check_last_human(case: &Case, attempt: &Attempt, plan: &Plan, view: &[Message]) -> Check {
    let latest = (0..case.messages.len())
        .rev()
        .find(|at| case.messages[*at].is_human() && !plan.earlier.contains(*at));
    let Some(latest) = latest else { return Ok(()) };
    let places: Vec<usize> =
        (0..view.len()).filter(|at| attempt.items[*at] == ViewItem::Verbatim(latest)).collect();
    hold!(places.len() == 1, "the latest human message stands {} times", places.len());
    let place = places[0];
    hold!(view[place].json() == case.messages[latest].json(), "the latest human message was changed");
    let summary = attempt.items.iter().position(|item| matches!(item, ViewItem::Summary(_)));
    hold!(summary.is_some_and(|at| at < place), "the latest human message stands before the summary");
    hold!(!view[place + 1..].iter().any(Message::is_human), "another human message follows the latest");
    Ok(())
}

fn check_figures(case: &Case, attempt: &Attempt, after: &Case) -> Check {
    let report = &attempt.report;
    let fixed = report.fixed_tokens;
    hold!(report.tokens.before == case.tokens() + fixed, "tokens before are wrong");
    hold!(report.tokens.after == after.tokens() + fixed, "tokens after are wrong");
    hold!(report.tokens.after < report.tokens.before, "the view is not smaller");
    hold!(report.messages.before == case.messages.len() as u64, "messages before are wrong");
    hold!(report.messages.after == attempt.items.len() as u64, "messages after are wrong");
    Ok(())
}

/// Rules about calls and results, which assembly mends whatever it was given.
pub(crate) fn check_repaired(case: &Case, attempt: &Attempt) -> Check {
    if !attempt.outcome.is_completed() {
        return match &attempt.outcome {
            Outcome::Aborted { detail, .. } => Err(format!("aborted: {detail}")),
            _ => check_unchanged(case, attempt),
        };
    }
    let after = case.after(attempt);
    let broken = Violation::find(case.wire_format, &after.messages, &after.groups);
    let paired = broken.iter().find(|violation| {
        matches!(
            violation.kind,
            ViolationKind::ResultWithoutCall
                | ViolationKind::ResultBeforeCall
                | ViolationKind::CallWithoutResult
                | ViolationKind::DuplicateCallId
                | ViolationKind::ResultNotAdjacent
                | ViolationKind::LeadingRole
        )
    });
    hold!(paired.is_none(), "the view is not mended: {paired:?}");
    check_summary(&attempt.items, &after.messages)?;
    check_figures(case, attempt, &after)
}
