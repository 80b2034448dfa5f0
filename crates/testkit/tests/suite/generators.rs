//! The generators hold what they promise: lists that a provider accepts, every pair of roles at a seam, every kind of
//! part; broken lists that break the rule they name.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use throughline_testkit::{
    ConversationOptions, Coverage, Fault, broken_conversation, conversation, conversation_from_seed,
    conversation_with, picture,
};
use throughline_transcript::{Groups, Role, Violation, WireFormat};

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn every_list_is_one_that_a_provider_accepts() {
    for wire_format in WireFormat::ALL {
        let options = ConversationOptions::new(wire_format).may_be_open();
        let outcome = runner(3_000).run(&conversation_with(options), |list| {
            let messages = list.messages();
            let groups = Groups::of(&messages);
            let found = Violation::find(wire_format, &messages, &groups);
            if !found.is_empty() {
                return Err(TestCaseError::fail(format!("{found:?}")));
            }
            let open: usize = (0..messages.len()).map(|at| groups.unanswered_calls(at)).sum();
            if open != list.open_calls {
                return Err(TestCaseError::fail(format!("{open} calls are open, not {}", list.open_calls)));
            }
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    }
}

#[test]
fn every_seam_and_every_kind_of_part_occurs() {
    for wire_format in WireFormat::ALL {
        let coverage = Coverage::new();
        let options = ConversationOptions::new(wire_format);
        for seed in 0..4_000 {
            coverage.list(&conversation_from_seed(&options, seed).messages());
        }
        println!("{wire_format}\n{coverage}");
        assert_eq!(coverage.missing_seams(wire_format), [], "{wire_format}");
        for what in [
            "text",
            "reasoning, readable",
            "reasoning, sealed",
            "tool call",
            "tool result",
            "image",
            "unknown block",
            "image in a result",
            "parallel calls",
            "more than four calls",
            "human",
            "machine-written",
            "over 8,000 bytes",
            "beyond ASCII",
            "escaped characters",
            "unknown members",
        ] {
            assert!(coverage.count(what) > 20, "{wire_format}: {what} occurs {} times", coverage.count(what));
        }
        let only_there = match wire_format {
            WireFormat::Anthropic => {
                ["results with human words", "result marked as error", "result without content"].as_slice()
            }
            WireFormat::Chat | WireFormat::Responses => ["answer without words"].as_slice(),
        };
        for what in only_there {
            assert!(coverage.count(what) > 20, "{wire_format}: {what}");
        }
    }
}

#[test]
fn the_tools_of_every_agent_are_called() {
    let mut seen = std::collections::BTreeSet::new();
    for wire_format in WireFormat::ALL {
        for seed in 0..1_500 {
            for message in conversation_from_seed(&ConversationOptions::new(wire_format), seed).messages() {
                for (_, name, arguments) in message.calls() {
                    seen.insert(message.str(name).into_owned());
                    let text = message.arguments_text(arguments);
                    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
                    assert!(is_json || text.starts_with("*** Begin Patch"), "{text}");
                }
            }
        }
    }
    for name in [
        "terminal",
        "read_file",
        "write_file",
        "patch",
        "search_files",
        "web_search",
        "Bash",
        "Read",
        "Write",
        "Edit",
        "MultiEdit",
        "Glob",
        "Grep",
        "WebFetch",
        "WebSearch",
        "Task",
        "TodoWrite",
        "NotebookEdit",
        "shell",
        "exec_command",
        "apply_patch",
        "update_plan",
        "view_image",
        "local_shell_call",
    ] {
        assert!(seen.contains(name), "{name} is never called; called are {seen:?}");
    }
}

#[test]
fn a_seed_stands_for_one_list() {
    for wire_format in WireFormat::ALL {
        let options = ConversationOptions::new(wire_format).with_summary("what happened before");
        for seed in 0..200 {
            let list = conversation_from_seed(&options, seed);
            assert_eq!(list, conversation_from_seed(&options, seed));
            let at = list.summary_at.expect("every list holds the summary");
            let messages = list.messages();
            assert_eq!(messages[at].text(), "what happened before");
            assert!(matches!(messages[at].role(), Role::User | Role::Assistant));
            assert_eq!(Violation::find(wire_format, &messages, &Groups::of(&messages)), []);
        }
    }
}

#[test]
fn sizes_run_from_nothing_to_hundreds() {
    let options = ConversationOptions::new(WireFormat::Chat);
    let sizes: Vec<usize> = (0..2_000).map(|seed| conversation_from_seed(&options, seed).len()).collect();
    assert!(sizes.contains(&0));
    assert!(sizes.iter().any(|size| *size > 200), "largest: {:?}", sizes.iter().max());
    assert!(sizes.iter().filter(|size| **size < 40).count() > 1_400, "most lists are small");
}

#[test]
fn a_failing_case_shrinks_to_what_matters() {
    // Fails on every list with two calls in one answer: one such answer and its results are enough.
    let outcome = runner(2_000).run(&conversation(WireFormat::Chat), |list| {
        let parallel = list.messages().iter().any(|message| message.calls().count() > 1);
        if parallel { Err(TestCaseError::fail("two calls at once")) } else { Ok(()) }
    });
    let Err(TestError::Fail(_, list)) = outcome else { panic!("it must fail: {outcome:?}") };
    let drawn = picture(&list.messages());
    assert!(drawn.starts_with("uA") && drawn.trim_end_matches('T').len() <= 3, "{drawn}");
    assert!(list.document().len() < 1_500, "plain words are enough: {list:?}");
}

#[test]
fn undoing_a_step_of_shrinking_restores_the_list() {
    let mut runner = runner(1);
    for _ in 0..50 {
        let mut tree = conversation(WireFormat::Responses).new_tree(&mut runner).expect("a list can be made");
        let whole = tree.current();
        let mut attempts = 0;
        while tree.simplify() && attempts < 500 {
            assert!(tree.complicate());
            assert_eq!(tree.current(), whole);
            attempts += 1;
        }
    }
}

#[test]
fn a_broken_list_breaks_the_rule_it_names() {
    for wire_format in WireFormat::ALL {
        let seen = std::cell::RefCell::new(std::collections::HashSet::new());
        let outcome = runner(1_500).run(&broken_conversation(wire_format), |broken| {
            let messages = broken.list.messages();
            let found = Violation::find(wire_format, &messages, &Groups::of(&messages));
            seen.borrow_mut().insert(broken.fault);
            if found.iter().any(|violation| violation.kind == broken.fault.violation()) {
                Ok(())
            } else {
                Err(TestCaseError::fail(format!("{:?} found only {found:?}", broken.fault)))
            }
        });
        if let Err(error) = outcome {
            panic!("{wire_format}: {error}");
        }
        assert_eq!(seen.borrow().len(), Fault::ALL.len(), "{wire_format}");
    }
}
