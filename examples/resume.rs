//! A conversation that goes on later, from its record: `cargo run --example resume -p throughline`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::sync::Arc;
use throughline::{MemoryStore, Session, SessionBuilder, SessionError, SessionId, Store, upstream_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), SessionError> {
    // With the feature `sqlite`, `SqliteStore::open` keeps the record on disk.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut session = builder(&store).build().await?;
    session.send("Which port does the server use?").await?;
    let id: SessionId = session.id().clone();
    let answer = builder(&store).resume(id).build().await?.send("And the tests?").await?;
    println!("{}", answer.text());
    Ok(())
}

fn builder(store: &Arc<dyn Store>) -> SessionBuilder {
    let upstream = upstream_fn(|body: String| async move {
        let reply = format!("I was sent the first question {} time(s).", body.matches("the server").count());
        Ok((200, format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"{reply}"}}}}]}}"#)))
    });
    Session::builder(upstream).model("local-model").store(Arc::clone(store))
}
