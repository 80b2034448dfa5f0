//! The reference pages of the book are generated from the program itself. `INSTA_UPDATE=always` writes them anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use throughline_testkit::check_golden;

use crate::harness::World;

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

/// Every command with its subcommands, in the order of the golden list.
fn commands() -> Vec<String> {
    let list = include_str!("../golden/lists/commands.txt");
    let names = list.lines().filter_map(|line| {
        let path: Vec<&str> = line.split(" (").next()?.split(' ').collect();
        let is_name =
            |word: &&str| !word.starts_with('-') && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let plain = path.iter().all(is_name);
        (plain && !line.contains("(hidden)")).then(|| path[1..].join(" "))
    });
    names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn reference_of_commands_is_up_to_date() {
    let world = World::new();
    let mut text = String::from(
        "# Commands\n\nGenerated from the program's own help. `throughline COMMAND --help` prints the same.\n",
    );
    writeln!(text, "\n## throughline\n\n```text\n{}\n```", world.run(&["--help"]).text().trim_end()).unwrap();
    for command in commands() {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("--help");
        let ended = world.run(&arguments);
        assert_eq!(ended.code, Some(0), "{command}: {}", ended.stderr);
        let help = ended.text();
        writeln!(text, "\n## throughline {command}\n\n```text\n{}\n```", help.trim_end()).unwrap();
    }
    check_golden(&page("commands.md"), &text);
}

#[test]
fn reference_of_settings_is_up_to_date() {
    let defaults = World::new().run(&["config", "defaults"]).text();
    let text = format!(
        "# Settings\n\nThe commented defaults, as `throughline config defaults` prints them.\n\n```yaml\n{}\n```\n",
        defaults.trim_end()
    );
    check_golden(&page("settings.md"), &text);
}

#[test]
fn reference_of_clients_is_up_to_date() {
    let text = format!(
        "# Clients\n\nWhat is known of each, as `throughline run --list` prints it.\n\n```text\n{}\n```\n",
        World::new().run(&["run", "--list"]).text().trim_end()
    );
    check_golden(&page("clients.md"), &text);
}
