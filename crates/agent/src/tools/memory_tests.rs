//! Notes are added, changed and limited.

use super::*;

#[tokio::test]
async fn notes_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let files = MemoryFiles::new(&folder.path().join("memory"));
    let tool = MemoryTool::new(files.clone());
    let cancel = CancellationToken::new();
    let call = async |arguments: Value| tool.run(&arguments, &cancel).await.map(|output| output.text);
    call(json!({"action": "add", "file": "memory", "text": "tests run  with\ncargo test"})).await.unwrap();
    call(json!({"action": "add", "file": "user", "text": "likes short answers"})).await.unwrap();
    assert_eq!(files.memory().unwrap(), "- tests run with cargo test\n");
    assert_eq!(files.user().unwrap(), "- likes short answers\n");
    let again = call(json!({"action": "add", "file": "user", "text": "likes short answers"})).await;
    assert!(again.unwrap_err().to_string().contains("already"));
    call(json!({"action": "replace", "file": "user", "old": "short", "text": "likes long answers"}))
        .await
        .unwrap();
    assert_eq!(files.user().unwrap(), "- likes long answers\n");
    let missing = call(json!({"action": "remove", "file": "user", "old": "tea"})).await.unwrap_err();
    assert!(missing.to_string().contains("no entry"));
    let large = "x".repeat(MEMORY_CHARS);
    let refused = call(json!({"action": "add", "file": "memory", "text": large})).await.unwrap_err();
    assert!(refused.to_string().contains("2200 at most") && refused.to_string().contains("cargo test"));
    call(json!({"action": "remove", "file": "memory", "old": "cargo"})).await.unwrap();
    assert_eq!(files.memory().unwrap(), "");
}
