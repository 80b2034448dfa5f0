//! Only the user's answer allows a call, and nothing beyond the question.

use proptest::prelude::*;

use super::*;

fn runs(command: &str) -> Proposal {
    let dangers = crate::danger::dangers_of(command, &|_| crate::danger::FileKind::Nothing);
    let effect = Effect::Runs { command: command.to_owned(), folder: "/w".into(), identity: None, dangers };
    Proposal { title: format!("run {command}"), effects: vec![effect] }
}

fn writes(path: &str, inside: bool) -> Proposal {
    let difference = crate::difference::difference("a", "", "x\n");
    let effect = Effect::Writes { path: path.into(), inside, difference, folder: None };
    Proposal { title: format!("write {path}"), effects: vec![effect] }
}

fn reads(path: &str, inside: bool, extent: Extent) -> Proposal {
    let effect = Effect::Reads { path: path.into(), inside, extent, folder: None };
    Proposal { title: format!("read {path}"), effects: vec![effect] }
}

fn asked(approvals: &Approvals, proposal: &Proposal) -> Question {
    match approvals.judge(proposal) {
        Judgement::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reading_inside_needs_nothing_and_everything_else_is_asked() {
    let approvals = Approvals::new(ApprovalMode::Always);
    assert_eq!(approvals.judge(&reads("/w/a", true, Extent::File)), Judgement::Allowed);
    assert_eq!(approvals.judge(&Proposal::default()), Judgement::Allowed);
    assert!(asked(&approvals, &reads("/etc/passwd", false, Extent::File)).details[0].contains("outside"));
    assert!(asked(&approvals, &writes("/w/a", true)).details[0].contains("+x"));
    assert!(asked(&approvals, &runs("ls")).details[0].contains("ls"));
}

#[test]
fn once_is_once_and_a_session_is_for_just_that() {
    let mut approvals = Approvals::new(ApprovalMode::Always);
    let question = asked(&approvals, &runs("ls"));
    assert!(approvals.answered(&question, Answer::Once));
    let question = asked(&approvals, &runs("ls"));
    assert!(approvals.answered(&question, Answer::Session));
    assert_eq!(approvals.judge(&runs("ls")), Judgement::Allowed);
    assert!(
        matches!(approvals.judge(&runs("ls -la")), Judgement::Ask(_)),
        "another command is another question"
    );
    let question = asked(&approvals, &writes("/w/a", true));
    approvals.answered(&question, Answer::Session);
    assert_eq!(approvals.judge(&writes("/w/b", true)), Judgement::Allowed);
    assert!(matches!(approvals.judge(&writes("/etc/x", false)), Judgement::Ask(_)));
    // Files that git runs are more dangerous than others.
    for own in ["/w/.git/config", "/w/sub/.git/hooks/pre-commit", "/w/.GIT/config"] {
        let question = asked(&approvals, &writes(own, true));
        assert_eq!((question.dangers.as_slice(), question.for_session), (&[Danger::RunsLater][..], false));
    }
    assert_eq!(approvals.judge(&writes("/w/.gitignore", true)), Judgement::Allowed);
    let denied = asked(&approvals, &writes("/etc/x", false));
    assert!(!approvals.answered(&denied, Answer::Deny));
}

#[test]
fn danger_is_asked_every_time() {
    let mut approvals = Approvals::new(ApprovalMode::Always);
    let question = asked(&approvals, &runs("rm -rf x"));
    assert_eq!((question.dangers.as_slice(), question.for_session), (&[Danger::Deletes][..], false));
    assert!(approvals.answered(&question, Answer::Session), "it is allowed this once");
    assert!(matches!(approvals.judge(&runs("rm -rf x")), Judgement::Ask(_)));
}

#[test]
fn asking_can_be_turned_off_or_impossible() {
    assert_eq!(Approvals::new(ApprovalMode::Never).judge(&runs("rm -rf x")), Judgement::Allowed);
    assert!(matches!(Approvals::new(ApprovalMode::Nobody).judge(&runs("ls")), Judgement::Denied(_)));
}

/// Every kind of effect on a path outside the workspace.
fn outside(kind: usize, path: &str) -> Proposal {
    match kind {
        0 => reads(path, false, Extent::File),
        1 => reads(path, false, Extent::Listing),
        2 => reads(path, false, Extent::Tree),
        3 => writes(path, false),
        _ => {
            let effect = Effect::Runs {
                command: "ls".to_owned(),
                folder: path.into(),
                identity: None,
                dangers: Vec::new(),
            };
            Proposal { title: "run ls".to_owned(), effects: vec![effect] }
        }
    }
}

fn paths() -> impl Strategy<Value = String> {
    let part =
        prop::sample::select(vec!["x", "X", "allowed", "Allowed", "private", "a.txt", "allowed2", " "]);
    prop::collection::vec(part, 1..4).prop_map(|parts| format!("/{}", parts.join("/")))
}

proptest! {
    #[test]
    fn grant_covers_what_it_names_and_nothing_else(
        granted in (0usize..5, paths()),
        others in prop::collection::vec((0usize..5, paths()), 1..12),
    ) {
        let mut approvals = Approvals::new(ApprovalMode::Always);
        let question = asked(&approvals, &outside(granted.0, &granted.1));
        let words = question.session_words();
        approvals.answered(&question, Answer::Session);
        prop_assert_eq!(approvals.judge(&outside(granted.0, &granted.1)), Judgement::Allowed);
        for other in others {
            match approvals.judge(&outside(other.0, &other.1)) {
                Judgement::Allowed => prop_assert_eq!(&other, &granted),
                Judgement::Ask(question) => prop_assert_ne!(question.session_words(), words.as_str()),
                Judgement::Denied(why) => prop_assert!(false, "{}", why),
            }
        }
    }
}

#[test]
fn search_grant_covers_neither_siblings_nor_parents_nor_files() {
    let mut approvals = Approvals::new(ApprovalMode::Always);
    let question = asked(&approvals, &reads("/x/allowed", false, Extent::Tree));
    assert_eq!(question.session_words(), "searching /x/allowed with everything below it, for anything");
    approvals.answered(&question, Answer::Session);
    assert_eq!(approvals.judge(&reads("/x/allowed", false, Extent::Tree)), Judgement::Allowed);
    for other in ["/x/private", "/x", "/x/allowed/sub", "/x/Allowed"] {
        assert!(matches!(approvals.judge(&reads(other, false, Extent::Tree)), Judgement::Ask(_)), "{other}");
    }
    assert!(matches!(approvals.judge(&reads("/x/allowed/a.txt", false, Extent::File)), Judgement::Ask(_)));
}

#[test]
fn hidden_characters_are_shown_and_dangerous() {
    let approvals = Approvals::new(ApprovalMode::Always);
    let command = "ls -la \u{1b}]0 ; bash -lc \"touch PWNED\" ; echo \u{7}";
    let question = asked(&approvals, &runs(command));
    assert!(question.dangers.contains(&Danger::Hidden) && !question.for_session);
    assert_eq!(question.details, ["in /w\nls -la \\x1b]0 ; bash -lc \"touch PWNED\" ; echo \\x07"]);
    assert_eq!(question.title, "run ls -la \\x1b]0 ; bash -lc \"touch PWNED\" ; echo \\x07");
    for hidden in [writes("/e/a\u{202e}txt", false), reads("/e/\u{200b}", false, Extent::File)] {
        assert!(asked(&approvals, &hidden).dangers.contains(&Danger::Hidden));
    }
    let written = |text: &str| {
        let difference = crate::difference::difference("a", "", text);
        let effect = Effect::Writes { path: "/w/a".into(), inside: true, difference, folder: None };
        asked(&approvals, &Proposal { title: "write a".to_owned(), effects: vec![effect] })
    };
    let question = written("x = 1 \u{202e}# harmless\n");
    assert!(question.dangers == [Danger::Hidden] && question.details[0].contains("\\u{202e}# harmless"));
    assert!(
        written("one\r\ntwo \u{26a0}\u{fe0f}\r\n").dangers.is_empty(),
        "ends of lines and emoji are harmless"
    );
    let far = format!("ls{}; touch x", " ".repeat(200));
    assert!(asked(&approvals, &runs(&far)).dangers.contains(&Danger::Hidden));
    assert!(asked(&approvals, &runs("ls\n\n  -la")).dangers.is_empty());
}
