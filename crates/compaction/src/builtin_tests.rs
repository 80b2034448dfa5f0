//! What the rules make of a conversation, section by section.

use std::ops::Range;

use throughline_testkit::GeneratedList;
use throughline_transcript::{Groups, Role, WireFormat, compact_json_string, text_message, tool_result_stub};

use super::*;
use crate::document::SummaryDocument;
use crate::ledger::Ledger;
use crate::plan::{Earlier, Plan};
use crate::sections::Section;

/// A conversation in the making.
#[derive(Default)]
struct Talk {
    json: Vec<String>,
}

impl Talk {
    fn user(mut self, text: &str) -> Self {
        self.json.push(text_message(WireFormat::Chat, Role::User, text));
        self
    }

    fn answer(mut self, text: &str) -> Self {
        self.json.push(text_message(WireFormat::Chat, Role::Assistant, text));
        self
    }

    fn step(mut self, tool: &str, arguments: &str, result: &str) -> Self {
        let id = format!("call_{}", self.json.len());
        let arguments = compact_json_string(arguments);
        self.json.push(format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":{arguments}}}}}]}}"#
        ));
        self.json.push(tool_result_stub(WireFormat::Chat, &id, result));
        self
    }

    fn run(self, command: &str, result: &str) -> Self {
        let arguments = serde_json::json!({ "command": command }).to_string();
        self.step("terminal", &arguments, result)
    }

    /// The summary of everything before the last `tail` messages.
    fn summary(&self, tail: usize) -> SummaryDocument {
        self.summary_within(tail, 4_000, None, None)
    }

    fn summary_within(
        &self,
        tail: usize,
        budget_tokens: u64,
        earlier: Option<&SummaryDocument>,
        pinned: Option<Range<usize>>,
    ) -> SummaryDocument {
        let messages = GeneratedList::of(WireFormat::Chat, self.json.clone()).messages();
        let groups = Groups::of(&messages);
        let ledger = Ledger::of(&messages, &groups, None);
        let sizes: Vec<u64> = messages.iter().map(|m| m.json().len() as u64 / 4).collect();
        let end = messages.len() - tail;
        let plan = Plan {
            head: 0..0,
            middle: 0..end,
            tail: end..messages.len(),
            pinned,
            earlier: Earlier::default(),
            summary_role: Role::User,
            acknowledge: false,
        };
        let request = SummaryRequest {
            messages: &messages,
            groups: &groups,
            sizes: &sizes,
            ledger: &ledger,
            plan: &plan,
            span: plan.middle.clone(),
            earlier,
            focus: None,
            manner: crate::summarise::SummaryKind::default(),
            shown_text: "",
            budget_tokens,
            count_tokens: &|text| (text.chars().count() as u64).div_ceil(4),
        };
        pollster::block_on(RuleSummariser.summarise(request)).unwrap()
    }
}

fn texts(document: &SummaryDocument, section: Section) -> Vec<&str> {
    document.entries(section).iter().map(|entry| entry.text.as_str()).collect()
}

#[test]
fn the_open_request_stands_word_for_word() {
    let request = "Please port the parser:\n- keep `parse()` as it is\n- and, if possible, the tests";
    let talk = Talk::default()
        .user("What is in here?")
        .answer("A parser.")
        .user(request)
        .run("ls", "a\nb\n")
        .run("make", "ok\n");
    let summary = talk.summary_within(2, 4_000, None, Some(2..3));
    assert_eq!(texts(&summary, Section::ActiveTask), [request]);
    assert_eq!(texts(&summary, Section::Goal), ["Began with: \"What is in here?\""]);
    assert!(texts(&summary, Section::CompletedActions)[0].contains("A parser."));
    assert_eq!(texts(&summary, Section::PendingAsks), Vec::<&str>::new());
}

#[test]
fn a_request_that_was_answered_is_no_task() {
    let talk = Talk::default().user("Fix it.").run("make", "ok\n").answer("Fixed.").user("Thanks");
    let summary = talk.summary(1);
    assert_eq!(
        texts(&summary, Section::ActiveTask),
        ["Thanks"],
        "the newest words are quoted although the tail has them"
    );
    assert!(texts(&summary, Section::CompletedActions).join("\n").contains("Fixed."));
    assert_eq!(texts(&summary, Section::PendingAsks), Vec::<&str>::new());
}

