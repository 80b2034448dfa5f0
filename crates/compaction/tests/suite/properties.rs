//! For every list that a provider accepts the result is one it accepts too, and much besides; for broken lists too.

use proptest::prelude::any;
use proptest::strategy::{Strategy, Union};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use throughline_compaction::{
    Attempt, Maker, Outcome, RenditionKind, Section, SummaryDocument, SummaryFrame, ViewItem,
};
use throughline_testkit::{
    ConversationOptions, Coverage, Fault, GeneratedList, Rng, broken_conversation, conversation_with,
    from_picture,
};
use throughline_transcript::{Group, Message, Part, Role, WireFormat, text_message};

use crate::harness::{Case, Setup};
use crate::invariants::{Check, check, check_repaired, hold};

/// Lists of each wire that a provider accepts; with the broken ones below well over 10,000 cases a run.
const ACCEPTED_CASES: u32 = 3_600;
const BROKEN_CASES: u32 = 800;
/// Lists that are compacted as they grow.
const GROWING_CASES: u32 = 800;
/// Lists made for each pair of roles around the summary.
const SEAM_CASES: u64 = 12;

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4_000, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Budgets of every size: most of them fitted to the conversation, so that there is something to compact.
fn setup(case: &Case, seed: u64) -> Setup {
    let mut rng = Rng::new(seed);
    let window = if rng.chance(65) {
        case.tokens() * rng.between(40, 200) as u64 / 100
    } else {
        [1_000, 3_000, 8_000, 30_000, 200_000][rng.weighted(&[15, 25, 30, 20, 10])]
    };
    let permille = rng.between(1, 8) as u64 * 100;
    let first = [0, rng.between(1, 4), rng.between(5, 50)][rng.weighted(&[10, 45, 45])];
    let last = [0, rng.between(1, 5), 20][rng.weighted(&[40, 40, 20])];
    let mut setup = Setup::window(window).tail_permille(permille).protect(first, last);
    if rng.chance(10) {
        setup.fixed_tokens = rng.between(1, 2_000) as u64;
    }
    if rng.chance(15) {
        setup.focus = Some("the parser and its limit");
    }
    if rng.chance(15) { setup.unforced() } else { setup }
}

/// A summary as an earlier compaction would have left it.
fn earlier_summary() -> String {
    let mut document = SummaryDocument::default();
    document.add_action("read src/lib.rs -> 120 lines");
    document.add_action("edited src/lib.rs (+3 -1 lines)");
    document.add(Section::Constraints, "Never touch the public API.");
    let frame = SummaryFrame { messages: 40, kept: 12, maker: Maker::Rules, recall: None };
    frame.message_text(&document.to_markdown())
}

fn lists(wire_format: WireFormat) -> impl Strategy<Value = GeneratedList> {
    let plain = ConversationOptions::new(wire_format).at_most_units(60);
    Union::new_weighted(vec![
        (6, conversation_with(plain.clone())),
        (2, conversation_with(plain.clone().may_be_open())),
        (2, conversation_with(plain.with_summary(earlier_summary()))),
    ])
}

/// What the cases of one wire reached.
#[derive(Default)]
struct Reached {
    /// Conversations that were compacted.
    lists: Coverage,
    /// Roles before and after each summary.
    seams: Coverage,
}

#[test]
fn what_chat_accepted_it_accepts_compacted() {
    what_a_provider_accepted_it_accepts_compacted(WireFormat::Chat);
}

#[test]
fn what_responses_accepted_it_accepts_compacted() {
    what_a_provider_accepted_it_accepts_compacted(WireFormat::Responses);
}

#[test]
fn what_anthropic_accepted_it_accepts_compacted() {
    what_a_provider_accepted_it_accepts_compacted(WireFormat::Anthropic);
}

fn what_a_provider_accepted_it_accepts_compacted(wire_format: WireFormat) {
    let reached = Reached::default();
    let strategy = (lists(wire_format), any::<u64>());
    let outcome = runner(ACCEPTED_CASES).run(&strategy, |(list, seed)| {
        let case = Case::of(&list);
        let setup = setup(&case, seed);
        accepted(&case, &setup, &reached)
            .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nwith {setup:?}")))
    });
    if let Err(error) = outcome {
        panic!("{wire_format}: {error}");
    }
    for (before, after) in seams_to_reach(wire_format) {
        for seed in 0..SEAM_CASES {
            let (list, setup) = around_a_seam(wire_format, before, after, seed);
            let case = Case::of(&list);
            if let Err(wrong) = accepted(&case, &setup, &reached) {
                panic!("{wire_format}, {before:?} before {after:?}: {wrong}\nwith {setup:?}\n{list:?}");
            }
        }
    }
    println!("{wire_format}: conversations that were compacted\n{}", reached.lists);
    println!("{wire_format}: roles around the summary\n{}", reached.seams);
    assert_reached(wire_format, &reached);
}

