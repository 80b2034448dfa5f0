//! Tests of layers, origins, old names, and every message about a bad source.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{CacheTtl, Secret};

fn load(file: &str) -> Result<Loaded, ConfigErrors> {
    Loader::new().file("config.yaml", file).load()
}

fn origin_of(loaded: &Loaded, key: &str) -> String {
    loaded.values.iter().find(|value| value.key == key).unwrap().origin.to_string()
}

/// Returns the messages that a user sees: errors if there are any, and warnings.
fn report(outcome: Result<Loaded, ConfigErrors>) -> String {
    let (errors, warnings) = match outcome {
        Ok(loaded) => (String::new(), loaded.warnings),
        Err(errors) => (errors.to_string(), errors.warnings),
    };
    let mut lines: Vec<String> = errors.lines().map(|line| format!("error: {line}")).collect();
    lines.extend(Warning::lines(&warnings).into_iter().map(|line| format!("warning: {line}")));
    if lines.is_empty() { "fine".to_owned() } else { lines.join("\n") }
}

#[test]
fn the_defaults_are_those_of_the_design() {
    let Settings {
        compression,
        auxiliary,
        economy,
        prompt_caching,
        context,
        lcm,
        recall,
        model,
        security,
        tool_output,
        gateway,
        store,
    } = Loader::new().load().unwrap().settings;
    assert!(
        compression.enabled && compression.codex_gpt55_autoraise && !compression.abort_on_summary_failure
    );
    assert_eq!(
        (compression.threshold, compression.target_ratio, compression.hygiene_ratio),
        (0.5, 0.2, 0.85)
    );
    assert_eq!((compression.protect_last_n, compression.protect_first_n), (20, 3));
    assert_eq!((lcm.chunk_tokens, lcm.fan_in, lcm.nodes_tokens), (20_000, 4, None));
    assert_eq!((lcm.older_percent, lcm.condensed_percent), (40, 10));
    assert_eq!(
        (lcm.expand_tokens, lcm.grep_hits, lcm.query_tokens, lcm.answer_tokens),
        (8_000, 20, 24_000, 1_500)
    );
    assert!(
        !recall.automatic
            && recall.embeddings.base_url.is_empty()
            && recall.embeddings.static_model.is_empty()
    );
    assert_eq!((recall.automatic_tokens, recall.embeddings.timeout), (600, Duration::from_secs(2)));
    assert_eq!((compression.prune_min_chars, compression.argument_max_chars), (200, 200));
    assert_eq!(compression.threshold_tokens, None);
    assert!(compression.models.is_empty());
    let summaries = auxiliary.compression;
    assert_eq!((summaries.provider.as_str(), summaries.model.as_str()), ("auto", ""));
    assert_eq!((summaries.timeout, summaries.context_length), (Duration::from_secs(120), None));
    assert!(
        summaries.api_key.is_empty() && summaries.base_url.is_empty() && summaries.api_key_env.is_empty()
    );
    assert_eq!(prompt_caching.cache_ttl, CacheTtl::FiveMinutes);
    assert_eq!(economy.mode, crate::EconomyMode::Off);
    assert_eq!((economy.compaction, economy.cold_cache, economy.tool_results), (None, None, None));
    assert_eq!((economy.tools, economy.tool_references), (None, None));
    assert!(economy.clients.is_empty() && economy.tokens.is_empty());
    assert_eq!(context.engine, "compressor");
    assert_eq!((model.default.as_str(), model.context_length, model.max_tokens), ("", None, None));
    assert!(security.redact_secrets);
    assert_eq!(store.url.as_str(), "");
    let limits = (tool_output.result_max_chars, tool_output.step_max_chars, tool_output.preview_chars);
    assert_eq!(limits, (100_000, 200_000, 1_500));
    assert_eq!((gateway.bind.as_str(), gateway.max_body_bytes), ("127.0.0.1:8790", 64 * 1024 * 1024));
    assert!(gateway.upstreams.is_empty() && !gateway.tool_budget && !gateway.require_record);
    assert_eq!((gateway.recall, gateway.recall_rounds, gateway.recall_tokens), (false, 8, 32_000));
}

