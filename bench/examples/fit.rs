//! Makes the priors of the estimator: fits the weights of every family and prints the rows of
//! `crates/tokens/src/weights.rs`.
//!
//! ```text
//! cargo run --release -p throughline-bench --example fit -- CORPUS SESSIONS
//! ```
//!
//! `CORPUS` is a folder of `.jsonl` files, one class of text each (a file format, a language, a kind of log), one sample
//! a line: `{"text": "...", "llama3": 123, "qwen2": 119, ...}`. The OpenAI encodings are counted here; the counts of the
//! vocabularies in `GENERIC` are read. `SESSIONS` is a folder of recorded Claude Code sessions.

#[path = "../src/estimate/fit.rs"]
mod fit;
#[path = "../src/recorded.rs"]
#[expect(dead_code, reason = "shared with the benchmarks; only its file reading is needed here")]
mod recorded;
#[path = "../src/estimate/steps.rs"]
#[expect(dead_code, reason = "shared with the benchmarks; the fit needs only the samples")]
mod steps;

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use throughline_tokens::{Encoding, Feature, TextProfile};

use self::fit::{FitOptions, Prior, Sample, fit_weights, relative_error};

/// Vocabularies whose mean stands for the generic family.
const GENERIC: [&str; 4] = ["llama3", "qwen2", "deepseek_v3", "mistral_v3"];

/// Importance of a class by how its name begins, the first that fits. Code and agent logs are what the estimator mostly
/// meets; a language of its own file would otherwise weigh as much as all source code.
const IMPORTANCE: [(&str, f64); 7] = [
    ("cc_", 3.0),
    ("runs", 0.3),
    ("base64", 0.7),
    ("hex", 0.7),
    ("numbers", 0.7),
    ("emoji", 0.7),
    ("lang-", 0.07),
];
/// Languages with many speakers, which count for more than the others.
const MAJOR_LANGUAGES: &str = "ar bn de en es fa fr he hi id it ja ko nl pl pt ru sv th tr uk vi zhs zht";
const MAJOR_LANGUAGE_IMPORTANCE: f64 = 0.7;
const OTHER_IMPORTANCE: f64 = 1.5;

/// Claude 4.7 against Claude up to 4.6, as reported by its users (1.53 and 1.18 times o200k).
const CLAUDE47_TO_CLAUDE: f64 = 1.53 / 1.18;
/// The same beyond ASCII, where the newer vocabulary is said to have lost less.
const CLAUDE47_TO_CLAUDE_BEYOND_ASCII: f64 = 1.1;

