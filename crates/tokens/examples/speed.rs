//! x
#![expect(clippy::print_stdout, clippy::unwrap_used)]
use throughline_tokens::*;
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let json = serde_json::to_string(&text).unwrap();
        let raw = &json.as_bytes()[1..json.len() - 1];
        let (mut best, mut best_j) = (f64::MAX, f64::MAX);
        for _ in 0..7 {
            let t = std::time::Instant::now();
            let p = profile_text(&text);
            std::hint::black_box(p);
            best = best.min(t.elapsed().as_secs_f64());
            let t = std::time::Instant::now();
            let p = profile_json_str(raw);
            std::hint::black_box(p);
            best_j = best_j.min(t.elapsed().as_secs_f64());
        }
        assert_eq!(profile_text(&text), profile_json_str(raw));
        println!(
            "{path}: {:.0} MB/s json {:.0}",
            text.len() as f64 / 1e6 / best,
            raw.len() as f64 / 1e6 / best_j
        );
    }
}