#[test]
fn a_later_layer_wins_and_is_named() {
    let file = "compression:\n  threshold: 0.6\n  protect_last_n: 30\n  protect_first_n: 5\n  enabled: no\n";
    let env = [
        ("THROUGHLINE_COMPRESSION__THRESHOLD", "0.7"),
        ("THROUGHLINE_COMPRESSION__PROTECT_LAST_N", "40"),
        ("THROUGHLINE_HOME", "/somewhere"),
        ("THROUGHLINE_REQUIRE_ALL", "1"),
        ("THROUGHLINE_CONTEXT__ENGINE", ""),
        ("HOME", "/root"),
    ];
    let loaded = Loader::new()
        .set("compression.threshold=0.8")
        .flag("--context-length", "model.context_length", "200000")
        .env(env)
        .file("config.yaml", file)
        .load()
        .unwrap();
    assert_eq!(loaded.warnings, []);
    let compression = &loaded.settings.compression;
    assert_eq!(
        (compression.threshold, compression.protect_last_n, compression.protect_first_n),
        (0.8, 40, 5)
    );
    assert_eq!(loaded.settings.model.context_length, Some(200_000));
    assert_eq!(origin_of(&loaded, "compression.threshold"), "--set");
    assert_eq!(origin_of(&loaded, "compression.protect_last_n"), "THROUGHLINE_COMPRESSION__PROTECT_LAST_N");
    assert_eq!(origin_of(&loaded, "compression.protect_first_n"), "config.yaml:4");
    assert_eq!(origin_of(&loaded, "compression.enabled"), "config.yaml:5");
    assert_eq!(origin_of(&loaded, "compression.target_ratio"), "default");
    assert_eq!(origin_of(&loaded, "model.context_length"), "--context-length");
    assert_eq!(origin_of(&loaded, "context.engine"), "default", "an empty variable counts as not set");
}

#[test]
fn values_come_in_the_order_of_the_default_file() {
    let loaded = load("compression: {models: {b.2: {threshold: 0.6}, a: {threshold_tokens: 5}}}").unwrap();
    let keys: Vec<&str> = loaded.values.iter().map(|value| value.key.as_str()).collect();
    assert_eq!(
        keys[..5],
        [
            "compression.enabled",
            "compression.threshold",
            "compression.threshold_tokens",
            "compression.models.a.threshold_tokens",
            "compression.models.b.2.threshold"
        ]
    );
    assert_eq!(loaded.settings.compression.models["b.2"].threshold, Some(0.6));
    assert!(loaded.values[4].description().contains("Other thresholds"));
    assert_eq!(loaded.values[4].env_name(), None);
    assert_eq!(loaded.values[0].env_name().as_deref(), Some("THROUGHLINE_COMPRESSION__ENABLED"));
}

#[test]
fn a_whole_section_can_be_selected() {
    let loaded = load("compression: {models: {a: {threshold: 0.6}}}").unwrap();
    let keys = |key| {
        loaded.select(key).map(|found| found.iter().map(|value| value.key.as_str()).collect::<Vec<_>>())
    };
    assert_eq!(keys("security"), Ok(vec!["security.redact_secrets"]));
    assert_eq!(keys("security.redact_secrets"), Ok(vec!["security.redact_secrets"]));
    assert_eq!(keys("compression.models"), Ok(vec!["compression.models.a.threshold"]));
    assert_eq!(keys("compression.models.a"), Ok(vec!["compression.models.a.threshold"]));
    assert_eq!(keys("compression.models.b"), Ok(vec![]));
    assert_eq!(keys("compression.summary_model"), Ok(vec!["auxiliary.compression.model"]));
    assert_eq!(keys("tool_output").map(|keys| keys.len()), Ok(3));
    let error = keys("compression.treshold").unwrap_err().to_string();
    assert_eq!(error, "there is no setting compression.treshold; did you mean compression.threshold?");
}

#[test]
fn a_file_of_hermes_works_as_it_is() {
    let file = "\
_config_version: 17
model: anthropic/claude-opus-4.6
toolsets: [all]
terminal:
  backend: local
  cwd: .
compression:
  enabled: 'yes'
  threshold: '0.50'
  target_ratio: 0.20
  protect_last_n: 20
  in_place: true
  hygiene_hard_message_limit: 5000
  codex_gpt55_autoraise_notice: true
  codex_app_server_auto: native
  summary_model: google/gemini-3-flash
  model_thresholds:
    glm-5.2: 0.40
auxiliary:
  vision: {provider: auto}
  compression:
    base_url: null
    key_env: SUMMARY_KEY
    api_key: ${SUMMARY_KEY}
    timeout: 120
";
    let loaded = Loader::new().env([("SUMMARY_KEY", "sk-1")]).file("config.yaml", file).load().unwrap();
    assert_eq!(loaded.settings.model.default, "anthropic/claude-opus-4.6");
    assert_eq!(loaded.settings.auxiliary.compression.model, "google/gemini-3-flash");
    assert_eq!(loaded.settings.auxiliary.compression.api_key, Secret::new("sk-1"));
    assert_eq!(loaded.settings.compression.models["glm-5.2"].threshold, Some(0.4));
    assert_eq!(origin_of(&loaded, "auxiliary.compression.model"), "config.yaml:16");
    insta::assert_snapshot!(Warning::lines(&loaded.warnings).join("\n"));
}