fn accepted(case: &Case, setup: &Setup, reached: &Reached) -> Check {
    let attempt = case.compact(setup);
    check(case, &attempt)?;
    let again = case.compact(setup);
    hold!(again.outcome == attempt.outcome, "the same input ended differently");
    hold!(case.bytes(&again.items) == case.bytes(&attempt.items), "the same input gave other bytes");
    reached.note(case, &attempt);
    if attempt.outcome.is_completed() {
        let after = case.after(&attempt);
        let second = after.compact(setup);
        check(&after, &second)?;
        hold!(
            matches!(second.outcome, Outcome::NoOp { .. }),
            "compacting twice with nothing new did something:\n{:?}\nthen\n{:?}",
            attempt.plan,
            second.plan
        );
    }
    Ok(())
}

impl Reached {
    fn note(&self, case: &Case, attempt: &Attempt) {
        match &attempt.outcome {
            Outcome::Completed(_) => self.lists.note("outcome: completed"),
            Outcome::NoOp { reason, .. } => self.lists.note(format!("outcome: no-op, {reason:?}")),
            Outcome::Aborted { reason, .. } => self.lists.note(format!("outcome: aborted, {reason:?}")),
        }
        let Some(plan) = attempt.plan.as_ref().filter(|_| attempt.outcome.is_completed()) else { return };
        self.lists.list(&case.messages);
        for kind in attempt.items.iter().flat_map(ViewItem::renditions) {
            self.lists.note(format!("rendition: {kind:?}"));
        }
        let mut traits = vec![
            (plan.acknowledge, "plan: acknowledged"),
            (plan.pinned.is_some(), "plan: last human message in the middle"),
            (
                plan.pinned.as_ref().is_some_and(|pinned| pinned.len() > 1),
                "plan: ... together with its calls",
            ),
            (!plan.earlier.summaries.is_empty(), "plan: updates an earlier summary"),
            (plan.head.is_empty(), "plan: no head"),
            (plan.head.len() > 10, "plan: head of more than ten messages"),
            (plan.summary_role == Role::Assistant, "plan: summary speaks as assistant"),
        ];
        let last = case.groups.as_slice().last();
        traits.push((last.is_some_and(|group| group.open_calls > 0), "plan: calls open at the end"));
        for (_, name) in traits.into_iter().filter(|(holds, _)| *holds) {
            self.lists.note(name);
        }
        for (part, name) in [(&plan.head, "head"), (&plan.middle, "middle"), (&plan.tail, "tail")] {
            let messages = &case.messages[part.clone()];
            let parallel = |group: &&Group| {
                let calls =
                    case.messages[group.start..group.end].iter().map(|message| message.calls().count());
                part.contains(&group.start) && calls.sum::<usize>() > 1
            };
            if case.groups.as_slice().iter().any(|group| parallel(&group)) {
                self.lists.note(format!("plan: parallel calls in the {name}"));
            }
            let reasons =
                |message: &Message| message.parts().iter().any(|p| matches!(p, Part::Reasoning { .. }));
            if messages.iter().any(reasons) {
                self.lists.note(format!("plan: reasoning in the {name}"));
            }
        }
        let before = plan.head.clone().next_back().map(|at| case.messages[at].role());
        let next = plan.pinned.clone().unwrap_or(plan.tail.clone()).start;
        self.seams.seam_of((before, Some(case.messages[next].role())));
    }
}

