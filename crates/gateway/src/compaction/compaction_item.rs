//! Requests whose client replaced the beginning of the conversation by a compaction item of this gateway.
//!
//! The messages before the item are those the client chose to keep. Most of them are older than the item, and the view
//! already has them in some form. Those that the conversation does not have are new, and are inserted after the item.

use std::collections::HashSet;

use throughline_store::{SessionId, StoreError};
use throughline_transcript::{Message, RawJson, SharedText, decode_message};

use crate::blocking::blocking;
use crate::compaction::seal::SEALED_BY_US;
use crate::error::GatewayError;
use crate::lookup::message_key::{MessageIdentity, MessageKey, identity_of};
use crate::proxy::managed_request::ManagedRequest;
use crate::tenant::Tenant;

/// The type of an item that replaces compacted messages.
pub(crate) const COMPACTION: &str = "compaction";
/// The name of the type in some versions of the wire format.
const COMPACTION_SUMMARY: &str = "compaction_summary";

/// The messages that a client has replaced by a compaction item.
pub(crate) struct CompactedPrefix {
    pub(crate) conversation: SessionId,
    /// The number of messages of the conversation that the item replaces.
    pub(crate) messages: usize,
    /// The messages before the item.
    pub(crate) kept: Vec<Message>,
}

/// The conversation in a client's request.
pub(crate) struct ExpandedHistory {
    /// The messages after the compaction item, or all messages if there is none.
    pub(crate) messages: Vec<Message>,
    /// The part that the item replaces, if there is an item and the record has the conversation.
    pub(crate) after: Option<CompactedPrefix>,
}

/// An item that replaces compacted messages.
pub(crate) struct CompactionItem {
    /// Its index in the list.
    at: usize,
    sealed: String,
}

/// Finds the last item among the messages that a gateway has sealed.
pub(crate) fn last_compaction_item(messages: &[Message]) -> Option<CompactionItem> {
    messages.iter().enumerate().rev().find_map(|(at, message)| {
        let sealed = sealed_in(message).filter(|sealed| sealed.starts_with(SEALED_BY_US))?;
        Some(CompactionItem { at, sealed })
    })
}

/// Refuses new messages with compaction items: this gateway did not seal them, and no upstream returned them in this conversation.
pub(crate) fn refuse_foreign(new: &[Message]) -> Result<(), GatewayError> {
    match new.iter().any(is_compaction) {
        true => Err(not_ours()),
        false => Ok(()),
    }
}

fn not_ours() -> GatewayError {
    GatewayError::bad_request(
        "the compaction item was not made by this gateway for you, or was changed; \
         start a new conversation, or go back to before it",
    )
}

fn is_compaction(message: &Message) -> bool {
    // A cheap check first: most messages are long and not compaction items.
    if !message.json().contains("\"compaction") {
        return false;
    }
    let kind = RawJson(message.json()).get("type").and_then(RawJson::as_text);
    kind.is_some_and(|kind| kind == COMPACTION || kind == COMPACTION_SUMMARY)
}

fn sealed_in(message: &Message) -> Option<String> {
    if !is_compaction(message) {
        return None;
    }
    Some(RawJson(message.json()).get("encrypted_content")?.as_text()?.into_owned())
}

/// Returns the messages that are not among the keys of a conversation.
pub(crate) fn messages_not_in(messages: &[Message], said: &[MessageKey]) -> Vec<Message> {
    let said: HashSet<MessageIdentity> = said.iter().filter_map(|key| key.identity).collect();
    let is_new = |message: &&Message| {
        !is_compaction(message) && identity_of(message).is_some_and(|identity| !said.contains(&identity))
    };
    messages.iter().filter(is_new).cloned().collect()
}

impl Tenant {
    /// Opens the compaction item of a request and returns the history it stands in for.
    pub(crate) async fn expand_item(
        &self,
        turn: &ManagedRequest,
        item: CompactionItem,
    ) -> Result<ExpandedHistory, GatewayError> {
        let sealed = self.setup.seal_key.open(&self.setup.owner, &item.sealed).ok_or_else(not_ours)?;
        let messages = turn.request.messages();
        let (kept, rest) = messages.split_at(item.at.min(messages.len()));
        let rest = rest.get(1..).unwrap_or_default();
        let (store, owner, id) =
            (self.setup.store.clone(), self.setup.owner.clone(), sealed.conversation.clone());
        match blocking(move || store.session(&owner, &id)).await {
            Ok(_) => Ok(ExpandedHistory {
                messages: rest.to_vec(),
                after: Some(CompactedPrefix {
                    conversation: sealed.conversation,
                    messages: sealed.messages,
                    kept: kept.to_vec(),
                }),
            }),
            // The record does not have the conversation; the summary in the item is all that is left of it.
            Err(StoreError::UnknownSession { .. }) => {
                let summary = sealed.summary.into_iter().map(SharedText::new).filter_map(decode_message);
                Ok(ExpandedHistory {
                    messages: kept.iter().cloned().chain(summary).chain(rest.iter().cloned()).collect(),
                    after: None,
                })
            }
            Err(error) => Err(self.record_failed(&error)),
        }
    }
}
