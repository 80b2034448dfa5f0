//! A managed conversation over an upstream of your own: `cargo run --example session -p throughline`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use throughline::{EngineEvent, Session, upstream_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Send the body to your provider here. This one needs no network and talks a lot.
    let upstream = upstream_fn(|_body: String| async {
        let content = "The change is in src/lib.rs, and all 42 tests pass. ".repeat(20);
        Ok((200, format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"{content}"}}}}]}}"#)))
    });
    let report = |event| {
        if let EngineEvent::CompactionCompleted { report, .. } = event {
            println!("compacted: {} -> {} tokens", report.tokens.before, report.tokens.after);
        }
    };
    let builder = Session::builder(upstream).model("local-model").window_tokens(8_192);
    let mut session = builder.on_event(report).build().await?;
    for step in 1..=30 {
        session.send(&format!("Do step {step}.")).await?;
    }
    println!("{} compactions, {} messages in view", session.compactions(), session.messages().count());
    Ok(())
}