#[test]
fn a_request_nobody_answered_is_pending() {
    let talk = Talk::default()
        .user("Write the docs.")
        .user("And fix the build first.")
        .run("make", "ok\n")
        .answer("The build is fixed.")
        .user("Good");
    let summary = talk.summary(1);
    assert_eq!(texts(&summary, Section::PendingAsks), ["Write the docs."]);
}

#[test]
fn rules_are_kept_in_any_language() {
    let talk = Talk::default()
        .user("Make it faster. Never use unsafe code! The name is fine.")
        .answer("Done.")
        .user("No, that is wrong: I meant the reader.")
        .answer("Changed.")
        .user("请不要修改公共接口。谢谢。")
        .answer("好。")
        .user("Bitte immer die Tests laufen lassen.")
        .answer("Gut.")
        .user("next");
    let summary = talk.summary(1);
    assert!(
        texts(&summary, Section::CompletedActions)
            .join("\n")
            .contains("No, that is wrong: I meant the reader.")
    );
    assert_eq!(
        texts(&summary, Section::Constraints),
        ["Never use unsafe code!", "请不要修改公共接口。", "Bitte immer die Tests laufen lassen.",]
    );
}

#[test]
fn instructions_given_on_the_way_hold_on() {
    let mut talk = Talk::default().user("Begin.").answer("Yes.");
    for text in ["From here on answer in French.", "<permissions instructions>all</permissions instructions>"]
    {
        talk.json.push(text_message(WireFormat::Chat, Role::Developer, text));
    }
    let talk = talk.user("Go on.").answer("Oui.").user("ok");
    assert_eq!(texts(&talk.summary(1), Section::Constraints), ["From here on answer in French."]);
}

