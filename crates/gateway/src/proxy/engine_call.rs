//! Runs a managed call in the engine, and updates the keys by which later requests find the conversation.

use throughline_engine::{CallInput, ManagedSession};
use tokio::sync::OwnedMutexGuard;

use crate::lookup::message_key::MessageKey;
use crate::lookup::open_session::history_keys;
use crate::lookup::session_pool::SessionSlot;
use crate::proxy::response_stream::CallResult;
use crate::recall::{RecallConfig, RecallLoop, RoundDelivery, ToolRounds};
use crate::tenant::Tenant;

impl Tenant {
    /// Makes the call, with rounds for recall tools if they are offered, and then updates the keys of the slot.
    pub(super) async fn call(
        &self,
        slot: &SessionSlot,
        mut session: OwnedMutexGuard<ManagedSession>,
        input: CallInput,
        mut keys: Vec<MessageKey>,
        recall: Option<(&RecallConfig, Option<ToolRounds>)>,
    ) -> CallResult {
        let result = match recall {
            Some((recall, tools)) => {
                let rounds = RecallLoop { recall, gateway: self, passing: RoundDelivery::Spliced, tools };
                Box::pin(rounds.call(&mut session, input, &mut keys)).await
            }
            None => {
                let result = session.call(input).await;
                let answered = result.iter().flat_map(|outcome| &outcome.answer.messages);
                keys.extend(answered.map(MessageKey::of));
                result
            }
        };
        self.follow(slot, &session);
        match &result {
            Ok(_) => slot.set_history_keys(history_keys(&session, keys)),
            // The keys are read from the record, which knows how much of the conversation was stored.
            Err(_) => {
                if let Ok(history_keys) = self.read_history_keys(&session).await {
                    slot.set_history_keys(history_keys);
                }
            }
        }
        result
    }
}
