//! Records the calls of another program, each once.

use std::collections::HashMap;

use throughline_tokens::{Catalogue, Cost, PricedCall, Usage};

use crate::call::{NewCall, PreambleId};
use crate::error::{Result, StoreError};
use crate::ids::{Owner, SessionId};
use crate::sessions::session::{LinkKind, Session};
use crate::store::Store;

use super::conversation::{ForeignCall, ForeignConversation};

/// The usage already recorded, by key.
type BookedUsage = HashMap<String, Usage>;

/// Records each call for the session whose view was sent, unless it is recorded for this conversation or the one it branched from. Returns
/// how many were new.
pub(super) fn book_calls(
    store: &dyn Store,
    owner: &Owner,
    foreign: &ForeignConversation,
    chain: &[Session],
    preamble: Option<&PreambleId>,
    catalogue: &Catalogue,
) -> Result<u64> {
    let Some(first) = chain.first().filter(|_| !foreign.calls.is_empty()) else { return Ok(0) };
    let mut booked = calls_booked(store, owner, &first.id)?;
    if let Some(link) = first.link.as_ref().filter(|link| link.kind == LinkKind::Branch) {
        match calls_booked(store, owner, &link.parent) {
            Ok(of_parent) => booked.extend(of_parent),
            // The conversation it branched from may have been deleted.
            Err(StoreError::UnknownSession { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    let mut by_member: Vec<(&SessionId, Vec<NewCall>)> =
        chain.iter().map(|member| (&member.id, Vec::new())).collect();
    for call in &foreign.calls {
        let Some(call) = unbooked(call, &booked) else { continue };
        let place = call.booked_at.map_or(0, |message| message as u64);
        let member = chain.iter().rposition(|member| member.first_seq <= place).unwrap_or(0);
        if let Some((_, calls)) = by_member.get_mut(member) {
            calls.push(new_call(&call, preamble, catalogue));
        }
    }
    let mut added = 0;
    for (member, calls) in by_member.into_iter().filter(|(_, calls)| !calls.is_empty()) {
        added += store.record_calls(owner, member, calls)?;
    }
    Ok(added)
}

fn calls_booked(store: &dyn Store, owner: &Owner, id: &SessionId) -> Result<BookedUsage> {
    let calls = store.calls(owner, id)?;
    Ok(calls.into_iter().filter_map(|call| Some((call.call.key?, call.call.usage))).collect())
}

/// Returns the call to record; `None` if it is recorded already. Of a sum that grew, returns the difference.
fn unbooked(call: &ForeignCall, booked: &BookedUsage) -> Option<ForeignCall> {
    if call.sum_of_calls.is_none() {
        return (!booked.contains_key(&call.key)).then(|| call.clone());
    }
    let parts = format!("{}@", call.key);
    let so_far: Usage =
        booked.iter().filter(|(key, _)| key.starts_with(&parts)).map(|(_, usage)| *usage).sum();
    let usage = Usage {
        input: call.usage.input.saturating_sub(so_far.input),
        output: call.usage.output.saturating_sub(so_far.output),
        cache_read: call.usage.cache_read.saturating_sub(so_far.cache_read),
        cache_write: call.usage.cache_write.saturating_sub(so_far.cache_write),
        reasoning: call.usage.reasoning.saturating_sub(so_far.reasoning),
    };
    if usage.total() == 0 {
        return None;
    }
    let is_first = so_far == Usage::default();
    Some(ForeignCall {
        key: format!("{parts}{}", call.usage.total()),
        usage,
        // Amounts apply to the whole; a part has only a computed price.
        cost_micro_usd: call.cost_micro_usd.filter(|_| is_first),
        reckoned_micro_usd: call.reckoned_micro_usd.filter(|_| is_first),
        ..call.clone()
    })
}

fn new_call(call: &ForeignCall, preamble: Option<&PreambleId>, catalogue: &Catalogue) -> NewCall {
    let priced = price(call, catalogue);
    NewCall {
        key: Some(call.key.clone()),
        model: call.model.clone(),
        provider: call.provider.clone(),
        task: call.task.clone(),
        usage: call.usage,
        usage_kind: call.usage_kind,
        usage_raw: call.usage_raw.clone(),
        cost_micro_usd: call.cost_micro_usd.or(priced.micro_usd).or(call.reckoned_micro_usd),
        uncached_micro_usd: priced.uncached_micro_usd,
        at_ms: call.at_ms,
        preamble: preamble.cloned(),
        sent_to_seq: call.answer.map(|message| message as u64),
        ..NewCall::default()
    }
}

/// Returns the price by the catalogue. A sum is priced as if all of its calls were equal, because prices depend on the size of a single
/// prompt.
fn price(call: &ForeignCall, catalogue: &Catalogue) -> Cost {
    let calls = call.sum_of_calls.unwrap_or(1).max(1);
    let each = |tokens: u64| tokens / calls;
    let Usage { input, output, cache_read, cache_write, reasoning } = call.usage;
    let alike = Usage {
        input: each(input),
        output: each(output),
        cache_read: each(cache_read),
        cache_write: each(cache_write),
        reasoning: each(reasoning),
    };
    let priced = |usage: Usage, cache_write_1h: u64| {
        catalogue.cost(&PricedCall {
            model: &call.model,
            provider: &call.provider,
            at_ms: call.at_ms,
            usage,
            cache_write_1h,
        })
    };
    if calls == 1 {
        return priced(call.usage, call.cache_write_1h);
    }
    let one = priced(alike, each(call.cache_write_1h));
    let all = |amount: Option<u64>| amount.map(|amount| amount.saturating_mul(calls));
    Cost { micro_usd: all(one.micro_usd), uncached_micro_usd: all(one.uncached_micro_usd), ..one }
}