#[test]
fn actions_are_numbered_with_their_outcome_and_files_with_their_history() {
    let talk = Talk::default()
        .user("Widen the sum.")
        .step("read_file", r#"{"path":"src/sum.rs","offset":1,"limit":40}"#, "fn total_sum() {}\n")
        .step("patch", r#"{"path":"src/sum.rs","old_string":"i32","new_string":"i64"}"#, "ok")
        .run("cargo test -p sum", "Exit code 101\nerror[E0308]: mismatched types\n")
        .step("patch", r#"{"path":"src/sum.rs","old_string":"a","new_string":"b\nc"}"#, "ok")
        .run("cargo test -p sum", "test result: ok. 4 passed; 0 failed\n")
        .run("git commit -am 'Widen'", "[main 1f2e3d4c] Widen\n")
        .answer("Done in 1f2e3d4c.")
        .user("next");
    let summary = talk.summary(1);
    let actions = summary.entries(Section::CompletedActions);
    let numbers: Vec<Option<u32>> = actions.iter().map(|action| action.number).collect();
    let expected: Vec<Option<u32>> = (1..=actions.len()).map(|n| u32::try_from(n).ok()).collect();
    assert_eq!(numbers, expected);
    let told = texts(&summary, Section::CompletedActions).join("\n");
    for needed in
        ["sum.rs", "cargo test -p sum", "failed: error[E0308]: mismatched types", "git commit -am 'Widen'"]
    {
        assert!(told.contains(needed), "{needed} is missing:\n{told}");
    }
    let files = texts(&summary, Section::RelevantFiles);
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(files[0].starts_with("`src/sum.rs` edited twice"), "{files:?}");
    assert!(told.contains("test result: ok. 4 passed; 0 failed"), "{told}");
    let state = texts(&summary, Section::ActiveState).join("\n");
    assert!(state.contains("`cargo test -p sum` -> ok"), "{state}");
    assert_eq!(texts(&summary, Section::Blocked), Vec::<&str>::new(), "the failure was made good");
}

#[test]
fn what_still_fails_is_quoted() {
    let talk = Talk::default()
        .user("Build it.")
        .run("make all", "Exit code 2\nld: cannot find -lfoo\nmake: *** [all] Error 1\n")
        .run("ls", "a\n")
        .run("ls", "a\n");
    let blocked = talk.summary(2);
    let told = texts(&blocked, Section::Blocked).join("\n");
    assert!(told.contains("make all") && told.contains("ld: cannot find -lfoo"), "{told}");
}

#[test]
fn the_newest_list_of_things_to_do_says_what_remains() {
    let list = |states: [&str; 3]| {
        let items = ["parse", "print", "test"].iter().zip(states);
        let items: Vec<serde_json::Value> =
            items.map(|(what, state)| serde_json::json!({ "content": what, "status": state })).collect();
        serde_json::json!({ "todos": items }).to_string()
    };
    let talk = Talk::default()
        .user("Do all three.")
        .step("todo", &list(["in_progress", "pending", "pending"]), "ok")
        .run("make parse", "ok\n")
        .step("todo", &list(["completed", "in_progress", "pending"]), "ok")
        .run("make print", "ok\n")
        .run("ls", "a\n");
    let summary = talk.summary(2);
    assert!(
        texts(&summary, Section::InProgress).contains(&"print"),
        "{:?}",
        texts(&summary, Section::InProgress)
    );
    assert_eq!(texts(&summary, Section::RemainingWork), ["test"]);
}

#[test]
fn decisions_are_shown_in_the_models_own_words() {
    let reason = "I chose spans instead of strings because copying costs too much.";
    let talk =
        Talk::default().user("Speed it up.").answer(&format!("Looked at it. {reason} It works.")).user("ok");
    assert_eq!(texts(&talk.summary(1), Section::KeyDecisions), [reason]);
}

#[test]
fn a_small_budget_keeps_what_matters() {
    let mut talk = Talk::default().user("Port it. Never change the API.");
    for n in 0..80 {
        talk = talk.run(&format!("ls part_{n}"), &format!("file_{n}.rs\n"));
        talk = talk.step("read_file", &format!(r#"{{"path":"src/part_{n}.rs"}}"#), "text\n");
    }
    talk = talk.step("patch", r#"{"path":"src/api.rs","old_string":"a","new_string":"b"}"#, "ok");
    talk = talk.answer("Half done.").user("Go on, and mind the 80 columns.").run("ls", "x\n");
    for budget in [150, 300, 600, 1_200, 5_000] {
        let pinned = talk.json.len() - 3;
        let summary = talk.summary_within(2, budget, None, Some(pinned..pinned + 1));
        let markdown = summary.to_markdown();
        let used = (markdown.chars().count() as u64).div_ceil(4);
        assert!(used <= budget, "{used} of {budget} tokens:\n{markdown}");
        assert_eq!(texts(&summary, Section::ActiveTask), ["Go on, and mind the 80 columns."], "{budget}");
        assert!(texts(&summary, Section::Constraints).contains(&"Never change the API."), "{budget}");
        if budget >= 300 {
            assert!(
                markdown.contains("src/api.rs"),
                "{budget}: the file that was changed is missing:\n{markdown}"
            );
        }
    }
}

#[test]
fn nothing_worth_a_word_gives_an_empty_document() {
    let talk = Talk::default().answer("hm").answer("so");
    let summary = talk.summary(1);
    assert!(summary.is_empty(), "{}", summary.to_markdown());
}

#[test]
fn a_very_long_request_is_cut_and_says_so() {
    let words = "please ".repeat(2_000);
    let talk = Talk::default().user("hello").answer("hi").user(&words).run("ls", "a\n").run("ls", "a\n");
    let summary = talk.summary_within(2, 4_000, None, Some(2..3));
    let task = texts(&summary, Section::ActiveTask)[0].to_owned();
    assert!(task.starts_with("please please") && task.contains("goes on under Completed Actions"), "{task}");
    let actions = texts(&summary, Section::CompletedActions).join("\n");
    assert!(actions.contains("more characters in the original"), "{actions}");
    assert!(task.chars().count() < 1_600);
}

#[test]
fn an_earlier_summary_is_carried_and_moved_on() {
    let mut earlier = SummaryDocument::default();
    earlier.add(Section::ActiveTask, "Port the parser.");
    earlier.add(Section::Goal, "Ship version two.");
    earlier.add(Section::Constraints, "Never push.");
    earlier.add(Section::InProgress, "porting lexer.rs");
    earlier.add(Section::ResolvedQuestions, "\"Which API?\" -> The new one.");
    for text in ["read a.rs", "edited b.rs"] {
        earlier.add_action(text);
    }
    let talk =
        Talk::default().user("Go on.").run("make", "ok\n").answer("The parser is ported.").user("Great");
    let summary = talk.summary_within(1, 4_000, Some(&earlier), None);
    assert_eq!(texts(&summary, Section::Goal), ["Ship version two."]);
    assert_eq!(texts(&summary, Section::Constraints), ["Never push."]);
    assert_eq!(texts(&summary, Section::ActiveTask), ["Great"]);
    assert_eq!(texts(&summary, Section::ResolvedQuestions), ["\"Which API?\" -> The new one."]);
    let told = texts(&summary, Section::CompletedActions).join("\n");
    for needed in ["Go on.", "The parser is ported."] {
        assert!(told.contains(needed), "{needed} is missing:\n{told}");
    }
    assert!(!summary.to_markdown().contains("porting lexer.rs"), "the present is described anew");
    let actions = summary.entries(Section::CompletedActions);
    let numbers: Vec<Option<u32>> = actions.iter().map(|action| action.number).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)], "{actions:?}");
}

#[test]
fn nothing_the_agent_said_stands_twice() {
    let mut talk = Talk::default().user("Make the cache safe to share.");
    for n in 0..12 {
        talk = talk.answer(&format!(
            "The cache of part {n} is shared because reader_{n} keeps it, instead of a copy."
        ));
        talk = talk.run(&format!("make part_{n}"), "ok\n").user(&format!("Go on with part {}.", n + 1));
    }
    let text = talk.summary(1).to_markdown();
    for n in 0..12 {
        let sentence = format!("The cache of part {n} is shared");
        assert!(text.matches(&sentence).count() <= 1, "{sentence}\n{text}");
    }
}

#[test]
fn old_turns_are_thinned_and_none_is_cut_off() {
    let mut talk = Talk::default();
    for n in 0..40 {
        talk = talk.user(&format!("Please repair module number {n}."));
        talk = talk.run(&format!("make module_{n}"), "done\n");
        talk = talk.answer(&format!(
            "Module {n} is repaired: limit_{n} was off by one.\n\n{}",
            "More about it is told here.\n".repeat(12)
        ));
    }
    let summary = talk.user("And now?").summary_within(1, 3_200, None, None);
    let told = texts(&summary, Section::CompletedActions).join("\n");
    for n in 0..40 {
        assert!(
            told.contains(&format!("module number {n}.")) || n == 0,
            "the request {n} is missing:\n{told}"
        );
    }
    assert!(told.contains("limit_1 ") && told.contains("limit_39 "), "{told}");
}

#[test]
fn every_turn_says_what_came_of_it_where_all_reports_are_too_long() {
    let report = |turn: usize| {
        format!(
            "Fixed. The parser number {turn} now reads `field_{turn}` because the header moved. {}",
            "More about it is told here, in a few words. ".repeat(8)
        )
    };
    let talk = (0..8).fold(Talk::default(), |talk, turn| {
        talk.user(&format!("Please repair parser number {turn}, it loses a field.")).answer(&report(turn))
    });
    let document = talk.user("Thanks. What is next?").summary_within(1, 900, None, None);
    // One of them may stand under Key Decisions instead.
    let told = document.to_markdown();
    for turn in 0..8 {
        assert!(told.contains(&format!("`field_{turn}`")), "{turn}: {told}");
    }
}

#[test]
fn lines_of_a_person_stay_lines_and_are_carried_as_they_are() {
    let words = "Change three things:\n\n- the name\n- the port\n1. and the log";
    let talk = Talk::default().user(words).run("make", "ok").answer("All three are changed in `server.rs`.");
    let talk = talk
        .user("Now test it, and tell me what fails.")
        .run("make test", "2 passed")
        .answer("Nothing fails.");
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = talk.summary(0);
    assert!(flat(&first.to_markdown()).contains(&flat(words)), "{}", first.to_markdown());
    let read = SummaryDocument::parse(&first.to_markdown());
    assert_eq!(read, first);
    let again = talk.summary_within(0, 4_000, Some(&read), None);
    assert_eq!(flat(&again.to_markdown()).matches(&flat(words)).count(), 1, "{}", again.to_markdown());
}

#[test]
fn exact_strings_that_leave_the_view_are_shown_with_their_lines() {
    let source = "     1→pub fn open_ledger(path: &Path, lock_timeout: Duration) -> Ledger {\n     2→    let ledger_path = path.join(LEDGER_FILE);\n";
    let arguments = serde_json::json!({ "file_path": "/repo/src/ledger_file.rs" }).to_string();
    let mut talk = Talk::default().user("Add a lock.").step("Read", &arguments, source);
    for number in 0..12 {
        talk = talk.run(&format!("echo step {number}"), "ok");
    }
    let summary = talk.summary(4);
    let files = texts(&summary, Section::RelevantFiles).join("\n");
    assert!(files.contains("lock_timeout") && files.contains("/repo/src/ledger_file.rs"), "{files}");
}

#[test]
fn decisions_of_earlier_notes_compete_with_new_ones_by_what_they_are() {
    let mut earlier = SummaryDocument::default();
    let change = "\"Scratch that. Let's write the totals to the ledger instead.\"";
    let chosen = "Which store? -> chosen: SQLite";
    earlier.add(Section::KeyDecisions, chosen);
    earlier.add(Section::KeyDecisions, change);
    earlier.add(Section::KeyDecisions, "Keep the old reader as a fallback for the first release.");
    let mut talk = Talk::default();
    for step in 0..40 {
        talk = talk.user(&format!("Make part_{step} read its limits from the settings file.")).answer(
            &format!("part_{step} should use `limit_{step}` instead of a constant, so I changed it."),
        );
    }
    let notes = talk.summary_within(2, 2_000, Some(&earlier), None);
    let told: Vec<&str> = notes.entries(Section::KeyDecisions).iter().map(|e| e.text.as_str()).collect();
    assert!(told.contains(&change) && told.contains(&chosen), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("part_39")), "{told:#?}");
}

#[test]
fn the_goal_of_earlier_notes_keeps_what_explains_it() {
    let mut earlier = SummaryDocument::default();
    earlier.add(Section::ActiveTask, "yes, please do");
    earlier.add(Section::ActiveTask, "In reply to: Shall I count the tokens in the stop hook?");
    earlier.add(Section::Goal, "Began with: \"What do these fields mean?\"");
    earlier.add(Section::Goal, "As the agent put it: The fields of `usage` count tokens.");
    let talk = Talk::default().user("yes, please do").run("ls", "src\n").run("ls docs", "a.md\n");
    let notes = talk.summary_within(2, 4_000, Some(&earlier), None);
    let told = |section| notes.entries(section).iter().map(|e| e.text.clone()).collect::<Vec<_>>().join("\n");
    assert!(told(Section::ActiveTask).contains("in the stop hook?"), "{}", told(Section::ActiveTask));
    assert!(told(Section::Goal).contains("The fields of `usage`"), "{}", told(Section::Goal));
}

#[test]
fn items_of_a_list_stand_with_the_line_that_leads_to_them() {
    let report = "The index is slow for two reasons:\n- `Open()` reads every file\n- `Find()` never uses the cache\n\n\
                  | File | State |\n|---|---|\n| `index.go` | read twice |\n";
    let talk = Talk::default().user("What is in here?").answer("An index.");
    let talk = talk.user("What is slow?").run("make", "ok\n").answer(report).user("Thanks");
    let actions = texts(&talk.summary(1), Section::CompletedActions).join("\n");
    let line =
        "- The index is slow for two reasons: `Open()` reads every file; `Find()` never uses the cache";
    assert!(actions.contains(line), "{actions}");
    assert!(actions.contains("`index.go`: read twice"), "{actions}");
}

#[test]
fn a_pasted_log_gives_way_to_the_persons_words() {
    let log: String =
        (0..200).map(|at| format!("{{\"time\":\"12:00:{at:03}\",\"level\":\"DEBUG\"}}\n")).collect();
    let words = format!("The build fails with this:\n{log}I think it began with the new linker.");
    let talk = Talk::default()
        .user(&words)
        .run("make", "ok\n")
        .answer("The linker was set wrong.")
        .user("Write it down.")
        .answer("Done.")
        .user("Thanks");
    let actions = talk.summary_within(1, 700, None, None).to_markdown();
    assert!(actions.contains("I think it began with the new linker."), "{actions}");
    assert!(!actions.contains("12:00:100"), "{actions}");
}

#[test]
fn a_yes_is_told_with_the_end_of_the_proposal() {
    let proposal = format!(
        "{}\n\nThe plan:\n1. Lock in `Get()`\n2. Write `TestRace`\n\nShall I begin?",
        "Two goroutines write to the map of `cache.go`, and nothing holds them apart. ".repeat(5)
    );
    let talk = Talk::default()
        .user("Find the race.")
        .run("make", "ok\n")
        .answer(&proposal)
        .user("yes")
        .run("make test", "ok\n")
        .run("make test", "ok\n");
    let task = texts(&talk.summary(1), Section::ActiveTask).join("\n");
    assert!(task.contains("In reply to: Shall I begin?\nTwo goroutines"), "{task}");
    assert!(task.contains("\nThe plan: 1. Lock in `Get()`\n2. Write `TestRace`"), "{task}");
}

#[test]
fn a_command_that_the_story_names_is_told_with_its_outcome() {
    let mut talk = Talk::default().user("Check it.").run("git push origin next", "done\n[exit code 0]\n");
    for at in 0..30 {
        talk = talk.run(&format!("make part-{at}"), "ok, all fine\n[exit code 0]\n");
    }
    let talk = talk.answer("`git push origin next` went through.").user("Good");
    let state = texts(&talk.summary_within(1, 700, None, None), Section::ActiveState).join("\n");
    assert!(state.contains("`git push origin next` -> ok"), "{state}");
}

#[test]
fn a_command_is_named_without_what_cuts_its_output() {
    let mut talk = Talk::default()
        .user("`git status` is broken, why?")
        .run("git status 2>&1", "clean tree\n[exit code 0]\n");
    for at in 0..30 {
        talk = talk.run(&format!("make part-{at}"), "ok, all fine\n[exit code 0]\n");
    }
    let talk = talk.answer("It works again.").user("Good");
    let state = texts(&talk.summary_within(1, 700, None, None), Section::ActiveState).join("\n");
    assert!(state.contains("`git status 2>&1` -> ok"), "{state}");
}

#[test]
fn what_was_chosen_stands_under_key_decisions_and_results_do_not() {
    let edit = serde_json::json!({
        "path": "src/hooks.rs",
        "old_string": "fn install() {",
        "new_string": "fn install() {\n    // Falls back to the current folder so that tests need no repository.",
    });
    let report = "The fix is to read `settings.json` once instead of at every call.\n\
                  Now remove `old_path` since it is no longer read.\n\
                  - Lock: \u{2705} `lock_file` is kept instead of dropped\n\n\
                  | # | File | Function | Fix |\n|---|---|---|---|\n| 1 | `a.rs` | `open()` | Use `root()` for every path |\n";
    let talk = Talk::default()
        .user("Look at `hooks.rs`.")
        .step("patch", &edit.to_string(), "ok")
        .answer("1. `a` is wrong\n2. `b` is wrong\n\nCan you tell me which error you saw?")
        .user("error 12")
        .run("make", "ok\n")
        .answer(report)
        .user("Can you fix both")
        .run("make", "ok\n")
        .answer("Fixed.")
        .user("Thanks");
    let notes = talk.summary(1);
    let told = texts(&notes, Section::KeyDecisions).join("\n");
    for line in [
        "`src/hooks.rs`, in a comment: install(): Falls back to the current folder so that tests need no repository.",
        "The fix is to read `settings.json` once instead of at every call.",
        "`a.rs` `open()`: Use `root()` for every path",
        "\"Can you fix both\"",
    ] {
        assert!(told.contains(line), "{line}\nin\n{told}");
    }
    for line in ["Now remove", "lock_file", "error 12"] {
        assert!(!told.contains(line), "{line}\nin\n{told}");
    }
}

#[test]
fn a_plan_is_listed_by_the_steps_that_choose() {
    let steps: String = (1..=9)
        .map(|at| {
            format!(
                "### {at}. Change `part_{at}.rs`\n\nRead the limits there. {}\n\n",
                "It is slow. ".repeat(12)
            )
        })
        .collect();
    let plan = format!("Do this:\n\n{steps}### 10. Use `pool.rs` instead of `queue.rs`\n\nFaster.\n");
    let talk = Talk::default().user(&plan).run("make", "ok\n").answer("Done with all of it.").user("Thanks");
    let notes = talk.summary(1);
    let told = texts(&notes, Section::KeyDecisions);
    let listed: Vec<&&str> = told.iter().filter(|line| line.starts_with("By the plan: ")).collect();
    assert!(listed.len() <= 5 && listed.iter().any(|line| line.contains("pool.rs")), "{told:#?}");
}

#[test]
fn a_request_that_became_the_goal_is_not_quoted_twice() {
    let sentence = "The reader of part 7 has to name the file in every error it returns.";
    let request =
        format!("Make errors readable. {sentence}\n\n{}", "Each part prints its own text today. ".repeat(30));
    let mut earlier = SummaryDocument::default();
    earlier.add(Section::ActiveTask, format!("{}… (goes on under Completed Actions)", &request[..60]));
    earlier.add(Section::Goal, "The active task");
    earlier.add_action("(the active task)\n- `part_7.rs` prints the text of the system.");
    let talk = Talk::default()
        .user(&request)
        .run("make", "ok\n")
        .answer("All parts name their files now.")
        .user("Now the same for warnings, and write down what each of them means.")
        .run("make", "ok\n")
        .run("make docs", "ok\n");
    let notes = talk.summary_within(2, 4_000, Some(&earlier), None);
    let markdown = notes.to_markdown();
    assert_eq!(markdown.matches(sentence).count(), 1, "{markdown}");
}

#[test]
fn checks_that_earlier_notes_list_are_still_in_use() {
    let mut earlier = SummaryDocument::default();
    earlier.add(Section::ActiveTask, "Port the reader.");
    earlier.add(Section::InProgress, "Checks in use: `mise run lint`, then `mise run test`");
    let frame = crate::preface::SummaryFrame { messages: 9, kept: 0, maker: Maker::Rules, recall: None };
    let talk = Talk::default()
        .user(&frame.message_text(&earlier.to_markdown()))
        .answer("On with it.")
        .user("Port the reader.")
        .run("cargo build", "Finished\n")
        .run("ls", "src\n");
    let notes = talk.summary_within(2, 4_000, Some(&earlier), None);
    let told = texts(&notes, Section::InProgress).join("\n");
    assert!(
        told.contains("Checks in use: `mise run lint`, then `mise run test`, then `cargo build`"),
        "{told}"
    );
}

#[test]
fn the_goal_says_what_the_agent_made_of_a_request_that_was_the_task_before() {
    let mut earlier = SummaryDocument::default();
    earlier.add(Section::ActiveTask, "Is there more like the last bug?");
    earlier.add(Section::Goal, "The active task");
    let found = "The bug is in three more places that read `settings.json` from the working folder.";
    earlier.add_action(format!("(the active task)\n- edited a.rs\n- {found}"));
    let talk = Talk::default()
        .user("Now write it down for the next release.")
        .run("ls", "a\n")
        .run("ls docs", "b\n");
    let notes = talk.summary_within(2, 4_000, Some(&earlier), None);
    let goal = texts(&notes, Section::Goal).join("\n");
    assert!(goal.contains("Began with: \"Is there more like the last bug?\""), "{goal}");
    assert!(goal.contains(&format!("As the agent put it: {found}")), "{goal}");
    assert_eq!(notes.to_markdown().matches(found).count(), 1);
}
