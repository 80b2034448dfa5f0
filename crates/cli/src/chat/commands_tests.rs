//! The help lists every command, at any width.

use clap::Parser as _;

use super::*;
use crate::cli::Cli;

#[test]
fn help_lists_every_command_and_fits() {
    for width in [40, 80, 120] {
        let text = anstream::adapter::strip_str(&help(width)).to_string();
        for command in COMMANDS {
            assert!(text.contains(&format!("/{}", command.name)), "{}", command.name);
        }
        let words: Vec<&str> = text.split([' ', '\n', ',']).collect();
        for other in ["/clear", "/cost", "/compact", "exit"] {
            assert!(words.contains(&other), "{other}: {text}");
        }
        assert!(text.lines().all(|line| columns(line) <= width), "{width}: {text}");
    }
}

#[test]
fn flags_of_the_program_can_be_given_in_chat() {
    assert_eq!(insights_words("7"), ["insights", "--days", "7"]);
    assert_eq!(insights_words("--days 7 --top 20"), ["insights", "--days", "7", "--top", "20"]);
    assert_eq!(insights_words("90 --top 3"), ["insights", "--days", "90", "--top", "3"]);
    assert_eq!(search_words("waiting list --limit 5"), ["search", "waiting list", "--limit", "5"]);
    assert_eq!(search_words("a --b"), ["search", "a", "--b"]);
    assert_eq!(with_flags("sessions", "--all"), ["sessions", "--all"]);
    for words in [
        insights_words("90 --top 3"),
        search_words("waiting list --limit 5"),
        with_flags("sessions", "--all"),
    ] {
        assert!(Cli::try_parse_from(std::iter::once("throughline").chain(words)).is_ok());
    }
}

#[test]
fn commands_that_are_the_programs_own_are_understood_by_it() {
    for line in [
        "usage s1",
        "insights --days 7",
        "sessions",
        "config show",
        "config get model.default",
        "sessions export s1 --out x.json",
        "models some-model",
        "compress --session s1 --preview --force --focus topic --keep-exactly 4",
    ] {
        let words = std::iter::once("throughline").chain(line.split(' '));
        assert!(Cli::try_parse_from(words).is_ok(), "{line}");
    }
}
