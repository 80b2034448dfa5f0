//! Parsing slash commands, and suggestions for typing errors.

use super::*;

#[test]
fn commands_words_and_slips_are_distinguished() {
    assert_eq!(read("  hello "), ParsedLine::Words("hello"));
    assert_eq!(read("/compact database schema"), ParsedLine::Command("compress", "database schema"));
    assert_eq!(read("/QUIT"), ParsedLine::Command("quit", ""));
    assert_eq!(read("/usr/bin/env is missing"), ParsedLine::Words("/usr/bin/env is missing"));
    let near = |name: &'static str| match read(name) {
        ParsedLine::Unknown { nearest, .. } => nearest,
        other => panic!("{other:?}"),
    };
    assert_eq!(near("/compres"), Some("compress"));
    assert_eq!(near("/contxt"), Some("context"));
    assert_eq!(near("/serach foo"), Some("search"));
    assert_eq!(near("/ti"), Some("title"));
    assert_eq!(near("/xyzzyplugh"), None);
    assert_eq!(near("/init"), None, "not /quit");
}

#[test]
fn names_of_other_agents_are_understood_or_explained() {
    for (typed, command) in [
        ("/clear", "new"),
        ("/cost", "usage"),
        ("/exit", "quit"),
        ("/compact", "compress"),
        ("exit", "quit"),
        (" Quit ", "quit"),
        (":q", "quit"),
    ] {
        assert_eq!(read(typed), ParsedLine::Command(command, ""), "{typed}");
    }
    assert_eq!(read("exit codes, please"), ParsedLine::Words("exit codes, please"));
    let aliases = ALIASES.iter().chain(&BARE);
    assert!(aliases.into_iter().all(|(_, command)| find(command) == Some(*command)));
    assert!(ELSEWHERE.iter().all(|(name, _)| find(name).is_none()));
    assert!(unknown_words("init", None).contains("AGENTS.md"));
    assert!(unknown_words("compres", Some("compress")).ends_with("did you mean /compress?"));
    assert!(unknown_words("xyzzy", None).ends_with("/help lists what there is"));
}

#[test]
fn how_compress_is_meant() {
    let of = |arguments: &str| parse_compress_options(arguments).unwrap();
    assert_eq!(of(""), CompressOptions::default());
    assert_eq!(of("database schema").focus.as_deref(), Some("database schema"));
    assert_eq!(of("here").keep_exchanges, Some(2));
    assert_eq!(of("here 5").keep_exchanges, Some(5));
    assert_eq!(
        of("--keep 3 --preview"),
        CompressOptions { focus: None, keep_exchanges: Some(3), preview: true }
    );
    assert_eq!(
        of("--keep=7 the parser"),
        CompressOptions { focus: Some("the parser".to_owned()), keep_exchanges: Some(7), preview: false }
    );
    assert_eq!(of("--keep 3 here").keep_exchanges, Some(3));
    assert_eq!(of("here is the parser").focus.as_deref(), Some("here is the parser"));
}

#[test]
fn counts_that_cannot_be_meant_are_refused_with_what_can() {
    for (typed, instead) in [
        ("--keep x", "`x`"),
        ("--keep", "nothing"),
        ("--keep 0", "`0`"),
        ("--keep=", "``"),
        ("-k 9999", "`9999`"),
        ("here 0", "`0`"),
        ("here abc", "`abc`"),
        ("up to here -1 --preview", "`-1`"),
    ] {
        let refused = parse_compress_options(typed).unwrap_err();
        assert!(refused.contains(instead) && refused.contains("from 1 to 100"), "{typed}: {refused}");
    }
    assert!(parse_compress_options("--previw").unwrap_err().contains("unknown option --previw"));
}

#[test]
fn distances_are_those_of_the_book() {
    assert_eq!(distance("kitten", "sitting"), 3);
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("abc", "abc"), 0);
}