#[test]
fn the_present_name_wins_over_an_old_one_in_the_same_file() {
    let file = "auxiliary: {compression: {model: new}}\ncompression: {summary_model: old}\n";
    let loaded = load(file).unwrap();
    assert_eq!(loaded.settings.auxiliary.compression.model, "new");
    assert_eq!(
        Warning::lines(&loaded.warnings),
        [
            "config.yaml:2: compression.summary_model is ignored, because auxiliary.compression.model, its present name, is set too"
        ]
    );
    let over = Loader::new().file("config.yaml", file).set("compression.summary_model=flag").load().unwrap();
    assert_eq!(over.settings.auxiliary.compression.model, "flag", "but a later layer still wins");
}

#[test]
fn text_may_name_variables() {
    let file = "auxiliary:\n  compression:\n    base_url: http://${HOST}:8089/v1\n    api_key: ${NO_SUCH}\n    model: a$b${\n";
    let loaded = Loader::new().env([("HOST", "localhost")]).file("config.yaml", file).load().unwrap();
    let summaries = &loaded.settings.auxiliary.compression;
    assert_eq!(summaries.base_url, "http://localhost:8089/v1");
    assert!(summaries.api_key.is_empty());
    assert_eq!(summaries.model, "a$b${");
    assert_eq!(
        Warning::lines(&loaded.warnings),
        [
            "config.yaml:4: auxiliary.compression.api_key refers to ${NO_SUCH}, which is not set, so it is read as empty"
        ]
    );
}

#[test]
fn a_variable_named_many_times_does_not_fill_the_memory() {
    let file = format!("model: {{default: '{}'}}", "${BIG}".repeat(100_000));
    let outcome = Loader::new().env([("BIG", "x".repeat(100_000))]).file("config.yaml", file).load();
    let message = outcome.unwrap_err().to_string();
    assert!(message.ends_with("but must be one line of at most 4096 characters"), "{message}");
}

#[test]
fn a_file_for_another_program_is_summed_up_in_a_line() {
    let file: String = (0..100).map(|at| format!("zzz{at}: 1\n")).collect();
    let lines = Warning::lines(&load(&file).unwrap().warnings);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("zzz19 (line 20), and 80 more"), "{}", lines[0]);
}

#[test]
fn aliases_count_and_point_to_where_the_value_stands() {
    let loaded = load("x: &ratio 0.6\ncompression:\n  threshold: *ratio\n").unwrap();
    assert_eq!(loaded.settings.compression.threshold, 0.6);
    assert_eq!(origin_of(&loaded, "compression.threshold"), "config.yaml:1");
}

#[test]
fn a_table_can_be_given_whole_outside_a_file() {
    let env = [("THROUGHLINE_COMPRESSION__MODELS", "{gpt-5: {threshold: 0.7}}")];
    let file = "compression: {models: {gpt-5: {threshold: 0.6, threshold_tokens: 9}}}";
    let loaded = Loader::new()
        .file("config.yaml", file)
        .env(env)
        .set("compression.models.claude.4.threshold=0.8")
        .load()
        .unwrap();
    let models = &loaded.settings.compression.models;
    assert_eq!((models["gpt-5"].threshold, models["gpt-5"].threshold_tokens), (Some(0.7), Some(9)));
    assert_eq!(models["claude.4"].threshold, Some(0.8));
    assert_eq!(origin_of(&loaded, "compression.models.gpt-5.threshold"), "THROUGHLINE_COMPRESSION__MODELS");
    assert_eq!(origin_of(&loaded, "compression.models.gpt-5.threshold_tokens"), "config.yaml:1");
}

#[test]
fn files_that_say_nothing_are_fine() {
    for file in [
        "",
        "\n\n",
        "# only a comment\n",
        "---\n",
        "---\n...\n",
        "null\n",
        "{}",
        "\u{feff}",
        "compression:\n",
        "compression: {}\n",
        "compression:\n  # threshold: 9\nmodel: ~\n",
    ] {
        assert_eq!(report(load(file)), "fine", "{file:?}");
    }
    assert_eq!(
        load("\u{feff}compression: {threshold: 0.6}\r\n").unwrap().settings.compression.threshold,
        0.6
    );
}

