//! Two gateways with home directories of their own and one PostgreSQL record, as an operator runs them: access tokens, and stopping.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use throughline_testkit::{Missing, PostgresServer, skip};

use crate::clients::faults::echo;
use crate::clients::gateway::Gateway;

/// The settings of a gateway on a database.
fn home(url: &str, upstream: &str, more: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "store:\n  url: {url}\n  connections: 2\nauxiliary:\n  compression:\n    provider: rules\n\
         gateway:\n  seal_keys: {}\n  upstreams:\n    main:\n      base_url: {upstream}\n{more}",
        "ab".repeat(32)
    );
    std::fs::write(home.path().join("config.yaml"), config).unwrap();
    home
}

#[track_caller]
fn database() -> Option<String> {
    let Some(server) = PostgresServer::shared() else {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        return None;
    };
    Some(server.empty_database())
}

async fn start(home: tempfile::TempDir) -> Gateway {
    tokio::task::spawn_blocking(move || Gateway::configured(home)).await.unwrap()
}

fn http() -> reqwest::Client {
    throughline_provider::Client::install_crypto();
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap()
}

/// The status of a request with this token, or without one.
async fn status(gateway: &Gateway, token: Option<&str>) -> u16 {
    let body = json!({ "model": "worker", "messages": [{"role": "user", "content": "hello"}] }).to_string();
    let request = http().post(format!("{}/v1/chat/completions", gateway.url())).body(body);
    let request = match token {
        Some(token) => request.header("x-throughline-token", token),
        None => request,
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    response.text().await.unwrap();
    status
}

/// Waits until a gateway has looked at its list again: it does once a second.
async fn until(gateway: &Gateway, token: Option<&str>, wanted: u16) {
    for _ in 0..600 {
        if status(gateway, token).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never {wanted}: {}", gateway.screen());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_counts_at_every_gateway_until_it_is_revoked_at_any() {
    let Some(url) = database() else { return };
    let upstream = echo().await;
    let [one, two] =
        [start(home(&url, &upstream.url(), "")).await, start(home(&url, &upstream.url(), "")).await];
    assert_eq!((status(&one, None).await, status(&two, None).await), (200, 200));
    let made: Value = serde_json::from_str(&one.ask(&["token", "new", "ci", "--json"])).unwrap();
    let token = made["token"].as_str().unwrap();
    for gateway in [&one, &two] {
        until(gateway, None, 401).await;
        until(gateway, Some(token), 200).await;
    }
    two.ask(&["token", "revoke", "ci"]);
    for gateway in [&one, &two] {
        until(gateway, Some(token), 401).await;
    }
    // A gateway that starts now demands tokens too, although there are none left.
    let three = start(home(&url, &upstream.url(), "")).await;
    assert_eq!(status(&three, None).await, 401);
    let figures = three.screen();
    assert!(figures.contains("Access: none"), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_told_to_stop_is_not_ready_first_and_leaves_nothing_behind() {
    let Some(url) = database() else { return };
    let upstream = echo().await;
    let mut gateway = start(home(&url, &upstream.url(), "  drain_seconds: 3600\n")).await;
    let ready = async |gateway: &Gateway| {
        http().get(format!("{}/readyz", gateway.url())).send().await.unwrap().status().as_u16()
    };
    assert_eq!(ready(&gateway).await, 200);
    gateway.signal(Signal::TERM);
    for attempt in 0.. {
        if ready(&gateway).await == 503 {
            break;
        }
        assert!(attempt < 600, "{}", gateway.screen());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status(&gateway, None).await, 200, "requests are answered until load balancers have noticed");
    // The next signal ends that time.
    assert!(gateway.signalled_to_stop().success(), "{}", gateway.screen());
    let server = PostgresServer::shared().unwrap();
    let database = url.rsplit('/').next().unwrap();
    assert_eq!(server.run(database, "SELECT count(*) FROM locks"), "0");
}
