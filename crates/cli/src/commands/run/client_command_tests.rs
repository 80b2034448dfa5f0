//! What is started for a client, and where its requests go.

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
    let process = command.to_process(url);
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
fn what_is_not_there_is_named_with_what_to_do() {
    let (_home, app) = app(&[], &[]);
    let refused = |name: &str| ClientCommand::find(&words(&[name]), &app).err().unwrap().render();
    assert!(refused("claude").contains("npm install -g @anthropic-ai/claude-code"), "{}", refused("claude"));
    assert!(refused("nothing").contains("claude, codex"), "{}", refused("nothing"));
    assert!(refused("cline").contains("serve --show cline"), "{}", refused("cline"));
}

#[test]
fn an_address_that_is_set_already_becomes_the_upstream() {
    let (_home, app) = app(
        &["claude", "aider"],
        &[("ANTHROPIC_BASE_URL", "http://own:1/"), ("OPENAI_API_BASE", "http://o/v1")],
    );
    let upstream = |name: &str| ClientCommand::find(&words(&[name]), &app).unwrap().upstream(&app).unwrap();
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
    let upstream = |app: &App| ClientCommand::find(&words(&["codex"]), app).unwrap().upstream(app).unwrap();
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
