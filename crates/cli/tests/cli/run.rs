//! `throughline run` and `throughline status`: a client behind a gateway that starts and ends with it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use throughline_testkit::{Reply, Script, ScriptedUpstream};

use crate::harness::{NOW, World};
use crate::terminal::Terminal;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The file for which the client waits before each turn but the first, if it is named in its environment.
const WAIT: &str = "CLIENT_WAITS_FOR";
/// How many turns it takes; a test program that is not told so is not the client.
const TURNS: &str = "CLIENT_TURNS";

/// What `run` starts in these tests, a program of the usual kind: it finds the model by OPENAI_BASE_URL. Does nothing where
/// it runs as a test.
#[test]
fn client() {
    let Some(turns) = variable(TURNS).and_then(|turns| turns.parse::<usize>().ok()) else { return };
    let url = format!("{}/chat/completions", variable("OPENAI_BASE_URL").unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut messages = Vec::new();
    for turn in 1..=turns {
        if let Some(file) = variable(WAIT).filter(|_| turn > 1) {
            until("the file", || PathBuf::from(&file).exists());
        }
        messages.push(json!({ "role": "user", "content": format!("question {turn}") }));
        let body = json!({ "model": "worker", "messages": messages });
        let answer = until_some("an answer", || runtime.block_on(post(&url, &body)));
        println!("answer {turn}: {answer}");
        messages.push(json!({ "role": "assistant", "content": answer }));
    }
}

/// The words of an answer; `None` where nobody listens.
async fn post(url: &str, body: &Value) -> Option<String> {
    throughline_provider::Client::install_crypto();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(url).header("content-type", "application/json").body(body.to_string());
    let answer = request.send().await.ok()?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    answer["choices"][0]["message"]["content"].as_str().map(str::to_owned)
}

#[expect(clippy::disallowed_methods, reason = "the client is a program of its own")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn until(what: &str, fits: impl Fn() -> bool) {
    until_some(what, || fits().then_some(()));
}

fn until_some<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Model {
    upstream: ScriptedUpstream,
    _runtime: tokio::runtime::Runtime,
}

fn model() -> Model {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let script = Script::answering(|_| Reply::text("Rivers run to the sea."));
    let upstream = runtime.block_on(ScriptedUpstream::start(script)).unwrap();
    Model { upstream, _runtime: runtime }
}

/// Arguments that start the client.
fn arguments<'a>(upstream: &'a str, program: &'a str) -> Vec<&'a str> {
    vec!["run", "--upstream", upstream, "--", program, "--exact", "run::client", "--nocapture"]
}

fn this_program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// A run in the background.
fn start(world: &World, arguments: &[&str], env: &[(&str, &str)]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(arguments)
        .current_dir(world.path(""))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("THROUGHLINE_HOME", world.home())
        .env("HOME", world.user())
        .env("THROUGHLINE_NOW", NOW)
        .env("TZ", "UTC")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The gateways that `status` knows of.
fn gateways(world: &World) -> Vec<Value> {
    // A record that another process is just making cannot be read yet.
    let status = until_some("the status", || {
        let status = world.run(&["status", "--json"]);
        (status.code == Some(0)).then_some(status)
    });
    status.json()["gateways"].as_array().unwrap().clone()
}

#[test]
fn a_program_keeps_its_arguments_its_input_its_output_and_its_exit_code() {
    let (world, model) = (World::new(), model());
    let script = "cat; printf '%s|' \"$@\"; exit 7";
    let url = model.upstream.url();
    let line = ["run", "--upstream", &url, "--", "/bin/sh", "-c", script, "sh", "two words", "--color", "*"];
    let ended = world.run_with(&line, b"piped\n", &[]);
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert_eq!(ended.text(), "piped\ntwo words|--color|*|");
    assert!(ended.stderr.contains("no request of sh came through the gateway"), "{}", ended.stderr);
    let line = ["run", "--quiet", "--upstream", &url, "/bin/sh", "-c", "kill -TERM $$"];
    let ended = world.run_with(&line, b"", &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(128 + 15), ""));
}

