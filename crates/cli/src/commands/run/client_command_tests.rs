//! The command of a client, and where its requests are sent.

use super::*;

fn app(programs: &[&str], env: &[(&str, &str)]) -> (tempfile::TempDir, App) {
    let home = tempfile::tempdir().unwrap();
    let mut app = App::for_tests(home.path().join("home"));
    for program in programs {
        let path = home.path().join(program);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    app.user_home = Some(home.path().to_owned());
    app.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    app.env.push(("PATH".to_owned(), home.path().display().to_string()));
    (home, app)
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn started(command: &ClientCommand, url: Option<&str>) -> (Vec<String>, Vec<(String, String)>) {
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().join("home"));
    let process = match url {
        Some(url) => command.behind_gateway(&app, url, "r1", None).unwrap().0,
        None => command.to_process(),
    };
    let text = |text: &OsStr| text.to_str().unwrap().to_owned();
    let variables = process.get_envs().map(|(name, value)| (text(name), text(value.unwrap())));
    (process.get_args().map(text).collect(), variables.collect())
}

#[test]
fn a_client_is_pointed_at_the_gateway_and_its_arguments_stay_as_they_are() {
    let (_home, app) = app(&["claude", "codex"], &[]);
    let claude = ClientCommand::find(&words(&["claude", "-p", "two words", "--set", "x"]), &app).unwrap();
    let (arguments, variables) = started(&claude, Some("http://g/run/1"));
    assert_eq!(arguments, ["-p", "two words", "--set", "x"]);
    assert_eq!(variables, [("ANTHROPIC_BASE_URL".to_owned(), "http://g/run/1".to_owned())]);
    assert_eq!(started(&claude, None), (arguments, Vec::new()));
    let codex = ClientCommand::find(&words(&["codex", "exec"]), &app).unwrap();
    assert_eq!(started(&codex, Some("http://g")).0, ["-c", "openai_base_url=\"http://g/v1\"", "exec"]);
}

#[test]
fn any_program_gets_the_variables_that_most_sdks_read() {
    let (home, app) = app(&["agent"], &[]);
    let path = home.path().join("agent");
    for name in ["agent", path.to_str().unwrap()] {
        let agent = ClientCommand::find(&words(&[name]), &app).unwrap();
        let names: Vec<String> =
            started(&agent, Some("http://g")).1.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["ANTHROPIC_BASE_URL", "OPENAI_API_BASE", "OPENAI_BASE_URL"]);
        assert_eq!(agent.title(), "agent");
    }
}

#[test]
fn missing_program_is_named_with_advice() {
    let (_home, app) = app(&[], &[]);
    let refused = |name: &str| ClientCommand::find(&words(&[name]), &app).err().unwrap().render();
    assert!(refused("claude").contains("npm install -g @anthropic-ai/claude-code"), "{}", refused("claude"));
    assert!(refused("nothing").contains("claude, codex"), "{}", refused("nothing"));
    assert!(refused("sdk").contains("serve --show python"), "{}", refused("sdk"));
}

#[test]
fn an_address_that_is_set_already_becomes_the_upstream() {
    let (_home, app) = app(
        &["claude", "aider"],
        &[("ANTHROPIC_BASE_URL", "http://own:1/"), ("OPENAI_API_BASE", "http://o/v1")],
    );
    let upstream = |name: &str| {
        ClientCommand::find(&words(&[name]), &app).unwrap().upstream(&app).unwrap().map(|found| found.url)
    };
    assert_eq!(upstream("claude").as_deref(), Some("http://own:1"));
    assert_eq!(upstream("aider").as_deref(), Some("http://o"));
}

#[test]
fn an_address_of_a_gateway_of_ours_is_replaced() {
    let (_home, mut app) = app(&["claude"], &[]);
    let _registered = gateways::register(&app, "http://127.0.0.1:1", None, None).unwrap();
    app.env.push(("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:1/run/7".to_owned()));
    let claude = ClientCommand::find(&words(&["claude"]), &app).unwrap();
    assert_eq!(claude.upstream(&app).unwrap(), None);
}

#[test]
fn settings_that_would_be_lost_are_refused() {
    let (_home, app) = app(&["opencode"], &[("OPENCODE_CONFIG_CONTENT", "{}")]);
    let opencode = ClientCommand::find(&words(&["opencode"]), &app).unwrap();
    assert_eq!(opencode.upstream(&app).unwrap_err().exit(), Exit::BadConfig);
}

