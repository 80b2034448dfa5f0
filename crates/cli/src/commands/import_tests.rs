//! Tests of where histories are looked for.

use super::*;

#[test]
fn programs_may_keep_their_files_elsewhere() {
    let mut context = Context::for_tests("/nowhere".into());
    context.user_home = Some("/home/ada".into());
    let paths = |context: &Context| -> Vec<String> {
        places(context).iter().map(|place| place.path.display().to_string()).collect()
    };
    assert_eq!(
        paths(&context),
        [
            "/home/ada/.claude/projects",
            "/home/ada/.codex/sessions",
            "/home/ada/.codex/archived_sessions",
            "/home/ada/.hermes/state.db"
        ]
    );
    context.env = [("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "/x"), ("HERMES_HOME", "/h")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    assert_eq!(paths(&context), ["/c/projects", "/x/sessions", "/x/archived_sessions", "/h/state.db"]);
}
