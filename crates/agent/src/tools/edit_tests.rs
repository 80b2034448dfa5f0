//! Files are replaced as a whole or not at all, and errors tell the model what to do.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::patch::Patch;
use super::write_file::WriteFile;
use crate::tool::{Effect, Tool, ToolError};
use crate::workspace::Workspace;

async fn call(tool: &dyn Tool, arguments: Value) -> Result<String, ToolError> {
    tool.run(&arguments, &CancellationToken::new()).await.map(|output| output.text)
}

#[tokio::test]
async fn a_piece_is_replaced_where_it_stands_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rs");
    std::fs::write(&path, "fn one() {}\nfn two() {}\n    fn three() {}\n").unwrap();
    let tool = Patch::new(Workspace::new(folder.path()).unwrap());
    let edit = |old: &str, new: &str| json!({"path": "a.rs", "old_text": old, "new_text": new});
    assert_eq!(call(&tool, edit("fn two", "fn second")).await.unwrap(), "changed a.rs in 1 place");
    let several = call(&tool, edit("fn ", "pub fn ")).await.unwrap_err().to_string();
    assert!(several.contains("3 times (lines 1, 2, 3)") && several.contains("replace_all"), "{several}");
    let near = call(&tool, edit("fn  three() {}", "x")).await.unwrap_err().to_string();
    assert!(near.contains("line 3"), "{near}");
    assert!(call(&tool, edit("absent", "x")).await.unwrap_err().to_string().contains("is not in a.rs"));
    assert!(call(&tool, edit("", "x")).await.unwrap_err().to_string().contains("empty"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "fn one() {}\nfn second() {}\n    fn three() {}\n");
    let all = json!({"path": "a.rs", "old_text": "fn ", "new_text": "pub fn ", "replace_all": true});
    assert_eq!(call(&tool, all).await.unwrap(), "changed a.rs in 3 places");
}

#[tokio::test]
async fn changes_are_shown_before_they_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let tool = WriteFile::new(Workspace::new(folder.path()).unwrap());
    let arguments = json!({"path": "new/b.txt", "content": "hello\n"});
    let proposal = tool.propose(&arguments).unwrap();
    let [Effect::Writes { inside: true, difference, .. }] = proposal.effects.as_slice() else {
        panic!("{proposal:?}");
    };
    assert!(difference.contains("+hello"), "{difference}");
    assert!(!folder.path().join("new").exists(), "a proposal changes nothing");
    assert_eq!(call(&tool, arguments).await.unwrap(), "wrote new/b.txt (1 line, 6 bytes)");
    assert_eq!(std::fs::read_to_string(folder.path().join("new/b.txt")).unwrap(), "hello\n");
    let outside = tool.propose(&json!({"path": "../../x", "content": ""})).unwrap();
    assert!(matches!(outside.effects.as_slice(), [Effect::Writes { inside: false, .. }]));
    assert!(
        call(&tool, json!({"path": "new", "content": "x"}))
            .await
            .unwrap_err()
            .to_string()
            .contains("is not a file")
    );
}
