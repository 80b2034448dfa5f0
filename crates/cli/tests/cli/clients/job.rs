//! A long task: so many steps, in each of which a shell prints some kilobytes, and then an end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::clients::process::{Ended, end_those_at_home, run};

/// What every client is told to do.
pub(crate) const TASK: &str = "Read every part of the archive and say when you are through with all of them.";
/// What the model says at the end.
pub(crate) const END: &str = "Every part of the archive was read.";

/// What a summary consists of.
pub(crate) const SECTIONS: [&str; 13] = [
    "Active Task",
    "Goal",
    "Constraints & Preferences",
    "Completed Actions",
    "Active State",
    "In Progress",
    "Blocked",
    "Key Decisions",
    "Resolved Questions",
    "Pending User Asks",
    "Relevant Files",
    "Remaining Work",
    "Critical Context",
];
/// Kilobytes that each step prints.
const STEP_KILOBYTES: usize = 10;
/// How long one step may take at most, on a machine that does other things too.
const STEP_TIME: Duration = Duration::from_secs(6);

/// How a client's shell is called.
#[derive(Clone, Copy)]
pub(crate) struct Shell {
    /// The tool.
    pub(crate) tool: &'static str,
    /// Its argument for the command line.
    pub(crate) argument: &'static str,
    /// Other arguments that it demands, as members of a JSON object.
    pub(crate) more: &'static str,
}

impl Shell {
    fn arguments(self, line: &str) -> String {
        let mut arguments: Value = serde_json::from_str(&format!("{{{}}}", self.more)).unwrap();
        // Some take a list of commands.
        arguments[self.argument] = if self.argument.ends_with('s') { json!([line]) } else { json!(line) };
        arguments.to_string()
    }
}

/// A task, the model that does it and the folder it is done in.
pub(crate) struct Job {
    pub(crate) upstream: ScriptedUpstream,
    pub(crate) folder: tempfile::TempDir,
    steps: usize,
}

impl Drop for Job {
    fn drop(&mut self) {
        end_those_at_home(self.folder.path());
    }
}

impl Job {
    /// A task of so many steps for a model with a window, which the upstream enforces.
    pub(crate) async fn new(
        model: &str,
        window_tokens: u64,
        kind: ServerKind,
        shell: Shell,
        steps: usize,
    ) -> Self {
        Self::with_script(model, window_tokens, kind, script(shell, steps), steps).await
    }

    /// The same for a model that does it in its own way.
    pub(crate) async fn with_script(
        model: &str,
        window_tokens: u64,
        kind: ServerKind,
        script: Script,
        steps: usize,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let options = UpstreamOptions {
            cache: Some(PrefixCache::new(CacheStyle::None)),
            models: vec![ServedModel::with_window(model, window_tokens)],
            kind,
            ..UpstreamOptions::default()
        };
        let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
        let job = Self { upstream, folder, steps };
        std::fs::write(job.work().join("archive.txt"), archive()).unwrap();
        job
    }

    /// Where the client works.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A client in this folder with an environment of its own.
    pub(crate) fn client(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work()).env_clear().env("HOME", self.folder.path()).env("PATH", path());
        command
    }

    /// Runs a client to its end.
    pub(crate) fn run(&self, client: &mut Command) -> Ended {
        let limit = STEP_TIME * u32::try_from(self.steps).unwrap();
        run(client, &self.folder.path().join("client"), limit)
    }

    /// The steps that were taken, as the shell noted them.
    pub(crate) fn taken(&self) -> Vec<usize> {
        let noted = std::fs::read_to_string(self.work().join("steps")).unwrap_or_default();
        noted.lines().map(|line| line.trim().parse().unwrap()).collect()
    }

    /// Every step was taken, without any trouble on the screen and without a summary by the client itself.
    pub(crate) fn assert_done(&self, ended: &Ended) {
        self.assert_finished(ended);
        assert_eq!(self.own_summaries(), 0, "{}", ended.screen);
    }

    /// Every step was taken, without any trouble on the screen.
    pub(crate) fn assert_finished(&self, ended: &Ended) {
        let all: Vec<usize> = (1..=self.steps).collect();
        assert!(ended.status.is_some_and(|status| status.success()), "{:?}: {}", ended.status, ended.screen);
        assert_eq!(self.taken(), all, "{}", ended.screen);
        assert!(ended.screen.contains(END), "{}", ended.screen);
        let trouble = ["API Error", "too long", "ERROR", "context window", "context length", "stream error"];
        for words in trouble {
            assert!(!ended.screen.contains(words), "{words}: {}", ended.screen);
        }
    }

    /// The window is met: there are steps it does not come to, or it makes room for itself.
    pub(crate) fn assert_met_the_window(&self, ended: &Ended) {
        let (taken, own) = (self.taken().len(), self.own_summaries());
        assert!(taken < self.steps || own > 0, "{taken} of {}: {}", self.steps, ended.screen);
    }

    /// How often the client asked for a summary of its own.
    pub(crate) fn own_summaries(&self) -> usize {
        self.upstream.calls().iter().filter(|call| call.summarising_client().is_some()).count()
    }
}

/// Takes a step with every call of the task itself. Others are made beside it: for a title, for a summary of the gateway's.
/// A summary that the client asks for itself is given by the upstream.
fn script(shell: Shell, steps: usize) -> Script {
    let taken = Arc::new(AtomicUsize::new(0));
    Script::answering(move |request| {
        let json = request.json();
        let messages = [&json["messages"], &json["input"]].into_iter().find_map(Value::as_array);
        let last = messages.and_then(|messages| messages.last()).map(Value::to_string).unwrap_or_default();
        let has_tools = json["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let asks = if has_tools { last } else { request.text() };
        if SECTIONS.iter().all(|section| asks.contains(&format!("## {section}"))) {
            return Reply::text(summary(taken.load(Ordering::Relaxed)));
        }
        if !has_tools {
            return Reply::text("Parts of the archive were read, one after the other.");
        }
        let step = taken.fetch_add(1, Ordering::Relaxed) + 1;
        if step > steps {
            return Reply::text(END);
        }
        let line = format!("echo {step} >> steps; echo part {step}; cat archive.txt");
        let call = ToolCall {
            id: format!("call_{step}"),
            name: shell.tool.to_owned(),
            arguments: shell.arguments(&line),
        };
        let parts = vec![AnswerPart::Text(format!("Part {step} comes next.")), AnswerPart::ToolCall(call)];
        Reply::answer(AnswerDraft::of_parts(parts))
    })
}

/// A summary as the gateway asks for one.
pub(crate) fn summary(step: usize) -> String {
    let section =
        |name: &&str| format!("## {name}\nParts 1 to {step} of the archive were read with the shell.\n\n");
    SECTIONS.iter().map(section).collect()
}

/// Lines that resemble notes of someone at work.
fn archive() -> String {
    let mut text = String::new();
    let mut number = 17_usize;
    while text.len() < STEP_KILOBYTES * 1024 {
        number = (number * 7_919 + 104_729) % 999_983;
        text.push_str(&format!(
            "entry {number}: crates/part_{}/src/file_{}.rs was read\n",
            number % 97,
            number % 811
        ));
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "clients are programs that need others")]
pub(crate) fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}