#[test]
fn calls_are_recorded_and_counted_and_the_gateway_ends_with_the_run() {
    let (world, model) = (World::new(), model());
    let (url, program) = (model.upstream.url(), this_program());
    let ended = world.run_with(&arguments(&url, &program), b"", &[(TURNS, "2")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.text().contains("answer 2: Rivers run to the sea."), "{}", ended.text());
    assert!(ended.stderr.contains("2 calls"), "{}", ended.stderr);
    assert!(ended.stderr.contains("no compactions; see `throughline sessions show "), "{}", ended.stderr);
    assert_eq!(model.upstream.calls().len(), 2);
    let sessions = world.run(&["sessions", "--json"]);
    assert_eq!(sessions.json()["sessions"].as_array().unwrap().len(), 1, "{}", sessions.text());
    until("the end of the gateway", || gateways(&world).is_empty());
    let status = world.run(&["status"]);
    assert!(status.text().starts_with("Gateway   none"), "{}", status.text());
    assert!(status.text().contains("2 calls"), "{}", status.text());
    let saved = world.run(&["status", "--json"]).json()["saved_micro_usd"].clone();
    assert_eq!(saved, 0, "nothing was compacted");
}

#[test]
fn two_runs_share_a_gateway_and_are_counted_apart() {
    let (world, model) = (World::new(), model());
    let (url, program, file) = (model.upstream.url(), this_program(), world.path("go on"));
    let env = [(TURNS, "2"), (WAIT, file.to_str().unwrap())];
    let first = start(&world, &arguments(&url, &program), &env);
    until("the first call", || model.upstream.calls().len() == 1);
    let second = start(&world, &arguments(&url, &program), &env);
    until("the second call", || model.upstream.calls().len() == 2);
    let running = gateways(&world);
    assert_eq!(running.len(), 1, "{running:?}");
    std::fs::write(&file, "").unwrap();
    for run in [first, second] {
        let (code, stdout, stderr) = ended(run);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("answer 2:"), "{stdout}");
        assert!(stderr.contains("2 calls"), "{stderr}");
    }
    until("the end of the gateway", || gateways(&world).is_empty());
}

/// `serve` with an upstream of its own; the run names none.
#[test]
fn a_run_uses_the_gateway_of_serve_and_leaves_it_running() {
    let (world, model) = (World::new(), model());
    let (url, program) = (model.upstream.url(), this_program());
    let mut serve = start(&world, &["serve", "--bind", "127.0.0.1:0", "--upstream", &url], &[]);
    let gateway = until_some("the gateway", || gateways(&world).pop());
    let line = ["run", "--", &program, "--exact", "run::client", "--nocapture"];
    let ended = world.run_with(&line, b"", &[(TURNS, "1")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("sends requests to {url}")), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 call"), "{}", ended.stderr);
    assert_eq!(gateways(&world), [gateway]);
    serve.kill().unwrap();
    serve.wait().unwrap();
}

#[test]
fn a_gateway_that_dies_is_started_again_at_the_same_address() {
    let (world, model) = (World::new(), model());
    let (url, program, file) = (model.upstream.url(), this_program(), world.path("go on"));
    let run = start(&world, &arguments(&url, &program), &[(TURNS, "2"), (WAIT, file.to_str().unwrap())]);
    // A gateway that died in the middle of the call would be asked the same again, in another conversation.
    until("the first answer", || {
        let status = world.run(&["status", "--json"]);
        status.code == Some(0) && status.json()["today"]["total"]["calls"] == 1
    });
    let before = gateways(&world).remove(0);
    let process = i32::try_from(before["process_id"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).unwrap();
    let after = until_some("another gateway", || {
        gateways(&world).into_iter().find(|gateway| gateway["process_id"] != before["process_id"])
    });
    assert_eq!(after["url"], before["url"]);
    std::fs::write(&file, "").unwrap();
    let (code, stdout, stderr) = ended(run);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("answer 2:"), "{stdout}");
    assert!(stderr.contains(" call") && !stderr.contains("no request"), "{stderr}");
    let sessions = world.run(&["sessions", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "one conversation: {sessions}");
}

#[test]
fn a_gateway_that_cannot_start_is_said_and_the_client_starts_directly_if_allowed() {
    let world = World::with_config("gateway: {bind: nowhere}\ncompression: {threshold: much}\n");
    let ended = world.run(&["run", "/bin/sh", "-c", "echo started"]);
    assert_eq!((ended.code, ended.text().as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("the gateway did not start"), "{}", ended.stderr);
    assert!(ended.stderr.contains("compression.threshold"), "{}", ended.stderr);
    let ended = world.run(&["run", "--or-direct", "/bin/sh", "-c", "echo ${OPENAI_BASE_URL-direct}"]);
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), "direct\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("sh is started without the gateway"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_started_is_said() {
    let world = World::new();
    for (name, code, hint) in [
        ("claude", 6, "npm install"),
        ("no-such-program", 6, "claude, codex"),
        ("sdk", 2, "--show python"),
        ("--nonsense", 2, "come before the client's name"),
    ] {
        let ended = world.run(&["run", name]);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{}", ended.stderr);
        assert!(gateways(&world).is_empty());
    }
    assert_eq!(world.run(&["run"]).code, Some(2));
}

#[test]
fn a_client_that_is_newer_than_those_that_were_tried_works_and_is_named_once() {
    use std::os::unix::fs::PermissionsExt as _;
    let (world, model) = (World::new(), model());
    let claude = world.path("claude");
    std::fs::write(&claude, "#!/bin/sh\n[ \"$1\" = --version ] && echo '99.0.1 (Claude Code)'\nexit 0\n")
        .unwrap();
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path("").display());
    let run =
        || world.run_with(&["run", "--upstream", &model.upstream.url(), "claude"], b"", &[("PATH", &path)]);
    let first = run();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.contains("Claude Code 99.0.1 is newer than 2."), "{}", first.stderr);
    assert!(!run().stderr.contains("newer"));
}

