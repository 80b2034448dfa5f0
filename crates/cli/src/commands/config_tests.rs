//! `throughline config` with a home directory per test.

use std::fs;

use clap::Parser;
use tempfile::TempDir;

use super::*;

#[derive(Parser)]
struct Shell {
    #[command(flatten)]
    config: ConfigArgs,
}

/// The home directory, environment and command line of one test.
struct ModelLookup {
    folder: TempDir,
    app: App,
}

impl ModelLookup {
    fn new(file: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        if let Some(text) = file {
            fs::create_dir(&home).unwrap();
            fs::write(home.join("config.yaml"), text).unwrap();
        }
        let mut app = App::for_tests(home);
        app.env = vec![("MY_KEY".to_owned(), "sk-0123456789abcdefgh".to_owned())];
        Self { folder, app }
    }

    fn run(&self, line: &str) -> Result<CommandOutput, CliError> {
        let words = std::iter::once("config").chain(line.split(' '));
        output(Shell::try_parse_from(words).unwrap().config.command, &self.app)
    }

    fn data(&self, line: &str) -> String {
        self.tidy(&self.run(line).unwrap().data)
    }

    fn notes(&self, line: &str) -> String {
        let output = self.run(line).unwrap();
        assert_eq!(output.data, "", "{line} should print no data");
        self.tidy(&output.notes.join("\n"))
    }

    fn failure(&self, line: &str) -> (Exit, String) {
        let failure = self.run(line).unwrap_err();
        (failure.exit(), self.tidy(&anstream::adapter::strip_str(&failure.render()).to_string()))
    }

    fn file(&self) -> String {
        fs::read_to_string(self.app.config_path()).unwrap()
    }

    /// Masks the temporary folder, whose name differs in every run.
    fn tidy(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "").replace('\\', "/")
    }
}

#[test]
fn show_lists_every_setting_with_its_origin() {
    let mut lookup = ModelLookup::new(Some(
        "compression:\n  threshold: 0.6\nauxiliary: {compression: {api_key: '${MY_KEY}'}}\n",
    ));
    lookup.app.env.push(("THROUGHLINE_COMPRESSION__PROTECT_LAST_N".to_owned(), "30".to_owned()));
    lookup.app.sets.push("model.context_length=200k".to_owned());
    insta::assert_snapshot!("show", lookup.data("show"));
    insta::assert_snapshot!("show_changed", lookup.data("show --changed"));
    let json: serde_json::Value = serde_json::from_str(&lookup.data("show --json --changed")).unwrap();
    assert_eq!(json["file"], "/home/config.yaml");
    assert_eq!(json["settings"].as_array().unwrap().len(), 4);
    assert_eq!(json["settings"][0]["value"], 0.6);
    assert_eq!(json["settings"][0]["origin"]["line"], 2);
    assert_eq!(json["settings"][0]["variable"], "THROUGHLINE_COMPRESSION__THRESHOLD");
    assert!(!lookup.data("show --json").contains("0123456789"), "the key is shown");
}

#[test]
fn without_a_file_everything_is_at_its_default() {
    let lookup = ModelLookup::new(None);
    assert_eq!(lookup.notes("show --changed"), "every setting is at its default");
    assert!(lookup.data("show").lines().all(|line| line.ends_with("  default")));
    let output = lookup.run("path").unwrap();
    assert_eq!(lookup.tidy(&output.data), "/home/config.yaml\n");
    assert_eq!(output.notes.len(), 1);
    assert_eq!(lookup.data("defaults"), Settings::default_file());
    assert!(!lookup.app.home.exists(), "looking makes no folder");
}

