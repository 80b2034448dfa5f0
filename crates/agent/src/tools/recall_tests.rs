//! Earlier messages are found and read unchanged.

use throughline_store::{IdLength, NewArtifact, NewMessage, NewSession, Origin, SqliteStore};
use throughline_transcript::{WireFormat, decode_message_text};

use super::*;

fn recall(texts: &[&str]) -> Recall {
    let store = SqliteStore::in_memory().unwrap();
    let owner = Owner::default();
    let id = SessionId::new(1_000, 7, IdLength::Local);
    let new = NewSession {
        id: id.clone(),
        owner: owner.clone(),
        link: None,
        started_ms: 1_000,
        model: None,
        title: None,
        origin: Origin { program: "test".to_owned(), ..Origin::default() },
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
    let message = |text: &&str| NewMessage {
        message: decode_message_text(json!({"role": "user", "content": text}).to_string()).unwrap(),
        tokens: 5,
        at_ms: 1_000,
        tools: Vec::new(),
        rendition: None,
    };
    store.append(&owner, &id, texts.iter().map(message).collect()).unwrap();
    let text: String = (1..=300).map(|n| format!("row {n}\n")).collect();
    store
        .put_artifact(&owner, NewArtifact { session: &id, text: &text, label: "terminal", at_ms: 1_000 })
        .unwrap();
    Recall::new(Arc::new(store), owner, id, OutputLimit::default())
}

async fn call(tool: &Recall, arguments: Value) -> Result<String, ToolError> {
    tool.run(&arguments, &CancellationToken::new()).await.map(|output| output.text)
}

#[tokio::test]
async fn words_are_found_and_messages_read_as_they_were() {
    let tool = recall(&["the port is 8790", "use the blue one"]);
    let found = call(&tool, json!({"query": "port"})).await.unwrap();
    assert!(found.contains("the port is 8790") && found.starts_with("message "), "{found}");
    let number: u64 = found.split_whitespace().nth(1).unwrap().parse().unwrap();
    let read = call(&tool, json!({"message": number, "count": 2})).await.unwrap();
    assert!(
        read.contains(r#"{"role":"user","content":"the port is 8790"}"#) && read.contains("blue"),
        "{read}"
    );
    assert!(call(&tool, json!({"query": "absent"})).await.unwrap().contains("nothing was found"));
    assert!(call(&tool, json!({"message": 999})).await.unwrap_err().to_string().contains("no message 999"));
}

#[tokio::test]
async fn artifacts_are_read_by_lines_and_bytes() {
    let tool = recall(&[]);
    let id = tool.store.artifacts(&tool.owner, &tool.session).unwrap()[0].id.clone();
    let arguments = json!({"artifact": &id.as_str()[..12], "first_line": 299, "count": 5});
    assert_eq!(call(&tool, arguments).await.unwrap(), "row 299\nrow 300\n");
    let name = &id.as_str()[..12];
    assert_eq!(
        call(&tool, json!({"artifact": name, "first_byte": 2, "count": 9})).await.unwrap(),
        "w 1\nrow 2"
    );
    let both = call(&tool, json!({"artifact": name, "first_byte": 2, "first_line": 1})).await.unwrap_err();
    assert!(both.to_string().contains("either"), "{both}");
    assert!(call(&tool, json!({"artifact": "zzz"})).await.unwrap_err().to_string().contains("no artifact"));
    assert!(
        call(&tool, json!({"query": "a", "message": 1})).await.unwrap_err().to_string().contains("one of")
    );
}
