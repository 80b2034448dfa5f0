//! The tools that the gateway offers to models: those of the lossless engine for the current conversation, and search over all
//! conversations of its owner.

use std::sync::Arc;

use serde_json::Value;
use throughline_engine::{ToolAnswer, ToolOutputPolicy, ToolRequest, ToolSchema};
use throughline_gateway::{RecallFuture, RecallTools};
use throughline_lcm::{RecallToolset, RecordToolError, RecordTools};
use throughline_store::{Owner, Store};

use crate::engines::Engines;

/// The hint that tells the model how to look up compacted messages.
pub(super) const HINT: &str = "Use the tool lcm_grep to find words of any earlier message of this conversation, and lcm_expand to \
read that message by its number.";
/// The hint that tells the model how to read the omitted part of a tool result.
pub(super) const READ_SET_ASIDE: &str = "Read any lines of it with recall_artifact {\"artifact\": \"{artifact}\", \"first_line\": 1, \"count\": 200}, \
or find words in it with lcm_grep {\"query\": \"...\"}.";
/// The tools that are offered beside those of the lossless engine.
const ACROSS: [&str; 3] = ["recall_search", "recall_messages", "recall_artifact"];

/// The policy for long tool results if a model can read the omitted part.
pub(super) fn tool_output() -> ToolOutputPolicy {
    let usual = ToolOutputPolicy::default();
    let own = RecallToolset::NAMES.iter().chain(&ACROSS).map(|name| (*name).to_owned());
    let exempt = usual.exempt.into_iter().chain(own).collect();
    ToolOutputPolicy { exempt, recall: Some(READ_SET_ASIDE.to_owned()), ..ToolOutputPolicy::default() }
}

/// Returns the tools.
pub(super) fn tools(engines: Engines, store: Arc<dyn Store>) -> Arc<dyn RecallTools> {
    let schemas = schemas(engines.answers_questions());
    Arc::new(GatewayTools { engines, store, schemas })
}

/// The definitions of the tools. Some need a model that answers questions.
pub(crate) fn schemas(answers_questions: bool) -> Vec<ToolSchema> {
    let across = RecordTools::schemas().into_iter().filter(|tool| ACROSS.contains(&tool.name.as_str()));
    let across = across.map(|tool| ToolSchema { parameters: without_session(tool.parameters), ..tool });
    let within = RecallToolset::schemas().into_iter();
    let within = within.filter(|schema| answers_questions || schema.name != RecallToolset::QUESTION);
    within.chain(across).collect()
}

/// Makes the session parameter optional: the default is the model's own conversation.
fn without_session(mut parameters: Value) -> Value {
    if let Some(required) = parameters.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "session");
    }
    parameters
}

struct GatewayTools {
    engines: Engines,
    store: Arc<dyn Store>,
    schemas: Vec<ToolSchema>,
}

impl RecallTools for GatewayTools {
    fn schemas(&self) -> &[ToolSchema] {
        &self.schemas
    }

    fn call<'a>(&'a self, owner: &'a Owner, call: &'a ToolRequest) -> RecallFuture<'a> {
        Box::pin(async move {
            match self.engines.recaller(owner).call(call).await {
                Some(answer) => answer,
                None => self.across(owner, call).await,
            }
        })
    }
}

impl GatewayTools {
    async fn across(&self, owner: &Owner, call: &ToolRequest) -> ToolAnswer {
        let (store, owner, name) = (Arc::clone(&self.store), owner.clone(), call.name.clone());
        let mut arguments = call.arguments.clone();
        // A search without a session covers all conversations.
        if let Some(given) = arguments.as_object_mut()
            && name != "recall_search"
        {
            given.entry("session").or_insert_with(|| Value::from(call.session.to_string()));
        }
        let work = move || RecordTools::new(store.as_ref(), &owner).call(&name, arguments);
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(text)) => ToolAnswer { text, is_error: false },
            Ok(Err(RecordToolError::Refused(text))) => ToolAnswer { text, is_error: true },
            Ok(Err(RecordToolError::UnknownTool)) | Err(_) => {
                ToolAnswer { text: format!("there is no tool `{}`", call.name), is_error: true }
            }
        }
    }
}
