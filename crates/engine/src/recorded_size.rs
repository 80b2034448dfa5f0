//! The size of the next request of a recorded conversation, computed as for an open one: the last prompt that the provider
//! counted, and an estimate of the changes since.
//!
//! Not for: open conversations, which know their size.

use throughline_store::{Millis, Owner, Session, Store, StoreError, StoredPreamble, UsageKind};
use throughline_tokens::{Calibrator, ContentProfile, TokenModel};

use crate::context_engine::status::PendingRequest;
use crate::limits::in_use::LimitsInUse;
use crate::prompt::estimate::Estimator;
use crate::prompt::tool_list::in_prompt;
use crate::prompt::view::{RecordLocation, read_shown};
use crate::session::learnt_calibration;

impl PendingRequest {
    /// Computes the size of the next request of a session with the given model.
    pub fn of_record(
        store: &dyn Store,
        owner: &Owner,
        session: &Session,
        limits: &LimitsInUse,
        now_ms: Millis,
    ) -> Result<PendingRequest, StoreError> {
        let token_model = TokenModel::for_model(&limits.model, session.wire_format);
        let preamble = StoredPreamble::last(store, owner, session)?;
        // Summed before rounding, as for an open conversation.
        let fixed_tokens = preamble.map_or(0, |sent| {
            let mut found = ContentProfile::default();
            found += sent.system.map(|json| ContentProfile::of_system(&json)).unwrap_or_default();
            found += sent.tools.map(|json| ContentProfile::of_tools(&in_prompt(&json))).unwrap_or_default();
            token_model.estimate_content(&found)
        });
        let calls = store.calls(owner, &session.id)?;
        let mut answered =
            calls.into_iter().rev().filter(|call| call.session == session.id && call.call.error.is_none());
        // Calls outside the conversation do not record how far they sent it.
        let last = answered.find_map(|call| Some((call.call.sent_to_seq?, call.call)));
        let (mut message_tokens, mut sent_tokens, mut messages) = (0_u64, 0_u64, 0_usize);
        let mut is_sent = last.is_some();
        for item in store.view(owner, &session.id, None)? {
            let Some((place, message)) = read_shown(item) else { continue };
            let to_seq = last.as_ref().map_or(0, |(to_seq, _)| *to_seq);
            let is_later = matches!(&place, RecordLocation::Message { session: own, seq, .. } if *own == session.id && *seq >= to_seq);
            is_sent &= !is_later;
            let tokens = token_model.estimate_content(&ContentProfile::of_message(&message));
            message_tokens = message_tokens.saturating_add(tokens);
            if is_sent {
                sent_tokens = sent_tokens.saturating_add(tokens);
            }
            messages += 1;
        }
        let calibrator: Calibrator = learnt_calibration(store, &limits.scope(), now_ms)?;
        let mut estimator = Estimator::new(calibrator);
        if let Some((_, call)) = last
            && call.usage_kind == UsageKind::Measured
            && call.model == limits.model
        {
            estimator.resume(call.usage.prompt(), fixed_tokens.saturating_add(sent_tokens));
        }
        Ok(estimator.pending(fixed_tokens, message_tokens, messages))
    }
}