#[test]
fn get_prints_a_bare_value_a_section_or_json() {
    let lookup =
        ModelLookup::new(Some("compression: {threshold: 0.6, models: {gpt-5.5: {threshold: 0.7}}}\n"));
    assert_eq!(lookup.data("get compression.threshold"), "0.6\n");
    assert_eq!(lookup.data("get context.engine"), "compressor\n");
    assert_eq!(lookup.data("get model.default"), "\n");
    assert_eq!(lookup.data("get model.context_length"), "\n");
    assert_eq!(
        lookup.data("get compression.models"),
        "compression.models.gpt-5.5.threshold  0.7  /home/config.yaml:1\n"
    );
    assert_eq!(
        lookup.data("get prompt_caching"),
        "prompt_caching.cache_ttl  5m    default\nprompt_caching.markers    true  default\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&lookup.data("get model.context_length --json")).unwrap();
    assert_eq!(json["value"], serde_json::Value::Null);
    assert_eq!(json["origin"]["kind"], "default");
    assert!(json["about"].as_str().unwrap().contains("window in tokens"));
    let json: serde_json::Value = serde_json::from_str(&lookup.data("get tool_output --json")).unwrap();
    assert_eq!(json[2]["value"], 1500);
    let (exit, message) = lookup.failure("get compression.treshold");
    assert_eq!(exit, Exit::BadConfig);
    assert!(
        message.starts_with(
            "error: there is no setting compression.treshold; did you mean compression.threshold?"
        )
    );
}

#[test]
fn set_and_unset_change_the_file_and_say_what_counts() {
    let mut lookup = ModelLookup::new(None);
    assert_eq!(
        lookup.notes("set compression.threshold 0.60"),
        "changed /home/config.yaml; compression.threshold is 0.6 (line 2)"
    );
    assert_eq!(lookup.file(), "compression:\n  threshold: 0.60\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&lookup.app.home).unwrap().permissions().mode() & 0o777, 0o700);
    }
    assert_eq!(
        lookup.notes("set compression.threshold 0.60"),
        "nothing to change in /home/config.yaml; compression.threshold is 0.6 (line 2)"
    );
    assert_eq!(
        lookup.notes("set auxiliary.compression.api_key sk-abcdefghijklmnop1234"),
        "changed /home/config.yaml; auxiliary.compression.api_key is ****1234 (line 6)"
    );
    lookup.app.env.push(("THROUGHLINE_COMPRESSION__THRESHOLD".to_owned(), "0.8".to_owned()));
    assert_eq!(
        lookup.notes("unset compression.threshold"),
        "changed /home/config.yaml; compression.threshold is 0.8, because THROUGHLINE_COMPRESSION__THRESHOLD comes first"
    );
    lookup.app.env.clear();
    assert_eq!(
        lookup.notes("unset compression.threshold"),
        "nothing to change in /home/config.yaml; compression.threshold is 0.5, the default"
    );
}

#[test]
fn unset_key_without_a_default_is_called_not_set() {
    let lookup = ModelLookup::new(Some("compression: {models: {gpt-5.5: {threshold: 0.7}}}\n"));
    let note = "changed /home/config.yaml; compression.models.gpt-5.5.threshold is not set";
    assert_eq!(lookup.notes("unset compression.models.gpt-5.5.threshold"), note);
    assert_eq!(
        lookup.notes("unset compression.models"),
        "changed /home/config.yaml; compression.models is not set"
    );
    assert_eq!(lookup.file(), "compression: {}\n");
}

#[test]
fn a_refused_change_leaves_the_file_alone() {
    let file = "compression:\n  threshold: 0.6 # mine\n";
    let lookup = ModelLookup::new(Some(file));
    let (exit, message) = lookup.failure("set compression.threshold -1.7");
    assert_eq!(exit, Exit::BadConfig);
    assert!(
        message.starts_with("error: compression.threshold is -1.7, but must be between 0.05 and 1\n"),
        "{message}"
    );
    assert_eq!(lookup.failure("unset compression.treshold").0, Exit::BadConfig);
    assert_eq!(lookup.file(), file);
}

#[test]
fn a_wrong_file_can_be_set_right() {
    let lookup = ModelLookup::new(Some("compression:\n  threshold: 1.7\n  enabled: maybe\n"));
    let (exit, message) = lookup.failure("show");
    assert_eq!(exit, Exit::BadConfig);
    assert_eq!(
        message,
        "error: /home/config.yaml:2: compression.threshold is 1.7, but must be between 0.05 and 1\n       \
         /home/config.yaml:3: compression.enabled is \"maybe\", but must be true or false\n \
         hint: `throughline config defaults` explains every setting\n"
    );
    assert_eq!(
        lookup.notes("set compression.threshold 0.7"),
        "changed /home/config.yaml; other settings are wrong; `throughline config check` says which"
    );
    assert_eq!(
        lookup.notes("unset compression.enabled"),
        "changed /home/config.yaml; compression.enabled is true, the default"
    );
    assert_eq!(lookup.data("check"), "/home/config.yaml: fine, 1 setting differs from the default\n");
}

#[test]
fn check_judges_one_file_or_everything() {
    let mut lookup = ModelLookup::new(None);
    assert_eq!(lookup.data("check"), "/home/config.yaml: fine, 0 settings differ from the default\n");
    // A setting with the value of its default does not count as different.
    lookup.app.sets = vec!["compression.threshold=0.5".to_owned(), "compression.enabled=false".to_owned()];
    assert_eq!(
        lookup.data("check"),
        "/home/config.yaml: fine, 2 settings are set, 1 of them differs from the default\n"
    );
    lookup.app.sets.clear();
    lookup.app.sets.push("compression.threshold=7".to_owned());
    assert_eq!(lookup.failure("check").0, Exit::BadConfig);
    let other = lookup.folder.path().join("other.yaml");
    fs::write(&other, "model: {default: x, max_tokens: 8k}\n").unwrap();
    let line = format!("check {}", other.display());
    assert_eq!(
        lookup.data(&line),
        "/other.yaml: fine, 2 settings differ from the default\n",
        "--set does not count"
    );
    fs::write(&other, b"model: \xff\n").unwrap();
    assert_eq!(lookup.failure(&line).0, Exit::BadConfig);
    let (exit, message) =
        lookup.failure(&format!("check {}", lookup.folder.path().join("none.yaml").display()));
    assert_eq!(
        (exit, message.as_str()),
        (Exit::InputUnreadable, "error: cannot read /none.yaml\n  why: there is no such file or folder\n")
    );
}

#[test]
fn a_home_that_cannot_be_used_is_said() {
    let lookup = ModelLookup::new(None);
    fs::write(&lookup.app.home, "a file").unwrap();
    let (exit, message) = lookup.failure("set compression.threshold 0.6");
    assert_eq!(exit, Exit::BadConfig);
    assert!(message.contains("cannot read the settings in /home/config.yaml"), "{message}");

    let lookup = ModelLookup::new(None);
    fs::create_dir_all(lookup.app.config_path()).unwrap();
    assert!(lookup.failure("show").1.contains("it is a folder"));
}

#[test]
fn flags_of_a_command_come_last() {
    let mut lookup = ModelLookup::new(Some("model: {context_length: 1000}\n"));
    lookup.app.sets.push("model.context_length=2000".to_owned());
    let flags = [("--context-length", "model.context_length", "3000".to_owned())];
    let loaded = load_settings(&lookup.app, &flags).unwrap();
    assert_eq!(loaded.settings.model.context_length, Some(3000));
    assert_eq!(loaded.select("model.context_length").unwrap()[0].origin.to_string(), "--context-length");
}
