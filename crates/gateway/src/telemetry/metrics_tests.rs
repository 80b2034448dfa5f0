//! The text format of metrics.

use super::*;

#[test]
fn figures_are_shown_in_the_form_prometheus_reads() {
    let metrics = Arc::new(Metrics::default());
    metrics.request("chat", 200);
    metrics.request("chat", 200);
    metrics.call("chat", "a\"b", UpstreamOutcome::Answered, Duration::from_millis(300));
    metrics.added(Duration::from_micros(1_500));
    let open = metrics.open();
    let text = metrics.render();
    for line in [
        "throughline_requests_total{wire=\"chat\",status=\"200\"} 2",
        "throughline_upstream_calls_total{wire=\"chat\",upstream=\"a\\\"b\",outcome=\"answered\"} 1",
        "throughline_open_answers 1",
        "throughline_added_seconds_bucket{le=\"0.001\"} 0",
        "throughline_added_seconds_bucket{le=\"0.002\"} 1",
        "throughline_added_seconds_bucket{le=\"+Inf\"} 1",
        "throughline_added_seconds_sum 0.0015",
        "throughline_upstream_seconds_bucket{le=\"0.25\"} 0",
        "throughline_upstream_seconds_bucket{le=\"0.5\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    drop(open);
    assert!(metrics.render().contains("throughline_open_answers 0\n"));
}
