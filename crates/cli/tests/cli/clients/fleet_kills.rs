//! Several gateways on one PostgreSQL under load, one of them killed again and again, the server restarted, connections cut, a standby
//! promoted: every answer that a client has got is in the record, no conversation has two continuations, and none was compacted twice.
//!
//! The short form is part of the tests. `THROUGHLINE_KILLS=200 THROUGHLINE_GATEWAYS=4 THROUGHLINE_PROMOTIONS=10 cargo test -p
//! throughline-cli --features postgres --test cli fleet_kills -- --nocapture` is the long one.

use std::sync::Arc;

use throughline_store::PostgresStore;
use throughline_testkit::{Missing, PostgresServer, skip};

use crate::clients::cut_proxy::CutProxy;
use crate::clients::faults::echo;
use crate::clients::fleet_load::{CLIENTS, FleetLoad};

/// Answers after the last fault: long enough that conversations are compacted, also by gateways that have not written them.
const ANSWERS_AFTER: u64 = 30 * CLIENTS as u64;

#[expect(clippy::disallowed_methods, reason = "how long to kill is said in the environment")]
fn from_environment(name: &str, short: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// A server of this test alone with an empty record, and the name of its database.
#[track_caller]
fn server() -> Option<(Arc<PostgresServer>, String)> {
    let Some(server) = PostgresServer::own() else {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        return None;
    };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    Some((Arc::new(server), url.rsplit('/').next().unwrap().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kills_restarts_and_cuts() {
    let Some((server, database)) = server() else { return };
    let proxy = CutProxy::before(&server.socket());
    let url = format!("postgres://postgres@127.0.0.1:{}/{database}", proxy.port());
    let upstream = echo().await;
    let (kills, count) =
        (from_environment("THROUGHLINE_KILLS", 3), from_environment("THROUGHLINE_GATEWAYS", 2));
    let mut fleet = FleetLoad::start(&url, &upstream.url(), count).await;
    let (mut cuts, mut restarts) = (0, 0);
    for round in 0..kills {
        fleet.until_it_works().await;
        fleet.kill(round % count).await;
        fleet.until_it_works().await;
        cuts += proxy.cut();
        if round % 10 == 1 {
            fleet.until_it_works().await;
            let server = Arc::clone(&server);
            tokio::task::spawn_blocking(move || server.crash()).await.unwrap();
            restarts += 1;
        }
        if round % 20 == 19 {
            println!("{} kills, {} answers so far", round + 1, fleet.answers());
        }
    }
    fleet.until_answered(ANSWERS_AFTER).await;
    let found = fleet.check(&server, &database).await;
    println!(
        "{kills} kills of {count} gateways, {restarts} crashes of the server, {cuts} connections cut: {found}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_standby_that_is_promoted() {
    let Some((mut primary, database)) = server() else { return };
    let promotions = from_environment("THROUGHLINE_PROMOTIONS", 1);
    let count = from_environment("THROUGHLINE_GATEWAYS", 2);
    let upstream = echo().await;
    let follow = |primary: &Arc<PostgresServer>| {
        let primary = Arc::clone(primary);
        tokio::task::spawn_blocking(move || Arc::new(primary.synchronous_standby()))
    };
    let mut standby = follow(&primary).await.unwrap();
    // Two hosts, whichever of them is the primary at the moment.
    let hosts = [CutProxy::before(&primary.socket()), CutProxy::before(&standby.socket())];
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/{database}?target_session_attrs=read-write",
        hosts[0].port(),
        hosts[1].port()
    );
    let fleet = FleetLoad::start(&url, &upstream.url(), count).await;
    let mut failed_host = 0;
    for round in 0..promotions {
        fleet.until_it_works().await;
        let (failing, next) = (Arc::clone(&primary), Arc::clone(&standby));
        tokio::task::spawn_blocking(move || {
            failing.fail();
            next.promote();
        })
        .await
        .unwrap();
        primary = standby;
        fleet.until_it_works().await;
        // A new standby follows at the host that failed, and the next failure is of the other one.
        standby = follow(&primary).await.unwrap();
        hosts[failed_host].move_to(&standby.socket());
        failed_host = 1 - failed_host;
        println!("{} promotions, {} answers so far", round + 1, fleet.answers());
    }
    fleet.until_answered(ANSWERS_AFTER).await;
    let found = fleet.check(&primary, &database).await;
    println!("{promotions} standbys promoted under {count} gateways: {found}");
}
