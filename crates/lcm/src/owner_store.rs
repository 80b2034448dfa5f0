//! The store in the form that a compaction uses: for one owner, on threads that may block.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_store::{
    MessageRun, Millis, NewNode, Owner, Result as StoreResult, SessionId, Store, StoreError, Summary,
    SummaryId,
};

/// The destination of new nodes.
#[derive(Clone)]
pub(crate) enum NodeTarget {
    /// Into the record.
    Record,
    /// None: nodes of a preview are only numbered, from this counter.
    Preview(Arc<AtomicU64>),
}

impl NodeTarget {
    /// The first id of a preview's nodes, so that they differ from those in the record.
    const FIRST_OF_PREVIEW: u64 = 1_000_000;

    pub(crate) fn preview() -> Self {
        Self::Preview(Arc::new(AtomicU64::new(Self::FIRST_OF_PREVIEW)))
    }

    /// Stores a node, or only numbers it.
    pub(crate) fn put(
        &self,
        store: &dyn Store,
        owner: &Owner,
        session: &SessionId,
        node: NewNode,
        now_ms: Millis,
    ) -> StoreResult<SummaryId> {
        match self {
            Self::Record => store.put_node(owner, session, node, now_ms),
            Self::Preview(next) => Ok(SummaryId(next.fetch_add(1, Ordering::Relaxed))),
        }
    }
}

/// A record accessed for one owner, on threads that may block.
#[derive(Clone)]
pub(crate) struct OwnerStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) owner: Owner,
    /// The destination of a compaction's nodes.
    pub(crate) nodes: NodeTarget,
}

impl OwnerStore {
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Store, &Owner) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let Self { store, owner, .. } = self.clone();
        let asked = tokio::task::spawn_blocking(move || question(store.as_ref(), &owner)).await;
        asked.unwrap_or_else(|error| {
            Err(StoreError::Database { what: "asking the record", source: error.to_string().into() })
        })
    }
}

/// Returns the nodes of a summary, with their text; the summary itself if it has none, or if they are damaged.
pub(crate) fn top_nodes(store: &dyn Store, owner: &Owner, id: SummaryId) -> StoreResult<Vec<Summary>> {
    let summary = store.summary(owner, id)?;
    let top = summary.top_nodes();
    if top.is_empty() {
        return Ok(vec![summary]);
    }
    let mut nodes = Vec::with_capacity(top.len());
    for id in top {
        match store.summary(owner, id) {
            Ok(node) => nodes.push(node),
            Err(StoreError::UnknownSummary { .. }) => return Ok(vec![summary]),
            Err(error) => return Err(error),
        }
    }
    Ok(nodes)
}

/// Returns the times of the first and the last message in runs.
pub(crate) fn times(
    store: &dyn Store,
    owner: &Owner,
    runs: &[MessageRun],
) -> StoreResult<(Option<Millis>, Option<Millis>)> {
    let at = |run: Option<&MessageRun>, seq: fn(&MessageRun) -> u64| -> StoreResult<Option<Millis>> {
        let Some(run) = run else { return Ok(None) };
        let first_seq = seq(run);
        let one = MessageRun { session: run.session.clone(), first_seq, end_seq: first_seq + 1 };
        Ok(store.messages_of_run(owner, &one)?.first().map(|message| message.at_ms))
    };
    let first = at(runs.first(), |run| run.first_seq)?;
    let last = at(runs.last(), |run| run.end_seq.saturating_sub(1))?;
    Ok((first, last))
}
