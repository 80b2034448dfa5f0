//! The planner as pictures. One letter per message, as in the testkit's pictures (`s` system, `d` developer, `u` a person, `m` a program
//! with the user role, `a` an answer, `A` an answer with calls, `T` results, `H` results with a person's words, `o` an unknown item), and
//! also: `S` an earlier summary with the user role, `Z` one with the assistant's, `k` our acknowledgement, `*` after a letter for a giant
//! message. Brackets hold the middle, parentheses in them the last human message in the middle, which is repeated after the summary. After
//! the picture: the role of the summary, `+k` when an acknowledgement follows it; or why there is no plan.
//!
//! A message has 10 tokens, a giant 1,000.

use throughline_testkit::from_picture;
use throughline_transcript::{WireFormat, decode_message_text, text_message};

use super::*;
use crate::preface::{ACKNOWLEDGEMENT, Maker, SummaryFrame};

const MESSAGE_TOKENS: u64 = 10;
const GIANT_TOKENS: u64 = 1_000;

/// Protects this many messages at either end, with a tail of this many tokens.
fn budget(protect_first_n: usize, protect_last_n: usize, tail_tokens: u64) -> CutBudget {
    CutBudget {
        tail_tokens,
        stretched_tokens: tail_tokens * 3 / 2,
        head_tokens: tail_tokens / 2,
        protect_first_n,
        protect_last_n,
    }
}

/// Plans the list in a picture (ignoring its brackets) and draws the result.
fn planned(wire_format: WireFormat, budget: CutBudget, picture: &str) -> String {
    let letters: String = picture.chars().filter(|c| !"[]() ".contains(*c)).collect();
    let plain: String = letters.replace('*', "").replace('S', "u").replace(['Z', 'k'], "a").chars().collect();
    let mut json = from_picture(wire_format, &plain).json;
    let mut sizes = vec![MESSAGE_TOKENS; json.len()];
    let mut drawn: Vec<String> = Vec::new();
    let mut earlier = Earlier::default();
    for letter in letters.chars() {
        let at = drawn.len();
        let ours = |role, text: &str| text_message(wire_format, role, text);
        match letter {
            '*' => {
                sizes[at - 1] = GIANT_TOKENS;
                drawn[at - 1].push('*');
                continue;
            }
            '0'..='9' if wire_format == WireFormat::Responses => {
                // In that format each call is an item of its own.
                for _ in 1..letter.to_digit(10).unwrap_or(1) {
                    drawn.push(String::new());
                }
                drawn[at - 1].push(letter);
                continue;
            }
            '0'..='9' => {
                drawn[at - 1].push(letter);
                continue;
            }
            'S' | 'Z' => {
                let frame = SummaryFrame { messages: 9, kept: 4, maker: Maker::Rules, recall: None };
                let role = if letter == 'S' { Role::User } else { Role::Assistant };
                json[at] = ours(role, &frame.message_text("## Goal\n- more"));
                earlier.summaries.push(at);
            }
            'k' => {
                json[at] = ours(Role::Assistant, ACKNOWLEDGEMENT);
                earlier.acknowledgements.push(at);
            }
            _ => {}
        }
        drawn.push(letter.to_string());
    }
    assert_eq!(drawn.len(), json.len(), "{picture}");
    let messages: Vec<Message> = json.into_iter().map(|text| decode_message_text(text).unwrap()).collect();
    let groups = Groups::of(&messages);
    let pruned_sizes: Vec<u64> = sizes.iter().take(budget.protect_first_n).copied().collect();
    let input = PlanInput {
        messages: &messages,
        groups: &groups,
        sizes: &sizes,
        pruned_sizes: &pruned_sizes,
        earlier,
        budget,
        cut_at: None,
    };
    match plan(&input) {
        Ok(plan) => draw(&drawn, &plan),
        Err(reason) => format!("{} {reason:?}", drawn.concat()),
    }
}

