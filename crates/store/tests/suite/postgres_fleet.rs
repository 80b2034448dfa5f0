//! What several gateways share on a server: texts with a version, events, and who is there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use throughline_store::{
    FleetEvent, FleetPosition, FleetStore, FleetText, Holder, LockRequest, Owner, PostgresStore, Store,
};

use crate::postgres_copy::database;

/// Two gateways on one empty record.
fn two() -> Option<[PostgresStore; 2]> {
    let url = database()?;
    Some([PostgresStore::open(&url, 4).unwrap(), PostgresStore::open(&url, 4).unwrap()])
}

fn event(owner: &str, at_ms: i64, body: &str) -> FleetEvent {
    FleetEvent { owner: Owner::new(owner), at_ms, body: body.to_owned() }
}

#[test]
fn a_shared_text_is_replaced_only_at_the_version_its_writer_knows() {
    let Some([one, two]) = two() else { return };
    assert_eq!(one.fleet_text("tokens").unwrap(), None);
    assert_eq!(one.fleet_text_version("tokens").unwrap(), None);
    assert!(one.replace_fleet_text("tokens", None, Some("first")).unwrap());
    assert!(!two.replace_fleet_text("tokens", None, Some("second")).unwrap(), "there is one already");
    let FleetText { version, body } = two.fleet_text("tokens").unwrap().unwrap();
    assert_eq!(body, "first");
    assert!(two.replace_fleet_text("tokens", Some(version), Some("second")).unwrap());
    assert!(
        !one.replace_fleet_text("tokens", Some(version), Some("third")).unwrap(),
        "it is another version"
    );
    let now = one.fleet_text("tokens").unwrap().unwrap();
    assert!(now.version > version && now.body == "second", "{now:?}");
    assert!(!one.replace_fleet_text("tokens", Some(version), None).unwrap());
    assert!(one.replace_fleet_text("tokens", Some(now.version), None).unwrap());
    assert_eq!(two.fleet_text_version("tokens").unwrap(), None);
    // Made anew, it has no version it ever had.
    assert!(one.replace_fleet_text("tokens", None, Some("again")).unwrap());
    assert!(two.fleet_text_version("tokens").unwrap().unwrap() > now.version);
}

#[test]
fn of_many_who_change_a_shared_text_at_once_nobody_is_lost() {
    let Some([one, two]) = two() else { return };
    std::thread::scope(|scope| {
        for store in [&one, &two, &one, &two] {
            scope.spawn(move || {
                for _ in 0..10 {
                    loop {
                        let text = store.fleet_text("count").unwrap();
                        let count: u64 = text.as_ref().map_or(0, |text| text.body.parse().unwrap());
                        let version = text.map(|text| text.version);
                        if store.replace_fleet_text("count", version, Some(&(count + 1).to_string())).unwrap()
                        {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(one.fleet_text("count").unwrap().unwrap().body, "40");
}

#[test]
fn events_of_other_gateways_are_read_once_and_in_order() {
    let Some([one, two]) = two() else { return };
    one.publish_events("one", &[event("ann", 1, "before anyone listened")]).unwrap();
    // Another transaction of the server, such as its own housekeeping, may hold the position back for a moment.
    while two.events_since("two", Some(FleetPosition(0))).unwrap().0.is_empty() {}
    let (none, mut at) = two.events_since("two", None).unwrap();
    assert!(none.is_empty());
    let sent: Vec<FleetEvent> = (0..5).map(|n| event("ann", 1_000 + n, &format!("{{\"n\":{n}}}"))).collect();
    one.publish_events("one", &sent[..2]).unwrap();
    two.publish_events("two", &[event("ann", 9, "its own")]).unwrap();
    one.publish_events("one", &sent[2..]).unwrap();
    let mut heard = Vec::new();
    while heard.len() < sent.len() {
        let (events, next) = two.events_since("two", Some(at)).unwrap();
        heard.extend(events);
        at = next;
    }
    assert_eq!(heard, sent);
    let (again, _) = two.events_since("two", Some(at)).unwrap();
    assert!(again.is_empty(), "{again:?}");
    // A position of before is heard again: nothing depends on who else listens.
    let (all, _) = one.events_since("three", Some(FleetPosition(0))).unwrap();
    assert_eq!(all.len(), 7);
}

#[test]
fn gateways_that_are_there_are_found_by_the_clock_of_the_server() {
    let Some([one, two]) = two() else { return };
    let holder =
        |process_id| Holder { host: "h".into(), process_id, process_start: 1, what: "gateway".into() };
    let lock = |store: &PostgresStore, process_id: u32, now_ms, lasts_ms| {
        let name = format!("gateway:{process_id}");
        let expires_ms = now_ms + lasts_ms;
        let request = LockRequest { name, holder: holder(process_id), now_ms, expires_ms };
        store.lock(&request, &|_| true).unwrap();
    };
    // The clocks of these machines are years apart.
    lock(&one, 1, 5, 60_000);
    lock(&two, 2, 4_000_000_000_000, 60_000);
    lock(&two, 3, 4_000_000_000_000, 0);
    assert_eq!(one.lock_holders("gateway:").unwrap(), [holder(1), holder(2)]);
    assert!(one.lock_holders("conversation").unwrap().is_empty());
    let pool = one.pool_status();
    assert!(pool.most == 4 && pool.open >= 1 && pool.waiting == 0, "{pool:?}");
}
