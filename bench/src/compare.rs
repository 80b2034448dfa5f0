//! Compares two builds of this program, run in turns with the same command: every figure of their tables, with its spread.
//!
//! Tables are compared as text, so any command can be compared, even if a build prints other columns: a line is recognised by its words,
//! and if both builds print it with the same number of figures, these are compared.
//!
//! Not for: gateways, whose calls must alternate within a run (`gateway --against`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A build of this program and, for some commands, of the measured program.
pub(crate) struct Build {
    pub(crate) bench: PathBuf,
    pub(crate) program: Option<PathBuf>,
}

/// A line of a table: its words, with a hash sign in place of each figure, and the figures.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    words: String,
    figures: Vec<f64>,
}

/// Runs a command with both builds in turns and compares their figures.
pub(crate) fn run(
    before: &Build,
    program: Option<PathBuf>,
    rounds: usize,
    command: &[String],
) -> Result<String, String> {
    let bench = std::env::current_exe().map_err(|error| error.to_string())?;
    let now = Build { bench, program };
    let (mut of_before, mut of_now) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        of_before.push(lines(&printed(before, command)?));
        of_now.push(lines(&printed(&now, command)?));
    }
    Ok(side_by_side(&of_before, &of_now))
}

fn printed(build: &Build, command: &[String]) -> Result<String, String> {
    let mut bench = Command::new(&build.bench);
    bench.args(command);
    if let Some(program) = &build.program {
        bench.arg("--program").arg(program);
    }
    let output = bench.output().map_err(|error| named(&build.bench, &error.to_string()))?;
    if !output.status.success() {
        return Err(named(&build.bench, &String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn named(program: &Path, message: &str) -> String {
    format!("{}: {message}", program.display())
}

fn lines(table: &str) -> Vec<Line> {
    table.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

/// Splits a line. A word counts as a figure if it is a number, apart from signs and units around it.
fn line(text: &str) -> Line {
    let mut figures = Vec::new();
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let digits = word.trim_matches(|c: char| !c.is_ascii_digit() && c != '-').replace(',', "");
        let is_figure =
            word.trim_start_matches(['-', '+', '$', '~', '(']).starts_with(|c: char| c.is_ascii_digit());
        match digits.parse() {
            Ok(figure) if is_figure => {
                figures.push(figure);
                words.push("#");
            }
            _ => words.push(word),
        }
    }
    Line { words: words.join(" "), figures }
}

/// Compares the lines of the new build that the old one also prints, in order. Lines with the same words are distinguished by their
/// order.
fn side_by_side(before: &[Vec<Line>], now: &[Vec<Line>]) -> String {
    let mut out = format!("{} runs each in turns: before -> now, as least to most\n\n", now.len());
    let Some(first) = now.first() else { return out };
    for (index, line) in first.iter().enumerate() {
        if line.figures.is_empty() {
            let _ = writeln!(out, "{}", line.words);
            continue;
        }
        let place = first.iter().take(index).filter(|other| other.words == line.words).count();
        let find = |run: &Vec<Line>| {
            run.iter().filter(|other| other.words == line.words).nth(place).map(|found| found.figures.clone())
        };
        let of_before: Vec<_> = before.iter().filter_map(find).collect();
        let of_now: Vec<_> = now.iter().filter_map(find).collect();
        let _ = write!(out, "{}", line.words);
        for column in 0..line.figures.len() {
            let (old, new) = (spread(&of_before, column), spread(&of_now, column));
            let mark = if old == new { "=" } else { "->" };
            let _ = write!(out, " | {old} {mark} {new}");
        }
        out.push('\n');
    }
    out
}

fn spread(runs: &[Vec<f64>], column: usize) -> String {
    let values: Vec<f64> = runs.iter().filter_map(|figures| figures.get(column).copied()).collect();
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    match (least, most) {
        (Some(least), Some(most)) if least == most => format!("{least}"),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{line, lines, side_by_side};

    #[test]
    fn line_separates_words_from_figures() {
        let parsed = line("live: facts gathered (5 phases)   12.50 ms  1,204 $3.5 -0.2% p95");
        assert_eq!(parsed.words, "live: facts gathered # phases) # ms # # # p95");
        assert_eq!(parsed.figures, [5.0, 12.5, 1_204.0, 3.5, -0.2]);
    }

    #[test]
    fn side_by_side_shows_the_spread_of_each_figure() {
        let run = |text: &str| lines(text);
        let before = [run("append 10 ms\nappend 7 ms"), run("append 12 ms\nappend 7 ms")];
        let now = [run("append 11 ms\nappend 7 ms\nnew 3 ms"), run("append 9 ms\nappend 7 ms\nnew 3 ms")];
        let table = side_by_side(&before, &now);
        assert!(table.contains("append # ms | 10 to 12 -> 9 to 11\n"), "{table}");
        assert!(table.contains("append # ms | 7 = 7\n"), "{table}");
        assert!(table.contains("new # ms | none -> 3\n"), "{table}");
    }
}
