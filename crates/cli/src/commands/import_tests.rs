//! The folders in which histories are searched.

use super::*;

#[test]
fn programs_may_keep_their_files_elsewhere() {
    let mut app = App::for_tests("/nowhere".into());
    app.user_home = Some("/home/ada".into());
    let paths = |app: &App| -> Vec<String> {
        history_locations(app).iter().map(|place| place.path.display().to_string()).collect()
    };
    assert_eq!(
        paths(&app),
        [
            "/home/ada/.claude/projects",
            "/home/ada/.codex/sessions",
            "/home/ada/.codex/archived_sessions",
            "/home/ada/.hermes/state.db"
        ]
    );
    app.env = [("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "/x"), ("HERMES_HOME", "/h")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    assert_eq!(paths(&app), ["/c/projects", "/x/sessions", "/x/archived_sessions", "/h/state.db"]);
}
