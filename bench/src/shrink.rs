//! The speed of shortening tool results, and the size of the rest, by kind of content. The baseline keeps the beginning and the end in as
//! many bytes.

use std::fmt::Write;
use std::time::Instant;

use throughline_compaction::{ContentKind, shrink};

/// Bytes of each text.
const BYTES: usize = 8_000_000;
/// The number of runs, of which the fastest counts.
const RUNS: usize = 3;
/// The number of error lines in each text.
const ERRORS: usize = 20;

/// A kind of content with its text and its least throughput, in megabytes per second.
struct Case {
    kind: ContentKind,
    text: String,
    least: f64,
}

/// Runs the benchmark and formats the table.
pub(crate) fn run() -> Result<String, String> {
    let mut out = format!(
        "{:<9} {:>9} {:>8} {:>9} {:>12} {:>10} {:>16}\n",
        "kind", "MB/s", "at least", "verdict", "lines, MB/s", "left", "errors kept"
    );
    let mut missed = 0;
    for Case { kind, text, least } in cases() {
        let (short, seconds) = fastest(|| shrink(&text, &[]));
        let short = short.ok_or_else(|| format!("{kind} was not shortened"))?;
        if short.kind != kind {
            return Err(format!("{kind} was taken for {}", short.kind));
        }
        // The least work possible on a text of lines.
        let (_, counting) = fastest(|| text.lines().filter(|line| line.contains("error: case")).count());
        let megabytes = text.len() as f64 / 1e6;
        let rate = megabytes / seconds;
        let kept = |left: &str| (0..ERRORS).filter(|number| left.contains(&error(*number))).count();
        let half = short.text.len() / 2;
        let ends = text.get(..half).into_iter().chain(text.get(text.len() - half..));
        let trivial = kept(&ends.collect::<Vec<_>>().concat());
        let verdict = if rate >= least { "holds" } else { "MISSED" };
        missed += usize::from(rate < least);
        let _ = writeln!(
            out,
            "{:<9} {:>9.0} {:>8.0} {:>9} {:>12.0} {:>9.2}% {:>6} ({trivial} by ends)",
            kind.name(),
            rate,
            least,
            verdict,
            megabytes / counting,
            100.0 * short.text.len() as f64 / text.len() as f64,
            kept(&short.text),
        );
    }
    let _ = writeln!(
        out,
        "\nTexts of {} MB. \"lines\": searching each line for one word. \"by ends\": errors in as many bytes from both ends.",
        BYTES / 1_000_000
    );
    if missed > 0 {
        let _ = writeln!(out, "{missed} of the limits are MISSED");
    }
    Ok(out)
}

fn fastest<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let mut best = f64::MAX;
    let mut result = work();
    for _ in 0..RUNS {
        let began = Instant::now();
        result = work();
        best = best.min(began.elapsed().as_secs_f64());
    }
    (result, best.max(1e-9))
}

fn error(number: usize) -> String {
    format!("error: case {number:02} failed")
}

/// Generates lines until the text is large enough, with the errors spread evenly.
fn lines(mut line: impl FnMut(usize) -> String, error_line: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(BYTES + 200);
    let (mut number, mut errors) = (0, 0);
    while text.len() < BYTES {
        text.push_str(&line(number));
        number += 1;
        if errors < ERRORS && text.len() > (errors + 1) * (BYTES / (ERRORS + 1)) {
            text.push_str(&error_line(errors));
            errors += 1;
        }
    }
    text
}

fn cases() -> Vec<Case> {
    let item = |number: usize, message: &str| {
        format!(
            "{{\"id\":{number},\"name\":\"item {number}\",\"state\":\"ready\",\"size\":{},\"note\":{message}}},\n",
            number % 977
        )
    };
    let json = lines(|number| item(number, "null"), |number| item(number, &format!("\"{}\"", error(number))));
    let json = format!("[{}]", json.trim_end_matches(",\n"));
    let code_line = |number: usize| match number % 40 {
        0 => format!("{:>6}\tpub fn part_{number}(input: &str) -> usize {{\n", number + 1),
        39 => format!("{:>6}\t}}\n", number + 1),
        _ => format!("{:>6}\t    total += input.len() * {number};\n", number + 1),
    };
    let page = lines(
        |number| {
            format!(
                "<div class=\"row\"><p>Entry {number} of <a href=\"/entry/{number}\">the list</a></p><script>track({number});</script></div>\n"
            )
        },
        |number| format!("<p>{}</p>\n", error(number)),
    );
    let mut file = 0;
    vec![
        Case {
            kind: ContentKind::Log,
            text: lines(
                |number| {
                    format!(
                        "2026-11-18T10:{:02}:{:02} worker {} took job {number} and was done in {} ms\n",
                        number / 60 % 60,
                        number % 60,
                        number % 16,
                        number % 400
                    )
                },
                |number| format!("{}\n", error(number)),
            ),
            least: 200.0,
        },
        Case {
            kind: ContentKind::Listing,
            text: lines(
                |number| format!("./crates/part{}/src/module{number}.rs\n", number / 50),
                |number| format!("./crates/errors/{}\n", error(number).replace([' ', ':'], "-")),
            ),
            least: 200.0,
        },
        Case {
            kind: ContentKind::Search,
            text: lines(
                |number| {
                    format!(
                        "src/part{}/file{}.rs:{}:    let value = self.value_of({number});\n",
                        number / 900,
                        number / 30,
                        number % 3_000
                    )
                },
                |number| format!("src/errors.rs:{number}: {}\n", error(number)),
            ),
            least: 200.0,
        },
        Case {
            kind: ContentKind::Diff,
            text: lines(
                |number| match number % 60 {
                    0 => {
                        file += 1;
                        format!(
                            "diff --git a/src/f{file}.rs b/src/f{file}.rs\n--- a/src/f{file}.rs\n+++ b/src/f{file}.rs\n@@ -1,60 +1,60 @@\n"
                        )
                    }
                    30 => "-    old line of the file\n+    new line of the file\n".to_owned(),
                    _ => format!(" unchanged line {number} of a file that is long\n"),
                },
                |number| format!(" {}\n", error(number)),
            ),
            least: 200.0,
        },
        Case { kind: ContentKind::Json, text: json, least: 50.0 },
        Case {
            kind: ContentKind::Table,
            text: format!(
                "id,name,state,size,note\n{}",
                lines(
                    |number| format!("{number},item {number},ready,{},none\n", number % 977),
                    |number| format!("{number},item,broken,1,{}\n", error(number))
                )
            ),
            least: 50.0,
        },
        Case {
            kind: ContentKind::Html,
            text: format!("<!DOCTYPE html><html><body>{page}</body></html>"),
            least: 50.0,
        },
        Case {
            kind: ContentKind::Code,
            text: lines(code_line, |number| format!("     1\t    // {}\n", error(number))),
            least: 50.0,
        },
    ]
}