/// Every error that a file, a variable or a flag can cause, with its message.
#[test]
fn what_is_said_about_bad_sources() {
    let files = [
        "compression:\n  threshold: 1.7\n",
        "compression:\n  threshold: 50\n  target_ratio: '35 %'\n  protect_last_n: 2.5\n  enabled: maybe\n",
        "compression:\n  threshold:\n",
        "compression:\n  threshold: [0.5]\nmodel:\n  default: {a: b}\n  context_length: -1\n",
        "compression: 5\nauxiliary: [1]\n",
        "compression:\n  models: 5\n",
        "compression:\n  models:\n    gpt-5: 0.5\n    '': {threshold: 0.5}\n    o3: {threshold: 2, treshold: 0.5}\n",
        "compression:\n  threshold: 0.5\n  enabled: true\n  threshold: 0.6\nmodel: {}\nmodel: {}\n",
        "compression:\n\tthreshold: 0.5\n",
        "compression:\n  threshold: 0.5\n enabled: true\n",
        "compression: [0.5\n",
        "model:\n  default: a: b\n",
        "model: *nowhere\n",
        "compression: {}\n---\ncompression: {}\n",
        "- compression\n",
        "just words\n",
        "? [a]\n: b\n",
        "base: &base {threshold: 0.6}\ncompression:\n  <<: *base\n",
        "model:\n  default: !secret x\n",
        "prompt_caching:\n  cache_ttl: 2h\ncontext:\n  engine: my engine\nmodel:\n  base_url: localhost:80\n",
        "auxiliary:\n  compression:\n    api_key: \"sk-\\x01live\"\n    api_key_env: sk-live-123\n    timeout: 0\n",
        "compresion:\n  threshold: 0.5\n",
        "compression:\n  treshold: 0.5\n  wholly_other: 1\nterminal: {}\n",
        "compression.threshold: 0.5\nthreshold: 0.5\n",
        "compression:\n  summary_model: [x]\n  model_thresholds: {gpt: 7}\nmodel:\n  cache_ttl: 1d\n",
        "compression:\n  enabled: ''\n  protect_first_n: \"three\\nlines\"\n",
    ];
    let mut sheet: Vec<String> = files
        .iter()
        .map(|file| format!("{file}=> {}\n", report(load(file)).replace('\n', "\n   ")))
        .collect();
    let bytes: [(&str, &[u8]); 3] = [
        ("latin-1 on line 2", b"# caf\xc3\xa9\nmodel: caf\xe9\n"),
        ("utf-16", b"\xff\xfem\x00"),
        ("a file of 2 MB", &[b'#'; 2_000_000]),
    ];
    sheet.extend(bytes.iter().map(|(name, bytes)| {
        format!("{name}\n=> {}\n", report(Loader::new().file("config.yaml", *bytes).load()))
    }));
    let variables = [
        ("THROUGHLINE_COMPRESSION__THRESHOLD", "1.7"),
        ("THROUGHLINE_COMPRESSION_THRESHOLD", "0.6"),
        ("THROUGHLINE_COMPRESION__THRESHOLD", "0.6"),
        ("THROUGHLINE_LOG", "debug"),
        ("THROUGHLINE_COMPRESSION", "on"),
        ("THROUGHLINE_COMPRESSION__MODELS", "{gpt: [}"),
        ("THROUGHLINE_COMPRESSION__MODELS", "{gpt: {threshold: 7}}"),
        ("THROUGHLINE_MODEL__CACHE_TTL", "1h"),
    ];
    sheet.extend(variables.iter().map(|variable| {
        format!("{}={}\n=> {}\n", variable.0, variable.1, report(Loader::new().env([*variable]).load()))
    }));
    let flags = [
        "compression.threshold=1.7",
        "compression.threshold=",
        "compression.treshold=0.6",
        "compression=0.6",
        "compression.models.gpt-5=0.6",
        "sk-live-123",
        "=0.6",
        "model=gpt-5",
        "auxiliary.compression.api_key_env=sk-live-123",
    ];
    sheet.extend(
        flags.iter().map(|flag| format!("--set {flag}\n=> {}\n", report(Loader::new().set(flag).load()))),
    );
    insta::assert_snapshot!(sheet.join("\n"));
}

#[test]
fn a_bomb_of_aliases_is_refused_without_expanding_it() {
    let mut bomb = String::from("a0: &a0 {x: 1}\n");
    for level in 1..40 {
        let previous = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [previous.as_str(); 9].join(", ")));
    }
    assert!(report(load(&bomb)).starts_with("warning: config.yaml: not used by Throughline: a0 (line 1)"));

    let members: Vec<String> = (0..1000).map(|at| format!("k{at}: 1")).collect();
    let entries: Vec<String> = (0..1000).map(|at| format!("    m{at}: *all\n")).collect();
    let wide = format!("all: &all {{{}}}\ncompression:\n  models:\n{}", members.join(", "), entries.concat());
    let errors = load(&wide).unwrap_err();
    assert_eq!(errors.errors.len(), 1);
    let message = errors.to_string();
    assert!(
        message.ends_with("the aliases in this file expand to more than 100000 values; write them out"),
        "{message}"
    );
}