fn draw(letters: &[String], plan: &Plan) -> String {
    let mut out = String::new();
    let is = |at: usize, wanted: Option<usize>| wanted == Some(at);
    let pinned = plan.pinned.clone();
    for (at, letter) in letters.iter().enumerate() {
        if at == plan.middle.start {
            out.push('[');
        }
        if is(at, pinned.as_ref().map(|range| range.start)) {
            out.push('(');
        }
        out.push_str(letter);
        if is(at + 1, pinned.as_ref().map(|range| range.end)) {
            out.push(')');
        }
        if at + 1 == plan.middle.end {
            out.push(']');
        }
    }
    out.push(' ');
    out.push_str(plan.summary_role.name());
    if plan.acknowledge {
        out.push_str("+k");
    }
    out
}

/// Asserts that every picture is drawn as written.
#[track_caller]
fn assert_pictures(wire_format: WireFormat, budget: CutBudget, pictures: &[&str]) {
    let mut wrong = String::new();
    for expected in pictures {
        let list = expected.split(' ').next().unwrap_or_default();
        let found = planned(wire_format, budget, list);
        if found != *expected {
            wrong.push_str(&format!("\n expected {expected}\n    found {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wire_format}, {budget:?}:{wrong}");
}

const CHAT: WireFormat = WireFormat::Chat;
const ANTHROPIC: WireFormat = WireFormat::Anthropic;
const RESPONSES: WireFormat = WireFormat::Responses;

/// Three messages at the beginning and a tail of six; a head may have half a tail, three messages.
fn usual() -> CutBudget {
    budget(3, 0, 60)
}

#[test]
fn lists_too_short_to_fold_are_left_alone() {
    assert_pictures(
        CHAT,
        budget(3, 0, 40),
        &[
            " Empty",
            "u NothingInTheMiddle",
            "ua NothingInTheMiddle",
            "uau NothingInTheMiddle",
            "uaua NothingInTheMiddle",
            "u[a]uau assistant",
            "ssssssssssss NothingInTheMiddle",
            "s* NothingInTheMiddle",
            "s*u* NothingInTheMiddle",
        ],
    );
}

#[test]
fn the_tail_starts_on_the_side_that_the_head_ends_with() {
    assert_pictures(
        CHAT,
        usual(),
        &[
            // The head ends with a user message and the tail starts with one: the summary between has the assistant role.
            "uau[auaua]uauaua assistant",
            "uau[auaua]uauauau assistant",
            "dsu[auauaua]uauaua assistant",
            // The head ends with an assistant message and the tail starts with one: the summary has the user role.
            "sua[uauau]auauaua user",
            "sua[uauauau]auauau user",
            "ua[ATauauau]auauaua user",
            // The head ends with a tool result: anything may follow.
            "uAT[ATATATAT]ATATATu user",
            "uAT[ATATATATAT]ATATua user",
            "uAT[uauauauau]ATATua user",
            // The head ends with instructions inside the conversation: anything may follow.
            "uad[uauauaua]uauaua assistant",
            "uau[sauauaua]uauaua assistant",
        ],
    );
}

#[test]
fn without_a_head_the_summary_leads_as_user() {
    assert_pictures(
        CHAT,
        budget(0, 0, 40),
        &[
            "[uauauau]auau user",
            "[uauaua]uaua user+k",
            "s[uauauau]auau user",
            "s[uauaua]uaua user+k",
            "[(u)ATATAT]ATAT user+k",
        ],
    );
    // A conversation that starts with the assistant (or with a result) has no possible head.
    assert_pictures(
        CHAT,
        usual(),
        &[
            "[auauaua]uauaua user+k",
            "[aauauaua]uauaua user+k",
            "[ATuauaua]uauaua user+k",
            "s[auauaua]uauaua user+k",
            "ds[auauauaua]uauaua user+k",
            "[ATATATAT]ATATAT user",
            "[TTTTTT]TTTTTT user",
            "[aaaaaa]aaaaaa user",
            "[eeeeee]eeeeee user",
        ],
    );
}

#[test]
fn where_no_cut_fits_the_head_gives_up_its_last_message() {
    assert_pictures(
        CHAT,
        usual(),
        &[
            // Only the very last message is a user's, and a tail has at least three messages.
            "ua[uauauauauau]au*a user",
            "ua[uauauauauauau]aua* user",
        ],
    );
}

#[test]
fn the_first_prompt_stays_whatever_follows_it() {
    assert_pictures(
        CHAT,
        usual(),
        &[
            // Only the very last message is a user's, and a tail has at least three messages: a message of ours is inserted.
            "u[A3TTTA2TT]ATA3TTTu user",
            "u[A3TTTA3TTT]A3TTTA3TTTu user",
            // The messages after it are too large for the head.
            "u[A*TATATAT]ATATATu user",
            "u[A*Tuaua]uauaua assistant",
            // It is too large itself, and shortened.
            "u*[auauauaua]uauaua assistant",
        ],
    );
}

#[test]
fn instructions_always_lead_and_cost_the_head_nothing() {
    assert_pictures(
        CHAT,
        usual(),
        &["ssss[uauaua]uauaua user+k", "s*ua[uauau]auauaua user", "sua[uauau]auauaua user"],
    );
    assert_pictures(CHAT, budget(0, 0, 60), &["sd[auauaua]uauaua user+k", "ss[uauaua]uauaua user+k"]);
    // Later ones are ordinary messages.
    assert_pictures(
        CHAT,
        usual(),
        &["uau[auauaua]uauasa assistant", "uau[auauaua]uausaa assistant", "uau[auauaua]uauaasa assistant"],
    );
    assert_pictures(ANTHROPIC, usual(), &["[(u)sATATATAT]ATATAT user+k"]);
}

#[test]
fn an_answer_and_its_results_are_never_parted() {
    assert_pictures(
        CHAT,
        usual(),
        &[
            "su[A9TTTTTTTTTA9TTTTTTTTT]uA2TT assistant",
            "ua[A9TTTTTTTTTu]aua user",
            "uATuA9TTTTTTTTT NothingInTheMiddle",
            "uAT[uauaAT(u)]A9TTTTTTTTT assistant",
            // Open calls remain at the end.
            "[(u)ATATAT]ATATATA user+k",
            "[(u)ATATATAT]ATATA2T user+k",
            "[(u)ATATATAT]ATATATA2 user+k",
        ],
    );
    // A group larger than the whole budget does not shorten the head.
    assert_pictures(CHAT, usual(), &["uau[a(u)]AT*AT* assistant", "su[auaua(u)ATAT*]A2T*T assistant"]);
    assert_pictures(ANTHROPIC, usual(), &["[(u)A4TA4TA4T]A4TA4TA4T user+k"]);
    assert_pictures(
        RESPONSES,
        usual(),
        &[
            "u[rATrATrATrAT]rATrATu user",
            "[(u)rATrATrAT]rATrATra user+k",
            "[(u)rA3TTTrAT]rATrAT user+k",
            "ura[uraurau]rauraura user",
            // Each answer has a result after the next one: the whole is one step.
            "urArATATrATrATrAATTa NothingInTheMiddle",
        ],
    );
}

#[test]
fn items_nobody_knows_are_cut_around() {
    assert_pictures(RESPONSES, usual(), &["[oouaoauaoua]ouaoua user", "[(u)oATATATAT]ATATAT user+k"]);
}

#[test]
fn the_last_human_message_always_stands_after_the_summary() {
    // One long autonomous turn: the message is in the middle, and is repeated between summary and tail.
    assert_pictures(
        CHAT,
        usual(),
        &[
            "[(u)ATATATAT]ATATAT user+k",
            "su[ATATAT(u)ATAT]ATATAT assistant",
            "u[aATa(u)ATAT]ATATAT assistant",
            "[(u*)ATATATATAT]ATATAT user+k",
            "m[(u)ATATATAT]ATATAT assistant",
            "mAT[ATATATAT]ATATAT user",
        ],
    );
    // Program text with the user role is not a human message, before or after it.
    assert_pictures(
        ANTHROPIC,
        usual(),
        &[
            "[(u)ATATATAT]ATATATm user+k",
            "[(u)ATATATAT]ATATmAT user+k",
            "[mATATAT]ATATAT user",
            "m[(u)ATATATAT]ATATAT assistant",
        ],
    );
    // Text beside results stays together with their calls.
    assert_pictures(
        ANTHROPIC,
        usual(),
        &[
            "[uAT(AH)ATATAT]ATATAT user",
            "u[AHAHAHAHAH]AHAHAH user",
            "u[ATATATATAT]AHATAT user",
            "u[ATATATATAT]ATATAH user",
        ],
    );
}

#[test]
fn the_tail_has_its_messages_unless_they_are_too_large() {
    // Twenty messages are protected, one and a half budgets allowed.
    assert_pictures(
        CHAT,
        budget(3, 20, 60),
        &[
            "uau[auauauauauauauauaua]uauauaua assistant",
            "uau[auauauauaua*]uauaua assistant",
            "uau[auauaua]uau* assistant",
            "ua[uauauauauau*]aua user",
            "uau[auauauau*aa]uaua assistant",
            "uau[auau*a*u*a*]u*a*u* assistant",
            "u*[a*u*a*u*]a*u*a* user",
        ],
    );
    assert_pictures(
        CHAT,
        budget(3, 5, 60),
        &["uau[auauauaua]uauaua assistant", "uau[auauauauaua*]uauaua assistant"],
    );
    assert_pictures(CHAT, budget(0, 12, 100), &["[uauauauaua]uauauauauaua user+k"]);
    // Three messages remain whatever their size and whatever the settings.
    assert_pictures(CHAT, budget(0, 0, 0), &["[uauau]aua user", "[uauau]a*u*a* user", "[uauaua]uau user+k"]);
}

#[test]
fn a_giant_in_front_is_compacted_unless_it_is_the_first_prompt() {
    assert_pictures(
        CHAT,
        usual(),
        &[
            "u*[auauaua]uauaua assistant",
            "u[a*uauaua]uauaua assistant",
            "su*[auauaua]uauaua assistant",
            "uaua NothingInTheMiddle",
        ],
    );
}

#[test]
fn an_earlier_summary_is_never_head_nor_tail() {
    assert_pictures(
        CHAT,
        usual(),
        &[
            "ua[Suauauau]auauaua user",
            "ua[Sauauauau]auauaua user",
            "u[Zuauauaua]uauaua assistant",
            "u[Skuauauauaua]uauaua assistant",
            "[Skuauauauaua]uauaua user+k",
            "[Sk(u)ATATAT]ATATAT user+k",
            "[SkATATATAT]ATATAT user",
            "[SATATATAT]ATATAT user",
            "s[(u)aSATATATATAT]ATATAT user+k",
            // Another program left two: both are included.
            "[SkuaSkuauauaua]uauaua user+k",
            "ua[SkuauauauauaSku]auaua user",
            // Only what the last compaction kept.
            "uZuauau NothingNew",
            "Skuauau NothingNew",
            "SATAT NothingNew",
            "uaS NothingNew",
        ],
    );
}

#[test]
fn planning_its_own_result_finds_nothing_new() {
    for list in [
        "uauauauauauaua",
        "suauauauauauaua",
        "uATATATATATATATATu",
        "suATATATuATATATATAT",
        "uATATATATATATAT",
        "auauauauauauaua",
        "uauauauauauau*a",
        "u*auauauauauaua",
    ] {
        let drawn = planned(CHAT, usual(), list);
        let (picture, joint) = drawn.split_once(' ').unwrap();
        let (head, rest) = picture.split_once('[').unwrap();
        let (middle, tail) = rest.split_once(']').unwrap();
        let pinned = middle.split_once('(').map_or("", |(_, after)| after.split_once(')').unwrap().0);
        let summary = match joint {
            "user" => "S",
            "user+k" => "Sk",
            _ => "Z",
        };
        let result = format!("{head}{summary}{pinned}{tail}");
        assert_eq!(planned(CHAT, usual(), &result), format!("{result} NothingNew"), "after {drawn}");
    }
}
