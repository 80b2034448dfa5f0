//! What is found, and what is left out.

use super::*;

async fn found(files: &[(&str, &str)], arguments: Value) -> Result<String, ToolError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tool = SearchFiles::new(Workspace::new(folder.path()).unwrap());
    tool.run(&arguments, &CancellationToken::new()).await.map(|output| output.text)
}

const FILES: &[(&str, &str)] = &[
    (".gitignore", "target\n"),
    ("src/main.rs", "fn main() {\n    greet();\n}\n"),
    ("src/lib.rs", "pub fn greet() {}\n"),
    ("target/x.rs", "greet\n"),
    ("notes/Ü.md", "greet the world\n"),
    ("b.bin", "greet\0greet"),
];

#[tokio::test]
async fn content_is_found_where_git_does_not_ignore_it() {
    assert_eq!(
        found(FILES, json!({"pattern": "greet\\("})).await.unwrap(),
        "src/lib.rs:1:pub fn greet() {}\nsrc/main.rs:2:    greet();"
    );
    let limited = found(FILES, json!({"pattern": "greet", "limit": 1})).await.unwrap();
    assert!(limited.starts_with("notes/Ü.md:1:greet the world\n[the first 1 hit;"), "{limited}");
    assert_eq!(
        found(FILES, json!({"pattern": "greet", "glob": "*.md"})).await.unwrap(),
        "notes/Ü.md:1:greet the world"
    );
    assert!(found(FILES, json!({"pattern": "absent"})).await.unwrap().starts_with("nothing found in"));
}

#[tokio::test]
async fn names_are_found_by_globs() {
    let names = found(FILES, json!({"pattern": "*.rs", "target": "names"})).await.unwrap();
    assert_eq!(names, "src/lib.rs\nsrc/main.rs");
}

#[tokio::test]
async fn bad_patterns_are_reported_to_the_model() {
    let told = found(FILES, json!({"pattern": "("})).await.unwrap_err().to_string();
    assert!(told.contains("regular expression"), "{told}");
}