#[test]
fn depth_is_bounded() {
    for text in ["[".repeat(100_000), "{a: ".repeat(5_000), "- ".repeat(5_000), "? ".repeat(5_000)] {
        assert!(load(&text).is_err());
    }
}

#[test]
fn many_errors_are_shown_up_to_a_limit() {
    let entries: Vec<String> = (0..200).map(|at| format!("    m{at}: {{threshold: 7}}\n")).collect();
    let errors = load(&format!("compression:\n  models:\n{}", entries.concat())).unwrap_err();
    assert_eq!(errors.errors.len(), 200);
    assert_eq!(errors.to_string().lines().count(), 51);
    assert!(errors.to_string().ends_with("and 150 more"));
}

#[test]
fn secrets_do_not_leak_through_any_printing() {
    let file = "auxiliary: {compression: {api_key: sk-verysecretvalue-1234, base_url: 'https://me:hunter2@host/v1'}}\nstore: {url: 'postgres://me:hunter3@db/record'}";
    let loaded = Loader::new()
        .file("config.yaml", file)
        .set("auxiliary.compression.api_key=sk-othersecretvalue-5678")
        .load()
        .unwrap();
    let printed = format!(
        "{loaded:?} {}",
        loaded.values.iter().map(|v| format!("{} {}", v.datum, v.origin)).collect::<String>()
    );
    assert!(!printed.contains("secretvalue"), "{printed}");
    let shown: String = loaded.values.iter().map(|value| value.datum.to_string()).collect();
    assert!(shown.contains("****5678") && shown.contains("https://me:****@host/v1"), "{shown}");
    assert!(shown.contains("postgres://me:****@db/record") && !shown.contains("hunter"), "{shown}");
}

/// Random combinations of meaningful pieces of YAML: closer to edge cases than random bytes.
pub(crate) fn yaml_soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "compression",
        "threshold",
        "models",
        "model",
        "default",
        "auxiliary",
        "<<",
        ":",
        ": ",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "|",
        ">",
        "|+\n",
        "# c",
        "\"",
        "'",
        "0.5",
        "1e9",
        "null",
        "~",
        "${A}",
        "${",
        "---\n",
        "...\n",
        "? ",
        "\t",
        "\r\n",
        "é",
        "\u{feff}",
        "\u{2028}",
        "%YAML 1.2\n",
        "\\",
        "compression: {threshold: 0.5}\n",
        "summary_model: x",
        "model_thresholds",
        "\u{0}",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(2_000)))]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Loader::new().file("f", bytes).load();
    }

    #[test]
    fn no_text_makes_it_panic(text in yaml_soup(), key in yaml_soup(), value in yaml_soup()) {
        let loader = Loader::new().file("f", text.clone()).env([("A", "b"), ("THROUGHLINE_COMPRESSION__MODELS", &text)]);
        let _ = loader.flag("--flag", key.clone(), value).set(&key).load();
    }

    #[test]
    fn every_number_in_range_arrives_whichever_way_it_comes(ratio in 0.05f64..=1.0, last in 0u64..=10_000) {
        let file = format!("compression:\n  threshold: {ratio}\n  protect_last_n: {last}\n");
        let env = [("THROUGHLINE_COMPRESSION__THRESHOLD".to_owned(), ratio.to_string())];
        for loaded in [
            load(&file).unwrap(),
            Loader::new().env(env).set(&format!("compression.protect_last_n={last}")).load().unwrap(),
        ] {
            prop_assert_eq!(loaded.settings.compression.threshold, ratio);
            prop_assert_eq!(loaded.settings.compression.protect_last_n as u64, last);
        }
    }

    #[test]
    fn every_number_out_of_range_is_refused_with_its_line(ratio in prop_oneof![-1e6f64..0.0499, 1.0001f64..1e6], blank in 0usize..20) {
        let errors = load(&format!("{}compression:\n  threshold: {ratio}\n", "\n".repeat(blank))).unwrap_err();
        let message = errors.to_string();
        let start = format!("config.yaml:{}: compression.threshold is {ratio}, but must be between 0.05 and 1", blank + 2);
        prop_assert!(message.starts_with(&start), "{}", message);
    }
}
