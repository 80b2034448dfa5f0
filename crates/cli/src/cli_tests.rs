//! Tests of the command line.

use clap::CommandFactory as _;

use super::Cli;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// Every command and flag, as scripts use them: names, aliases, values, defaults. Part of the net of `tests/cli/golden.rs`.
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