#[test]
fn a_home_that_cannot_be_written_is_named_and_the_client_starts_directly_if_allowed() {
    let world = World::new();
    let home = [("THROUGHLINE_HOME", "/dev/null/home")];
    let ended = world.run_with(&["run", "/bin/sh", "-c", "echo started"], b"", &home);
    assert_eq!((ended.code, ended.text().as_str()), (Some(5), ""), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("/dev/null/home") && ended.stderr.contains("--or-direct"),
        "{}",
        ended.stderr
    );
    let ended = world.run_with(&["run", "--or-direct", "/bin/sh", "-c", "echo started"], b"", &home);
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), "started\n"), "{}", ended.stderr);
}

#[test]
fn keys_of_the_terminal_reach_the_client_and_its_size_is_the_terminal_s() {
    let (world, model) = (World::new(), model());
    let script = "trap 'echo caught; exit 5' INT; stty size; while :; do sleep 0.05; done";
    let url = model.upstream.url();
    let line = ["run", "--upstream", &url, "--", "/bin/sh", "-c", script];
    let mut terminal = Terminal::start(&world, &line);
    terminal.see("40 90");
    terminal.press("\u{3}");
    terminal.see("caught");
    assert_eq!(terminal.end(), 5);
}

#[test]
fn a_run_stops_with_its_client_and_goes_on_with_it() {
    let (world, model) = (World::new(), model());
    let url = model.upstream.url();
    let line = ["run", "--upstream", &url, "--", "/bin/sh", "-c", "kill -STOP $$; exit 3"];
    let run = start(&world, &line, &[]);
    let process = Pid::from_raw(run.id().cast_signed()).unwrap();
    until("the stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", run.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    });
    kill_process(process, Signal::CONT).unwrap();
    assert_eq!(ended(run).0, Some(3));
}

#[test]
fn a_run_that_is_told_to_end_ends_its_client() {
    let (world, model) = (World::new(), model());
    let (url, file) = (model.upstream.url(), world.path("ready"));
    let script = format!("trap 'exit 9' TERM; : > '{}'; while :; do sleep 0.05; done", file.display());
    let run = start(&world, &["run", "--upstream", &url, "--", "/bin/sh", "-c", &script], &[]);
    until("the client", || file.exists());
    kill_process(Pid::from_raw(run.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(ended(run).0, Some(9));
}

/// A shell with job control inside of a run, and another run inside of that.
#[test]
fn the_stop_key_stops_a_run_and_the_shell_brings_it_back() {
    let (world, model) = (World::new(), model());
    let url = model.upstream.url();
    let mut terminal =
        Terminal::start(&world, &["run", "--quiet", "--upstream", &url, "--", "/bin/bash", "--norc", "-i"]);
    let script = "echo be''gun; read line; echo \"got $line\"; exit 4";
    terminal.press("PS1='ready> '\r");
    terminal.see("ready>");
    terminal.press(&format!(
        "{} run --quiet --upstream {url} -- /bin/sh -c '{script}'\r",
        env!("CARGO_BIN_EXE_throughline")
    ));
    terminal.see("begun");
    terminal.press("\u{1a}");
    terminal.see("Stopped");
    // Both runs use one gateway.
    assert_eq!(gateways(&world).len(), 1);
    terminal.press("fg; echo code-$?\r");
    // The shell names the command once the terminal is the command's: what is typed before would be read in the shell's mode.
    terminal.until("the command in the foreground", |screen| {
        screen.matches("run --quiet --upstream").count() == 4
    });
    terminal.press("two words\r");
    terminal.see("got two words");
    terminal.see("code-4");
    terminal.resize(30, 70);
    terminal.press("stty size\r");
    terminal.see("30 70");
    terminal.press("exit 6\r");
    assert_eq!(terminal.end(), 6);
}