#[test]
fn a_subscription_decides_where_requests_go_unless_there_is_a_key() {
    let (home, mut app) = app(&["codex"], &[]);
    let upstream = |app: &App| {
        let codex = ClientCommand::find(&words(&["codex"]), app).unwrap();
        codex.upstream(app).unwrap().map(|found| found.url)
    };
    assert_eq!(upstream(&app), None);
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    let login = home.path().join(".codex/auth.json");
    std::fs::write(&login, r#"{"OPENAI_API_KEY": null, "tokens": {"id_token": "x"}}"#).unwrap();
    assert_eq!(upstream(&app).as_deref(), Some("https://chatgpt.com/backend-api/codex"));
    std::fs::write(&login, r#"{"OPENAI_API_KEY": "sk", "tokens": {"id_token": "x"}}"#).unwrap();
    assert_eq!(upstream(&app), None);
    std::fs::write(&login, "{").unwrap();
    assert_eq!(upstream(&app), None);
    std::fs::write(&login, r#"{"tokens": {}}"#).unwrap();
    app.env.push(("OPENAI_API_KEY".to_owned(), "sk".to_owned()));
    assert_eq!(upstream(&app), None);
}

fn variables(process: &Command) -> Vec<(String, String)> {
    let text = |text: &OsStr| text.to_str().unwrap().to_owned();
    process.get_envs().map(|(name, value)| (text(name), text(value.unwrap()))).collect()
}

#[test]
fn only_variables_that_name_the_upstream_are_replaced() {
    let (_home, app) = app(&["aider"], &[("OPENAI_API_BASE", "http://local/v1")]);
    let aider = ClientCommand::find(&words(&["aider"]), &app).unwrap();
    let earlier = aider.upstream(&app).unwrap();
    let (process, _) = aider.behind_gateway(&app, "http://g", "r1", earlier.as_ref()).unwrap();
    // Requests for Anthropic must not be sent to the local server.
    assert_eq!(variables(&process), [("OPENAI_API_BASE".to_owned(), "http://g/v1".to_owned())]);
}

#[test]
fn an_address_in_the_settings_of_the_client_becomes_the_upstream_and_is_overridden() {
    let (home, app) = app(&["claude", "hermes"], &[]);
    for (folder, file, text) in [
        (".claude", "settings.json", "{\"env\": {\"ANTHROPIC_BASE_URL\": \"http://own:1/\"}}"),
        (".hermes", "config.yaml", "model:\n  provider: custom\n  base_url: http://local:2/v1\n"),
    ] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
        std::fs::write(home.path().join(folder).join(file), text).unwrap();
    }
    let started = |name: &str| {
        let client = ClientCommand::find(&words(&[name, "x"]), &app).unwrap();
        let earlier = client.upstream(&app).unwrap();
        let (process, _) = client.behind_gateway(&app, "http://g", "r1", earlier.as_ref()).unwrap();
        let arguments: Vec<String> =
            process.get_args().map(|text| text.to_str().unwrap().to_owned()).collect();
        (earlier.unwrap().url, arguments, variables(&process))
    };
    let (upstream, arguments, _) = started("claude");
    assert_eq!(upstream, "http://own:1");
    assert_eq!(arguments, ["--settings", "{\"env\":{\"ANTHROPIC_BASE_URL\":\"http://g\"}}", "x"]);
    let (upstream, arguments, variables) = started("hermes");
    assert_eq!((upstream.as_str(), arguments), ("http://local:2", vec!["x".to_owned()]));
    assert_eq!(variables, [("CUSTOM_BASE_URL".to_owned(), "http://g/v1".to_owned())]);
}

const PROVIDERS: &str = "{\n  \"lastUsedProvider\": \"openai-compatible\",\n  \"providers\": {\n    \"openai-compatible\": {\n      \"settings\": {\n        \"model\": \"m\",\n        \"baseUrl\": \"http://local/v1\"\n      }\n    },\n    \"anthropic\": {\n      \"settings\": {\n        \"model\": \"c\"\n      }\n    }\n  }\n}";

#[test]
fn a_client_that_reads_its_address_from_a_file_alone_gets_a_copy_for_the_run() {
    let (home, app) = app(&["cline"], &[]);
    let folder = home.path().join(".cline/data/settings");
    std::fs::create_dir_all(&folder).unwrap();
    let original = folder.join("providers.json");
    std::fs::write(&original, PROVIDERS).unwrap();
    let cline = ClientCommand::find(&words(&["cline"]), &app).unwrap();
    let earlier = cline.upstream(&app).unwrap();
    assert_eq!(earlier.as_ref().map(|found| found.url.as_str()), Some("http://local"));
    let (process, copy) = cline.behind_gateway(&app, "http://g", "r1", earlier.as_ref()).unwrap();
    let copied = variables(&process).remove(0).1;
    let text = std::fs::read_to_string(&copied).unwrap();
    assert_eq!(text, PROVIDERS.replace("http://local/v1", "http://g/v1"));
    // The client saves another model.
    std::fs::write(&copied, text.replace("\"m\"", "\"n\"")).unwrap();
    copy.unwrap().finish(&app);
    assert_eq!(std::fs::read_to_string(&original).unwrap(), PROVIDERS.replace("\"m\"", "\"n\""));
    assert!(!std::path::Path::new(&copied).exists());
}

#[test]
fn a_copy_that_was_changed_is_kept_if_its_file_was_changed_too() {
    let (home, app) = app(&["cline"], &[]);
    let folder = home.path().join(".cline/data/settings");
    std::fs::create_dir_all(&folder).unwrap();
    let original = folder.join("providers.json");
    std::fs::write(&original, PROVIDERS).unwrap();
    let cline = ClientCommand::find(&words(&["cline"]), &app).unwrap();
    let earlier = cline.upstream(&app).unwrap();
    let (process, copy) = cline.behind_gateway(&app, "http://g", "r1", earlier.as_ref()).unwrap();
    let copied = variables(&process).remove(0).1;
    std::fs::write(&copied, "{}").unwrap();
    std::fs::write(&original, "{\"a\": 1}").unwrap();
    copy.unwrap().finish(&app);
    assert_eq!(std::fs::read_to_string(&original).unwrap(), "{\"a\": 1}");
    assert_eq!(std::fs::read_to_string(&copied).unwrap(), "{}");
}

#[test]
fn a_proxy_is_not_on_the_way_to_the_gateway() {
    let (_home, app) = app(&["claude"], &[("HTTPS_PROXY", "http://proxy:3128"), ("no_proxy", "intranet")]);
    let claude = ClientCommand::find(&words(&["claude"]), &app).unwrap();
    let (process, _) = claude.behind_gateway(&app, "http://127.0.0.1:1", "r1", None).unwrap();
    for name in ["NO_PROXY", "no_proxy"] {
        assert!(variables(&process).contains(&(name.to_owned(), "intranet,127.0.0.1,localhost".to_owned())));
    }
}
