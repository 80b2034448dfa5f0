//! What is read, and what is not repeated.

use super::*;

fn reader(files: &[(&str, &[u8])]) -> (tempfile::TempDir, ReadFile) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let tool = ReadFile::new(Workspace::new(folder.path()).unwrap(), OutputLimit::default());
    (folder, tool)
}

async fn call(tool: &ReadFile, arguments: Value) -> Result<ToolOutput, ToolError> {
    tool.run(&arguments, &CancellationToken::new()).await
}

#[tokio::test]
async fn lines_have_numbers_and_long_files_go_on() {
    let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let (_folder, tool) = reader(&[("a.txt", text.as_bytes())]);
    let page = call(&tool, json!({"path": "a.txt", "offset": 3, "limit": 2})).await.unwrap().text;
    assert_eq!(page, "     3\tline 3\n     4\tline 4\n[there is more: go on with offset 5]");
    let beyond = call(&tool, json!({"path": "a.txt", "offset": 31})).await.unwrap().text;
    assert_eq!(beyond, "a.txt has 30 lines, so there is nothing from line 31 on");
}

#[tokio::test]
async fn what_was_shown_is_not_shown_again_until_something_changed() {
    let (folder, tool) = reader(&[("a.txt", b"one\n")]);
    let arguments = || json!({"path": "a.txt"});
    assert!(call(&tool, arguments()).await.unwrap().text.contains("one"));
    assert!(call(&tool, arguments()).await.unwrap().text.contains("unchanged"));
    tool.view_changed();
    assert!(call(&tool, arguments()).await.unwrap().text.contains("one"));
    std::fs::write(folder.path().join("a.txt"), "one and two\n").unwrap();
    assert!(call(&tool, arguments()).await.unwrap().text.contains("two"));
}

#[tokio::test]
async fn pictures_are_pictures_and_binaries_are_refused() {
    let (_folder, tool) = reader(&[
        ("p.png", b"\x89PNG\r\n\x1a\n\0\0"),
        ("b.bin", b"ab\0cd"),
        ("e.txt", b""),
        ("l.txt", b"\xff\xfe text"),
    ]);
    let picture = call(&tool, json!({"path": "p.png"})).await.unwrap();
    assert_eq!((picture.images[0].media_type, picture.images.len()), ("image/png", 1));
    assert!(
        call(&tool, json!({"path": "b.bin"})).await.unwrap_err().to_string().contains("binary (5 bytes)")
    );
    assert_eq!(call(&tool, json!({"path": "e.txt"})).await.unwrap().text, "e.txt is empty");
    assert!(call(&tool, json!({"path": "l.txt"})).await.unwrap().text.contains("text"));
    assert!(call(&tool, json!({"path": "no"})).await.unwrap_err().to_string().contains("no such file"));
    assert!(call(&tool, json!({"path": "."})).await.unwrap().text.contains("p.png"));
}

#[tokio::test]
async fn endless_lines_and_files_are_bounded() {
    let mut text = vec![b'x'; 3_000_000];
    text.extend_from_slice(b"\nshort\n");
    let (_folder, tool) = reader(&[("one.txt", &text)]);
    let page = call(&tool, json!({"path": "one.txt"})).await.unwrap().text;
    assert!(
        page.len() < 3_000 && page.contains("[line cut]") && page.ends_with("     2\tshort\n"),
        "{}",
        page.len()
    );
}

#[tokio::test]
async fn wrong_arguments_are_reported_to_the_model() {
    let (_folder, tool) = reader(&[]);
    for (arguments, word) in [
        (json!({}), "path"),
        (json!({"path": 3}), "string"),
        (json!({"path": "a", "lines": 3}), "lines"),
        (json!([1]), "one JSON object"),
        (json!("{broken"), "not valid JSON"),
    ] {
        let told = call(&tool, arguments).await.unwrap_err().to_string();
        assert!(told.contains("`read_file`") && told.contains(word), "{told}");
    }
    assert!(
        call(&tool, json!("{\"path\": \"nothing\"}")).await.unwrap_err().to_string().contains("no such file")
    );
}