/// Roles that may stand before and after a summary on a wire. Between a user and an assistant, in either order, there
/// is no role left for it, so the cut is moved; a tail never opens with a tool's answer.
fn seams_to_reach(wire_format: WireFormat) -> Vec<(Role, Role)> {
    let roles: &[Role] = match wire_format {
        WireFormat::Chat => &[Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool],
        WireFormat::Responses => {
            &[Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Other]
        }
        WireFormat::Anthropic => &[Role::System, Role::User, Role::Assistant],
    };
    let mut pairs = Vec::new();
    for &before in roles {
        for &after in roles {
            let no_role_left =
                matches!((before, after), (Role::User, Role::Assistant) | (Role::Assistant, Role::User));
            if after != Role::Tool && !no_role_left {
                pairs.push((before, after));
            }
        }
    }
    pairs
}

/// A head that ends with one role, a heavy middle, and a tail that opens with another, in sizes that make the cut fall
/// there. Chance alone seldom brings two rare roles together.
fn around_a_seam(wire_format: WireFormat, before: Role, after: Role, seed: u64) -> (GeneratedList, Setup) {
    let mut rng = Rng::new(seed);
    let letter = |role: Role| match role {
        Role::System => "s",
        Role::Developer => "d",
        Role::User if seed.is_multiple_of(2) => "m",
        Role::User => "u",
        Role::Assistant => "a",
        Role::Tool => "AT",
        Role::Other => "o",
    };
    let opening = rng.pick(&["u", "ua", "uATa", "mA2TT", "uaATu"]);
    let opening =
        if wire_format == WireFormat::Anthropic { opening.replace("TT", "T") } else { opening.to_owned() };
    // A wire that keeps its prompt in the list opens with it.
    let prompt = if wire_format != WireFormat::Anthropic && rng.chance(40) { "s" } else { "" };
    let head = from_picture(wire_format, &format!("{prompt}{opening}{}", letter(before)));
    let ending = rng.pick(&["uaATa", "ATuATAT", "aua", "mATA"]);
    let tail = from_picture(wire_format, &format!("{}{ending}", letter(after)));
    let mut json = head.json.clone();
    for _ in 0..rng.between(3, 6) {
        let role = if rng.chance(30) { Role::User } else { Role::Assistant };
        json.push(text_message(wire_format, role, &"the parser takes 1,024 bytes at a time. ".repeat(90)));
    }
    // Each half of the list was written on its own: its calls need names of their own.
    json.extend(tail.json.iter().map(|message| message.replace(":\"call_", ":\"late_call_")));
    let tail_tokens = Case::of(&tail).tokens();
    let mut setup = Setup::window(Case::of(&head).tokens() * 8 + tail_tokens * 8).protect(head.len(), 0);
    setup.budgets.threshold_tokens = 1_000;
    setup.budgets.tail_tokens = tail_tokens + 400;
    (GeneratedList::of(wire_format, json), setup)
}

fn assert_reached(wire_format: WireFormat, reached: &Reached) {
    let missing: Vec<(Role, Role)> = seams_to_reach(wire_format)
        .into_iter()
        .filter(|(before, after)| reached.seams.seam_count(*before, *after) == 0)
        .collect();
    assert_eq!(missing, [], "{wire_format}: roles around a summary that never occurred");
    let noted = if wire_format == WireFormat::Anthropic {
        "plan: ... together with its calls"
    } else {
        "rendition: Noted"
    };
    for what in [
        "outcome: completed",
        "outcome: no-op, BelowThreshold",
        "outcome: no-op, Empty",
        "outcome: no-op, NothingInTheMiddle",
        "outcome: no-op, NothingNew",
        "outcome: no-op, WouldNotShrink",
        "rendition: Pruned",
        "rendition: Trimmed",
        "rendition: ImageLabel",
        noted,
        "plan: acknowledged",
        "plan: last human message in the middle",
        "plan: updates an earlier summary",
        "plan: no head",
        "plan: head of more than ten messages",
        "plan: summary speaks as assistant",
        "plan: calls open at the end",
        "plan: parallel calls in the head",
        "plan: parallel calls in the middle",
        "plan: parallel calls in the tail",
        "plan: reasoning in the head",
        "plan: reasoning in the middle",
        "plan: reasoning in the tail",
        "reasoning, readable",
        "reasoning, sealed",
        "image",
        "unknown block",
        "machine-written",
        "over 8,000 bytes",
    ] {
        assert!(reached.lists.count(what) > 0, "{wire_format}: no case reached {what:?}");
    }
}