struct Text {
    class: String,
    profile: TextProfile,
    o200k: f64,
    cl100k: f64,
    generic: f64,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "printing a table is what this program does")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [corpus, sessions] = arguments.as_slice() else {
        eprintln!("usage: fit CORPUS SESSIONS");
        return ExitCode::from(2);
    };
    match run(Path::new(corpus), Path::new(sessions)) {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(corpus: &Path, sessions: &Path) -> Result<String, String> {
    let texts = read_corpus(corpus)?;
    let priors = unseen_priors();
    let fit =
        |tokens: fn(&Text) -> f64| fit_weights(&samples(&texts, tokens), &priors, FitOptions::default());
    let o200k = fit(|text| text.o200k);
    let cl100k = fit(|text| text.cl100k);
    let generic = fit(|text| text.generic);

    let recorded = steps::read_sessions(sessions)?;
    let steps: Vec<Sample> =
        recorded.iter().flat_map(|session| &session.steps).map(steps::Step::sample).collect();
    let claude = fit_weights(&steps, &steps::claude_priors(), steps::FIT);

    let mut table = String::from("// feature: o200k, cl100k, claude, claude47, generic\n");
    for (at, feature) in Feature::ALL.iter().enumerate() {
        let later =
            if feature.is_beyond_ascii() { CLAUDE47_TO_CLAUDE_BEYOND_ASCII } else { CLAUDE47_TO_CLAUDE };
        let row = [o200k[at], cl100k[at], claude[at], claude[at] * later, generic[at]];
        let row: Vec<String> = row.iter().map(|weight| format!("{weight:.3}")).collect();
        table += &format!("    (F::{}, [{}]),\n", feature.name(), row.join(", "));
    }
    let around: Vec<String> =
        claude[Feature::ALL.len()..].iter().map(|weight| format!("{weight:.1}")).collect();
    table += &format!("// claude: a message, a tool call, a tool result: {}\n", around.join(", "));
    table += &errors("o200k", &texts, &samples(&texts, |text| text.o200k), &o200k);
    table += &errors("cl100k", &texts, &samples(&texts, |text| text.cl100k), &cl100k);
    table += &errors("generic", &texts, &samples(&texts, |text| text.generic), &generic);
    Ok(table)
}

/// What a shape that no text holds should weigh: characters of unknown scripts are dear, everything else free.
fn unseen_priors() -> Vec<Prior> {
    let weight =
        |feature: &Feature| if feature.is_script() || *feature == Feature::InvalidBytes { 0.8 } else { 0.0 };
    Feature::ALL.iter().map(|shape| Prior { weight: weight(shape), ceiling: shape.most_tokens() }).collect()
}

fn read_corpus(folder: &Path) -> Result<Vec<Text>, String> {
    let mut texts = Vec::new();
    for path in recorded::files(folder)? {
        let class = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let lines = String::from_utf8(recorded::read(&path)?).map_err(|error| format!("{class}: {error}"))?;
        for line in lines.lines() {
            let sample: Value = serde_json::from_str(line).map_err(|error| format!("{class}: {error}"))?;
            let text = sample["text"].as_str().ok_or_else(|| format!("{class}: a line without text"))?;
            let counts = GENERIC.map(|name| sample[name].as_f64());
            let known: Vec<f64> = counts.iter().flatten().copied().collect();
            texts.push(Text {
                class: class.clone(),
                profile: TextProfile::of(text),
                o200k: Encoding::O200k.count(text) as f64,
                cl100k: Encoding::Cl100k.count(text) as f64,
                generic: known.iter().sum::<f64>() / known.len().max(1) as f64,
            });
        }
    }
    Ok(texts)
}

fn samples(texts: &[Text], tokens: fn(&Text) -> f64) -> Vec<Sample> {
    texts
        .iter()
        .map(|text| {
            let members = texts.iter().filter(|other| other.class == text.class).count() as f64;
            Sample {
                columns: text.profile.counts().iter().map(|count| f64::from(*count)).collect(),
                tokens: tokens(text).max(1.0),
                importance: importance(&text.class) / members.sqrt(),
            }
        })
        .collect()
}

fn importance(class: &str) -> f64 {
    if let Some(language) = class.strip_prefix("lang-")
        && MAJOR_LANGUAGES.split(' ').any(|major| major == language)
    {
        return MAJOR_LANGUAGE_IMPORTANCE;
    }
    let found = IMPORTANCE.iter().find(|(start, _)| class.starts_with(start));
    found.map_or(OTHER_IMPORTANCE, |(_, importance)| *importance)
}

/// Median error by class, in percent.
fn errors(family: &str, texts: &[Text], samples: &[Sample], weights: &[f64]) -> String {
    let mut classes: Vec<&str> = texts.iter().map(|text| text.class.as_str()).collect();
    classes.dedup();
    let all: Vec<f64> = samples.iter().map(|sample| relative_error(sample, weights)).collect();
    let mut line = format!("// {family}: all {:.1} %", 100.0 * median(all.iter().map(|e| e.abs()).collect()));
    for class in classes {
        let own = texts.iter().zip(&all).filter(|(text, _)| text.class == class).map(|(_, error)| *error);
        line += &format!(", {class} {:+.1}", 100.0 * median(own.collect()));
    }
    line + "\n"
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
