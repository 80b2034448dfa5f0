use std::time::Duration;

use super::EngineHealth;
use crate::services::PlainServices;

#[tokio::test(start_paused = true)]
async fn pauses_double_up_to_a_minute_and_end_with_a_start() {
    let health = EngineHealth::default();
    for wanted_secs in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(health.resting(), None);
        health.start_failed(Duration::from_secs(1), "it ended");
        let why = health.resting().unwrap();
        assert!(why.starts_with("it ended; it is started again in "), "{why}");
        tokio::time::advance(Duration::from_secs(wanted_secs) - Duration::from_millis(1)).await;
        assert!(health.resting().is_some(), "{wanted_secs} s");
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    health.started();
    health.start_failed(Duration::from_secs(1), "it ended");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(health.resting(), None, "the pause is a short one again");
}

#[tokio::test(start_paused = true)]
async fn an_engine_cannot_flood_the_log() {
    let (health, services) = (EngineHealth::default(), PlainServices::default());
    for line in 0..5_000 {
        health.log(&services, &format!("line {line}"));
    }
    let lines = services.log_lines();
    assert_eq!(lines.len(), 61, "sixty lines, and that the rest is left out");
    assert_eq!(lines[59], "line 59");
    assert!(lines[60].contains("left out"), "{}", lines[60]);
    tokio::time::advance(Duration::from_secs(60)).await;
    health.log(&services, "again");
    assert_eq!(services.log_lines()[61..], ["4940 further lines were left out", "again"]);
}
