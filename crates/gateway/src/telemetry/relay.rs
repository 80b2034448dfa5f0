//! Exchanges live events between gateways on one record: sends local events to the other gateways, and delivers their events to local
//! subscribers.
//!
//! Events are written in batches and read about once a second, so a subscriber receives an event of another gateway about a second and a
//! half later; if gateways are notified of events (`store.direct_url`), a few hundredths of a second later. Events are for display only:
//! no decision depends on them, and they are deleted after a minute.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use throughline_store::{FleetEvent, FleetPosition, FleetStore};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;

use crate::blocking::blocking;
use crate::shared::Shared;
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::event_feed::{FeedEntry, FeedEvent};

/// How long events are collected before they are written, without notifications.
const COLLECT: Duration = Duration::from_millis(400);
/// How long events are collected if other gateways are notified of them.
const COLLECT_NOTIFIED: Duration = Duration::from_millis(20);
/// The most events in a batch.
const MOST_AT_ONCE: usize = 1_024;
/// How often events of other gateways are read while there are subscribers.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Waits before the attempts to read an announced event: it can be read once every earlier transaction has ended.
const READ_AGAIN: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(20), Duration::from_millis(80), Duration::from_millis(300)];

/// Exchanges live events with the other gateways on the record until the gateway stops.
pub(crate) fn join(
    shared: &Arc<Shared>,
    fleet: &Arc<dyn FleetStore>,
    name: &str,
    events: Option<Arc<Notify>>,
) {
    let Some(receiver) = shared.outbox.open() else { return };
    let collect = if events.is_some() { COLLECT_NOTIFIED } else { COLLECT };
    tokio::spawn(write(Arc::clone(shared), Arc::clone(fleet), name.to_owned(), receiver, collect));
    tokio::spawn(read(Arc::clone(shared), Arc::clone(fleet), name.to_owned(), events));
}

async fn write(
    shared: Arc<Shared>,
    fleet: Arc<dyn FleetStore>,
    name: String,
    mut receiver: Receiver<FleetEvent>,
    collect: Duration,
) {
    let mut failed = false;
    loop {
        let mut events = Vec::new();
        tokio::select! {
            () = shared.closing.cancelled() => return,
            received = receiver.recv_many(&mut events, MOST_AT_ONCE) => if received == 0 { return },
        }
        tokio::time::sleep(collect).await;
        while let Ok(event) = receiver.try_recv() {
            events.push(event);
        }
        let lost = shared.outbox.take_lost();
        if lost > 0 {
            warn(&shared, format!("{lost} live events were not sent to other gateways: there were too many"));
        }
        if shared.gateways.load(Ordering::Relaxed) < 2 {
            continue;
        }
        let (fleet, name) = (Arc::clone(&fleet), name.clone());
        let written = blocking(move || fleet.publish_events(&name, &events)).await;
        // A repeated failure is reported once.
        match written {
            Ok(()) => failed = false,
            Err(error) if !failed => {
                failed = true;
                warn(&shared, format!("live events cannot be sent to other gateways: {error}"));
            }
            Err(_) => {}
        }
    }
}

async fn read(shared: Arc<Shared>, fleet: Arc<dyn FleetStore>, name: String, notified: Option<Arc<Notify>>) {
    let mut position: Option<FleetPosition> = None;
    loop {
        let attempts: &[Duration] = tokio::select! {
            () = shared.closing.cancelled() => return,
            () = tokio::time::sleep(READ_EVERY) => &[Duration::ZERO],
            () = notification(notified.as_deref()) => &READ_AGAIN,
        };
        for wait in attempts {
            tokio::time::sleep(*wait).await;
            if !shared.is_listened_to() {
                position = None;
                break;
            }
            let (fleet, name) = (Arc::clone(&fleet), name.clone());
            let Ok((events, next)) = blocking(move || fleet.events_since(&name, position)).await else {
                break;
            };
            position = Some(next);
            if pass_on(&shared, events) > 0 {
                break;
            }
        }
    }
}

/// Waits for a notification; forever if there are none.
async fn notification(notified: Option<&Notify>) {
    match notified {
        Some(notified) => notified.notified().await,
        None => std::future::pending().await,
    }
}

/// Delivers events of other gateways to subscribers. Returns the number of events.
fn pass_on(shared: &Shared, events: Vec<FleetEvent>) -> usize {
    let count = events.len();
    for FleetEvent { owner, at_ms, body } in events {
        if let Ok(value) = serde_json::from_str::<Value>(&body) {
            shared.tell_listeners(&owner, FeedEntry { at_ms, event: FeedEvent::Elsewhere(value) });
        }
    }
    count
}

fn warn(shared: &Shared, text: String) {
    shared.tell(GatewayEvent::Warning(text));
}