/// A conversation that goes on after a compaction and is compacted again, as often as there is something to compact.
fn goes_on(list: &GeneratedList, setup: &Setup, parts: usize) -> Check {
    let whole = Case::of(list);
    let cuts: Vec<usize> = whole.groups.as_slice().iter().map(|group| group.start).collect();
    let mut bounds: Vec<usize> =
        (1..parts).filter_map(|n| cuts.get(cuts.len() * n / parts).copied()).collect();
    bounds.push(list.len());
    let mut said: Vec<String> = Vec::new();
    let mut from = 0;
    let mut last_number = 0;
    let mut head: Vec<String> = Vec::new();
    for to in bounds {
        said.extend_from_slice(&list.json[from..to]);
        from = to;
        let case = Case::from_json(list.wire_format, said.clone());
        let attempt = case.compact(setup);
        check(&case, &attempt)?;
        let Some(plan) = attempt.plan.as_ref().filter(|_| attempt.outcome.is_completed()) else { continue };
        let bytes = case.bytes(&attempt.items);
        // What was sent stays sent: the head of the last compaction opens this one, as far as it still stands.
        let shared = head.len().min(plan.head.len());
        // Only a picture that is no longer the newest changes with time.
        for at in (0..shared).filter(|at| attempt.items[*at].renditions() == [RenditionKind::ImageLabel]) {
            head[at].clone_from(&bytes[at]);
        }
        hold!(
            bytes[..shared] == head[..shared],
            "the head was written anew: {:?}\nthen {:?}",
            &head[..shared],
            &bytes[..shared]
        );
        let number = attempt.summary.as_ref().map_or(0, |summary| summary.next_action_number() - 1);
        // Where there is no room for one entry, there is none for its number.
        let has_room = attempt.report.plan.summary_budget_tokens >= 600;
        hold!(!has_room || number >= last_number, "actions are numbered anew: {number} after {last_number}");
        last_number = number;
        head = bytes[..plan.head.len()].to_vec();
        said = bytes;
    }
    Ok(())
}

#[test]
fn a_conversation_that_goes_on_keeps_its_promises() {
    for wire_format in WireFormat::ALL {
        let strategy = (lists(wire_format), any::<u64>());
        let outcome = runner(GROWING_CASES).run(&strategy, |(list, seed)| {
            let case = Case::of(&list);
            let mut setup = setup(&case, seed);
            setup.force = true;
            let parts = 2 + usize::try_from(seed % 4).unwrap_or(0);
            goes_on(&list, &setup, parts)
                .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nwith {setup:?} in {parts} parts")))
        });
        if let Err(error) = outcome {
            panic!("{wire_format}: {error}");
        }
    }
}

#[test]
fn broken_lists_are_mended_and_never_panic() {
    for wire_format in WireFormat::ALL {
        let reached = Coverage::new();
        let strategy = (broken_conversation(wire_format), any::<u64>());
        let outcome = runner(BROKEN_CASES).run(&strategy, |(broken, seed)| {
            let case = Case::of(&broken.list);
            let setup = setup(&case, seed);
            let attempt = case.compact(&setup);
            note_mended(&attempt, broken.fault, &reached);
            check_repaired(&case, &attempt)
                .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nwith {setup:?}\n{:?}", attempt.plan)))
        });
        if let Err(error) = outcome {
            panic!("{wire_format}: {error}");
        }
        println!("{wire_format}: broken lists\n{reached}");
        for fault in Fault::ALL {
            assert!(reached.count(&format!("compacted with {fault:?}")) > 0, "{wire_format}: {fault:?}");
        }
        let rewritten =
            if wire_format == WireFormat::Anthropic { "rendition: Mended" } else { "orphans left out" };
        for what in ["orphans left out", "stub results", rewritten] {
            assert!(reached.count(what) > 0, "{wire_format}: {what}");
        }
    }
}

fn note_mended(attempt: &Attempt, fault: Fault, reached: &Coverage) {
    if !attempt.outcome.is_completed() {
        return;
    }
    reached.note(format!("compacted with {fault:?}"));
    let repairs = attempt.report.repairs;
    for (count, what) in [
        (repairs.orphan_results, "orphans left out"),
        (repairs.stub_results, "stub results"),
        (repairs.moved_results, "results moved"),
    ] {
        if count > 0 {
            reached.note(what);
        }
    }
    if attempt.items.iter().any(|item| item.renditions().contains(&RenditionKind::Mended)) {
        reached.note("rendition: Mended");
    }
}
