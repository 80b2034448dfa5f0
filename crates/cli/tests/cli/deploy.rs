//! The files in `deploy/`: their settings are ones there are, the dashboard asks for metrics there are, and programs that read the files
//! find nothing wrong with them, where those programs are installed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::Value;
use throughline_testkit::{Missing, skip};

use crate::harness::World;

fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(workspace(path)).unwrap()
}

/// Everything that a pattern finds in a text.
fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    let all = Regex::new(pattern).unwrap();
    all.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// The names of all settings.
fn settings() -> BTreeSet<String> {
    let shown = World::new().run(&["config", "show", "--json"]).json();
    let all = shown["settings"].as_array().unwrap();
    all.iter().map(|setting| setting["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn settings_named_in_the_compose_file_and_the_chart_are_ones_there_are() {
    let known = settings();
    let mut named = BTreeSet::new();
    for file in ["deploy/compose.yaml", "deploy/helm/throughline/templates/gateways.yaml"] {
        named.extend(found(r"(THROUGHLINE_[A-Z]+__[A-Z_]+)", &text(file)));
    }
    let mut named: BTreeSet<String> = named
        .iter()
        .map(|name| name.trim_start_matches("THROUGHLINE_").replacen("__", ".", 1).to_lowercase())
        .collect();
    named.extend(found(r"(?m)^  ([a-z]+\.[a-z_.]+): ", &text("deploy/helm/throughline/values.yaml")));
    assert!(named.len() >= 6, "{named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn settings_of_the_services_can_be_used() {
    let world = World::with_config(&text("deploy/systemd/config.yaml"));
    let keys = "ab".repeat(32);
    let environment = [("DB_PASSWORD", "secret"), ("DB_HOST", "db"), ("SEAL_KEYS", keys.as_str())];
    let shown = world.run_with(&["config", "show", "--json"], b"", &environment);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{}", shown.stderr);
    let shown = shown.json();
    let value = |key: &str| {
        let all = shown["settings"].as_array().unwrap();
        all.iter().find(|setting| setting["key"] == key).unwrap()["value"].to_string()
    };
    assert_eq!(
        (value("gateway.drain_seconds").as_str(), value("gateway.require_record").as_str()),
        ("10", "true")
    );
    assert!(!shown.to_string().contains(&keys) && !shown.to_string().contains("secret@"), "{shown}");
}

#[test]
fn the_dashboard_asks_for_metrics_there_are() {
    let dashboard: Value = serde_json::from_str(&text("deploy/grafana/throughline.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has a number of its own");
    let asked = found(r"(throughline_[a-z_]+)", &text("deploy/grafana/throughline.json"));
    let source = text("crates/gateway/src/telemetry/metrics.rs");
    let there = found(r#"(throughline_[a-z_]+)["{ ]"#, &source);
    let is_there = |name: &str| {
        let series = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
        there.contains(name) || series.is_some_and(|series| there.contains(series))
    };
    let missing: Vec<_> = asked.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty() && asked.len() > 15, "{missing:?} of {asked:?}");
    let unshown: Vec<_> =
        there.iter().filter(|name| !asked.iter().any(|asked| asked.starts_with(name.as_str()))).collect();
    assert!(unshown.is_empty(), "metrics that the dashboard does not show: {unshown:?}");
}

/// Runs a program that checks a file; `None` where it is not installed.
fn check(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let words = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
}

#[cfg(target_os = "linux")]
#[test]
fn the_unit_is_one_that_systemd_reads() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("throughline@.service");
    // The program need not be installed here.
    let program = env!("CARGO_BIN_EXE_throughline");
    let written = text("deploy/systemd/throughline@.service").replace("/usr/bin/throughline", program);
    std::fs::write(&unit, written).unwrap();
    let Some((is_good, words)) = check("systemd-analyze", &["verify", unit.to_str().unwrap()]) else {
        return skip(&Missing::Program { name: "systemd-analyze", installed_by: "apt-get install systemd" });
    };
    // A container has no running systemd; then it says so and has read nothing.
    let own: Vec<&str> = words.lines().filter(|line| line.contains("throughline@")).collect();
    assert!(is_good || own.is_empty(), "{words}");
    assert!(own.is_empty(), "{own:?}");
}

#[test]
fn the_settings_of_the_proxy_are_ones_that_haproxy_reads() {
    let file = workspace("deploy/haproxy.cfg");
    let Some((is_good, words)) = check("haproxy", &["-c", "-f", file.to_str().unwrap()]) else {
        return skip(&Missing::Program { name: "HAProxy", installed_by: "apt-get install haproxy" });
    };
    assert!(is_good, "{words}");
}

/// A tool for the chart, where it is installed.
#[track_caller]
fn chart_tool(name: &'static str) -> Option<String> {
    let program = workspace("target/deploy-tools/bin").join(name);
    if !program.exists() {
        skip(&Missing::Program { name, installed_by: ".ci/deploy-tools" });
        return None;
    }
    Some(program.display().to_string())
}

#[test]
fn the_chart_renders_what_kubernetes_knows() {
    let (Some(helm), Some(validate)) = (chart_tool("helm"), chart_tool("kubernetes-validate")) else {
        return;
    };
    let chart = workspace("deploy/helm/throughline");
    let chart = chart.to_str().unwrap();
    let (is_good, words) = check(&helm, &["lint", "--strict", chart]).unwrap();
    assert!(is_good && !words.contains("[WARNING]"), "{words}");
    let folder = tempfile::tempdir().unwrap();
    let everything = [
        "--set",
        "serviceMonitor.enabled=true,replicas=4,image.tag=1.2.3,nodeSelector.disk=ssd,database.host=a\\,b",
        "--set",
        "tolerations[0].key=only,tolerations[0].operator=Exists,database.parameters=target_session_attrs=read-write",
        "--set-string",
        "settings.gateway\\.log=text,settings.store\\.artifacts=s3://bucket/prefix",
    ];
    let setting = Regex::new("- name: (THROUGHLINE_[A-Z_]+)").unwrap();
    for values in [&[] as &[&str], &everything] {
        let (is_good, rendered) = check(&helm, &[&["template", "check", chart], values].concat()).unwrap();
        assert!(is_good, "{rendered}");
        let named: Vec<String> = setting.captures_iter(&rendered).map(|found| found[1].to_owned()).collect();
        let different: BTreeSet<&String> = named.iter().collect();
        assert!(named.len() > 4 && different.len() == named.len(), "each setting once: {named:?}");
        let seconds = |pattern: &str| found(pattern, &rendered).pop_first().unwrap().parse::<u64>().unwrap();
        assert!(
            seconds(r"terminationGracePeriodSeconds: (\d+)")
                > seconds(r#"(?s)DRAIN_SECONDS\s+value: "(\d+)"#)
                    + seconds(r#"(?s)STOP_SECONDS\s+value: "(\d+)"#),
            "{rendered}"
        );
        let file = folder.path().join("rendered.yaml");
        std::fs::write(&file, &rendered).unwrap();
        let (is_good, words) = check(&validate, &["--strict", file.to_str().unwrap()]).unwrap();
        assert!(is_good && words.matches(" passed for resource ").count() == 3, "{words}");
        // The resource of the Prometheus operator is not one of Kubernetes itself.
        let unknown = words.matches("Couldn't find schema").count();
        assert_eq!(unknown, usize::from(!values.is_empty()), "{words}");
    }
}

#[test]
fn the_compose_file_is_one_that_compose_reads() {
    let file = workspace("deploy/compose.yaml");
    let arguments = ["-f", file.to_str().unwrap(), "--profile", "objects", "config"];
    let run = |program: &str, first: &[&str]| {
        let mut command = Command::new(program);
        command.args(first).args(arguments);
        command.env("DB_PASSWORD", "word").env("SEAL_KEYS", "ab".repeat(32)).output().ok()
    };
    let output = run("docker-compose", &[])
        .or_else(|| run("docker", &["compose"]).filter(|output| output.status.success()));
    let Some(output) = output else {
        return skip(&Missing::Program {
            name: "docker compose",
            installed_by: "apt-get install docker-compose",
        });
    };
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["gateway-one:", "gateway-two:", "proxy:", "database:", "objects:"] {
        assert!(words.contains(name), "{words}");
    }
    assert!(words.contains("postgres://throughline:word@database/throughline"), "{words}");
    // Without a password it starts nothing.
    let mut without = Command::new("docker-compose");
    without.args(arguments).env_remove("DB_PASSWORD").env_remove("SEAL_KEYS");
    if let Ok(output) = without.output() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains("see the head of the file"), "{words}");
    }
}
