//! Completions of the input line.

use super::*;

fn helper(folder: &Path) -> ChatHelper {
    ChatHelper {
        folder: folder.to_owned(),
        sessions: vec!["20261116_ab12".to_owned(), "20261115_cd34".to_owned()],
        colour: false,
        typed: Arc::default(),
    }
}

fn offered(helper: &ChatHelper, line: &str) -> (usize, Vec<String>) {
    let (start, pairs) = helper.offers(line);
    (start, pairs.into_iter().map(|pair| pair.replacement).collect())
}

#[test]
fn commands_sessions_and_files_are_completed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), "").unwrap();
    std::fs::write(folder.path().join("setup.py"), "").unwrap();
    std::fs::write(folder.path().join(".hidden"), "").unwrap();
    let helper = helper(folder.path());
    assert_eq!(
        offered(&helper, "/co"),
        (0, vec!["/compress ".to_owned(), "/context ".to_owned(), "/config ".to_owned()])
    );
    assert_eq!(offered(&helper, "/resume 20261116"), (8, vec!["20261116_ab12".to_owned()]));
    assert_eq!(offered(&helper, "look at s"), (8, vec!["setup.py".to_owned(), "src/".to_owned()]));
    assert_eq!(offered(&helper, "look at src/m"), (8, vec!["src/main.rs".to_owned()]));
    assert_eq!(offered(&helper, "see .h"), (4, vec![".hidden".to_owned()]));
    assert_eq!(offered(&helper, "nothing/here").1, Vec::<String>::new());
}

#[test]
fn backslash_at_the_end_continues_the_line_and_is_removed() {
    assert_eq!(joined("one\\\ntwo"), "one\ntwo");
    assert_eq!(joined("a \\ b"), "a \\ b");
}
