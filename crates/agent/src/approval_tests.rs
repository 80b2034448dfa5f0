//! Only a person's answer allows anything, and no more than was asked.

use super::*;

fn runs(command: &str) -> Proposal {
    let danger = crate::danger::danger_of(command, &|_| false);
    let effect = Effect::Runs { command: command.to_owned(), folder: "/w".into(), danger };
    Proposal { title: format!("run {command}"), effects: vec![effect] }
}

fn writes(path: &str, inside: bool) -> Proposal {
    let effect = Effect::Writes { path: path.into(), inside, difference: "+x".to_owned() };
    Proposal { title: format!("write {path}"), effects: vec![effect] }
}

fn asked(approvals: &Approvals, proposal: &Proposal) -> Question {
    match approvals.judge(proposal) {
        Judgement::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reading_inside_needs_nothing_and_everything_else_is_asked() {
    let approvals = Approvals::new(Asking::Always);
    let inside =
        Proposal { title: String::new(), effects: vec![Effect::Reads { path: "/w/a".into(), inside: true }] };
    assert_eq!(approvals.judge(&inside), Judgement::Allowed);
    assert_eq!(approvals.judge(&Proposal::default()), Judgement::Allowed);
    let outside = Proposal {
        title: String::new(),
        effects: vec![Effect::Reads { path: "/etc/passwd".into(), inside: false }],
    };
    assert!(asked(&approvals, &outside).details[0].contains("outside"));
    assert!(asked(&approvals, &writes("/w/a", true)).details[0].contains("+x"));
    assert!(asked(&approvals, &runs("ls")).details[0].contains("ls"));
}

#[test]
fn once_is_once_and_a_session_is_for_just_that() {
    let mut approvals = Approvals::new(Asking::Always);
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
    // What git runs by itself is no file like others.
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
    let mut approvals = Approvals::new(Asking::Always);
    let question = asked(&approvals, &runs("rm -rf x"));
    assert_eq!((question.dangers.as_slice(), question.for_session), (&[Danger::Deletes][..], false));
    assert!(approvals.answered(&question, Answer::Session), "it is allowed this once");
    assert!(matches!(approvals.judge(&runs("rm -rf x")), Judgement::Ask(_)));
}

#[test]
fn asking_can_be_turned_off_or_impossible() {
    assert_eq!(Approvals::new(Asking::Never).judge(&runs("rm -rf x")), Judgement::Allowed);
    assert!(matches!(Approvals::new(Asking::Nobody).judge(&runs("ls")), Judgement::Denied(_)));
}
