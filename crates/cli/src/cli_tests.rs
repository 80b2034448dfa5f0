//! Tests of the command line.

use clap::CommandFactory as _;

use super::Cli;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// Every command and flag as scripts use them: names, aliases, values, defaults. Part of the regression tests of `tests/cli/golden.rs`.
#[test]
fn commands_and_flags_match_their_golden_list() {
    let mut root = Cli::command();
    root.build();
    let mut lines = std::collections::BTreeSet::new();
    list_command(&root, "throughline", &mut lines);
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/lists/commands.txt");
    throughline_testkit::check_golden(std::path::Path::new(path), &text);
}

fn list_command(command: &clap::Command, path: &str, lines: &mut std::collections::BTreeSet<String>) {
    let aliases: Vec<&str> = command.get_all_aliases().collect();
    let also = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
    let hidden = if command.is_hide_set() { " (hidden)" } else { "" };
    lines.insert(format!("{path}{also}{hidden}"));
    for argument in
        command.get_arguments().filter(|argument| !argument.is_global_set() || path == "throughline")
    {
        lines.insert(format!("{path} {}", words_of(argument)));
    }
    for inner in command.get_subcommands() {
        list_command(inner, &format!("{path} {}", inner.get_name()), lines);
    }
}

fn words_of(argument: &clap::Arg) -> String {
    let mut words = Vec::new();
    words.extend(argument.get_long().map(|long| format!("--{long}")));
    words.extend(argument.get_short().map(|short| format!("-{short}")));
    words.extend(argument.get_all_aliases().into_iter().flatten().map(|alias| format!("--{alias}")));
    words.extend(argument.get_all_short_aliases().into_iter().flatten().map(|alias| format!("-{alias}")));
    if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
        words.extend(names);
        let values: Vec<String> =
            argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        words.extend((!values.is_empty()).then(|| format!("[{}]", values.join("|"))));
        let defaults: Vec<String> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        words.extend((!defaults.is_empty()).then(|| format!("default {}", defaults.join(","))));
        words.extend(
            matches!(argument.get_action(), clap::ArgAction::Append).then(|| "repeatable".to_owned()),
        );
    }
    words.extend(argument.is_required_set().then(|| "required".to_owned()));
    words.extend(argument.is_hide_set().then(|| "(hidden)".to_owned()));
    words.join(" ")
}

/// Every command in README and the book is valid.
#[test]
fn documented_commands_are_accepted() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open =
        vec![root.join("README.md"), root.join("docs"), root.join("examples"), root.join("integrations")];
    let (mut seen, mut refused) = (0, Vec::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            for line in documented(&std::fs::read_to_string(&path).unwrap()) {
                seen += 1;
                if let Err(error) = <Cli as clap::Parser>::try_parse_from(words(&line))
                    && error.use_stderr()
                {
                    refused.push(format!("{}: {line}\n{error}", path.display()));
                }
            }
        }
    }
    assert!(seen > 100, "only {seen} commands were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// The command lines in the code blocks of a page, without comments.
fn documented(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().skip(1).map(str::trim));
    let commands = lines.filter_map(|line| {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line
            .strip_prefix("cargo run --release -- ")
            .map(|rest| format!("throughline {rest}"))
            .or_else(|| line.starts_with("throughline ").then(|| line.to_owned()))?;
        // A comment follows after two spaces or a `#`; pipes and redirections belong to the shell.
        let ends = ["  ", " #", " |", " <", " >", " &&", " 2>"];
        let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
        Some(line[..end].to_owned())
    });
    commands.filter(|command| !command.contains("COMMAND") && !command.contains("...")).collect()
}

/// The words of a command line. Quotes join words, brackets mark optional parts.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for character in line.chars().filter(|character| !matches!(character, '[' | ']')) {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ' ') => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(character),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words.into_iter().map(|word| if word == "N" { "3".to_owned() } else { word }).collect()
}
