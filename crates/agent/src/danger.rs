//! Recognises dangerous commands. Every command needs approval; for a dangerous one the question names the danger, and it
//! cannot be approved for a whole session.
//!
//! A command line is parsed by a shell's grammar (`shell`), as is every command line within it: in `sh -c`, `eval`, here-documents and
//! text piped into a shell. Parts: `program` the effects of single programs, `wrapper` programs that run others, `kind` the kinds of
//! danger, `places` sensitive files whichever program uses them, `code` other languages, judged by their words alone.
//!
//! This is not a sandbox: programs can do anything, and files and variables are not read. It prevents approvals by accident. A command
//! that cannot be parsed, or that is only composed at run time, counts as dangerous.

mod code;
mod kind;
mod places;
mod program;
mod wrapper;

use std::ops::Range;

use crate::shell::{Redirect, Script, Step, Word};
use places::Use;

pub(crate) use kind::{Danger, FileKind};

/// The depth to which nested command lines are parsed. People nest two or three.
const MAX_NESTED: usize = 8;
/// The most command lines that are parsed for one command.
const MAX_SCRIPTS: usize = 64;

/// Returns the dangers of a command, the worst first. `files` returns the kind of file at a path.
#[must_use]
pub(crate) fn dangers_of(command: &str, files: &dyn Fn(&str) -> FileKind) -> Vec<Danger> {
    let mut analysis = Analysis { files, found: Vec::new(), scripts: 0 };
    analysis.script(command, 0);
    let mut found = analysis.found;
    found.sort_unstable();
    found.dedup();
    found
}

struct Analysis<'f> {
    files: &'f dyn Fn(&str) -> FileKind,
    found: Vec<Danger>,
    scripts: usize,
}

impl Analysis<'_> {
    fn add(&mut self, danger: Danger) {
        self.found.push(danger);
    }

    fn file(&self, path: &str) -> FileKind {
        (self.files)(path)
    }

    /// Checks a command line at this depth of nesting.
    fn script(&mut self, text: &str, depth: usize) {
        self.scripts += 1;
        if depth > MAX_NESTED || self.scripts > MAX_SCRIPTS {
            self.add(Danger::Unclear);
            return;
        }
        let script = Script::read(text);
        if !script.is_understood {
            self.add(Danger::Unclear);
        }
        // The shell joins continued lines before it splits words; the grammar does so only between words.
        if text.contains("\\\n") {
            self.script(&text.replace("\\\n", ""), depth + 1);
        }
        if ["/dev/tcp/", "/dev/udp/"].iter().any(|place| text.contains(place)) {
            self.add(Danger::Sends);
        }
        for step in &script.steps {
            self.step(&script, step, depth);
        }
        for (name, value) in
            script.assignments.iter().chain(script.steps.iter().flat_map(|step| &step.assignments))
        {
            self.assignment(name, value, depth);
        }
        self.pipelines(&script, depth);
        self.files_written(&script);
        self.fetched_files(&script);
        if script.functions.iter().any(|function| floods(&script, &function.name, &function.body)) {
            self.add(Danger::Floods);
        }
        for inside in &script.double_parentheses {
            self.only_if_understood(inside, depth);
        }
    }

    /// Checks text that is arithmetic in some shells and commands in others. Its dangers as commands count if it parses as commands.
    fn only_if_understood(&mut self, text: &str, depth: usize) {
        let before = std::mem::take(&mut self.found);
        self.script(text, depth + 1);
        self.found.retain(|danger| *danger != Danger::Unclear);
        self.found.extend(before);
    }

    /// Checks one program, without the wrappers before it.
    fn step(&mut self, script: &Script, step: &Step, depth: usize) {
        let mut words = step.words.as_slice();
        // Every iteration removes at least one word.
        while let Some(first) = words.first() {
            if !first.is_fixed || first.text.contains(['*', '?', '[', '{']) {
                self.add(Danger::Unclear);
            }
            self.program(script, words);
            match wrapper::inner(words) {
                Some(wrapper::Inner::Words(rest)) => words = rest,
                Some(wrapper::Inner::Script(text)) => {
                    self.script(&text, depth + 1);
                    break;
                }
                None => break,
            }
        }
        let effective = wrapper::effective(&step.words);
        if let (Some(input), Some(how)) = (&step.input, program::runs_input(effective)) {
            self.given(&input.text, how, depth);
        }
    }

    /// Checks code that is given as text.
    fn given(&mut self, text: &str, how: program::Language, depth: usize) {
        match how {
            program::Language::Shell => self.script(text, depth + 1),
            program::Language::Other => self.found.extend(code::dangers(text)),
        }
    }

    /// Checks pipes into programs that run their input.
    fn pipelines(&mut self, script: &Script, depth: usize) {
        let mut runs: Vec<(Vec<Range<usize>>, usize)> = Vec::new();
        for stages in &script.pipelines {
            for (at, stage) in stages.iter().enumerate().skip(1) {
                let before: Vec<Range<usize>> = stages.iter().take(at).cloned().collect();
                runs.extend(stage.clone().map(|step| (before.clone(), step)));
            }
        }
        // `tee >(sh)` runs whatever passes through the pipe.
        for (at, step) in script.steps.iter().enumerate() {
            let feeds = step.words.iter().flat_map(|word| &word.feeds).flat_map(Range::clone);
            runs.extend(feeds.map(|fed| (std::iter::once(0..at + 1).collect(), fed)));
        }
        for (before, at) in runs {
            let Some(step) = script.steps.get(at).filter(|step| step.input.is_none()) else { continue };
            let Some(how) = program::runs_input(wrapper::effective(&step.words)) else { continue };
            let sources: Vec<&Step> =
                before.iter().flat_map(|range| script.steps.get(range.clone()).unwrap_or_default()).collect();
            if sources.iter().any(|source| program::fetches(wrapper::effective(&source.words))) {
                self.add(Danger::RunsFetched);
                continue;
            }
            match printed(&sources) {
                Some(text) => self.given(&text, how, depth),
                None => self.add(Danger::Unclear),
            }
        }
    }

    fn files_written(&mut self, script: &Script) {
        for redirected in &script.redirects {
            let file = redirected.file.text.as_str();
            let how = if redirected.redirect == Redirect::Reads { Use::Reads } else { Use::Writes };
            self.found.extend(places::danger(file, how));
            if redirected.redirect == Redirect::Replaces && self.file(file) == FileKind::File {
                self.add(Danger::Replaces);
            }
        }
    }

    /// Checks for files that are downloaded and run in the same line.
    fn fetched_files(&mut self, script: &Script) {
        let mut files: Vec<String> = Vec::new();
        for (at, step) in script.steps.iter().enumerate() {
            let words = wrapper::effective(&step.words);
            if !program::fetches(words) {
                continue;
            }
            files.extend(program::saved_as(words));
            let is_of_step = |range: &Range<usize>| range.contains(&at);
            let redirected = script.redirects.iter().filter(|redirected| is_of_step(&redirected.steps));
            files.extend(redirected.map(|redirected| redirected.file.text.clone()));
            // `curl x | tee file`
            let downstream = script.pipelines.iter().filter(|stages| stages.iter().any(is_of_step)).flatten();
            for step in downstream.flat_map(|range| script.steps.get(range.clone()).unwrap_or_default()) {
                if program::name(&step.words) == "tee" {
                    files.extend(step.words.iter().skip(1).map(|word| word.text.clone()));
                }
            }
        }
        let plain = |file: &str| file.trim_start_matches("./").to_owned();
        let files: Vec<String> =
            files.iter().map(|file| plain(file)).filter(|file| !file.is_empty()).collect();
        let is_run = script.steps.iter().any(|step| {
            let words = wrapper::effective(&step.words);
            let named = |word: &Word| files.contains(&plain(&word.text));
            words.first().is_some_and(named) || program::runs_file(words) && words.iter().skip(1).any(named)
        });
        if is_run {
            self.add(Danger::RunsFetched);
        }
    }

    /// Checks variables that make other programs run a command.
    fn assignment(&mut self, name: &str, value: &Word, depth: usize) {
        let is_command = matches!(
            name,
            "PAGER"
                | "EDITOR"
                | "VISUAL"
                | "GIT_PAGER"
                | "GIT_EDITOR"
                | "GIT_SSH"
                | "GIT_SSH_COMMAND"
                | "GIT_ASKPASS"
                | "SSH_ASKPASS"
                | "GIT_EXTERNAL_DIFF"
                | "GIT_SEQUENCE_EDITOR"
                | "RUSTC_WRAPPER"
                | "MANPAGER"
        );
        match name {
            "LD_PRELOAD"
            | "LD_AUDIT"
            | "DYLD_INSERT_LIBRARIES"
            | "BASH_ENV"
            | "ENV"
            | "PROMPT_COMMAND"
            | "PERL5OPT"
            | "RUBYOPT"
                if !value.text.is_empty() =>
            {
                self.add(Danger::Unclear);
            }
            _ if is_command && !value.text.is_empty() => self.script(&value.text, depth + 1),
            _ => {}
        }
    }
}

/// The output of these programs, if they only print text of the command line; otherwise `None`.
fn printed(sources: &[&Step]) -> Option<String> {
    let mut out = String::new();
    for step in sources {
        let arguments = step.words.get(1..).unwrap_or_default();
        match program::name(&step.words) {
            "echo" | "printf" => {
                let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
                let words: Vec<&str> = words
                    .into_iter()
                    .skip_while(|word| matches!(*word, "-n" | "-e" | "-ne" | "-E"))
                    .collect();
                out.push_str(&words.join(" ").replace("\\n", "\n"));
                out.push('\n');
            }
            "cat" if arguments.is_empty() => out.push_str(&step.input.as_ref()?.text),
            "tee" | "true" | "" => {}
            _ => return None,
        }
    }
    (!out.trim().is_empty()).then_some(out)
}

/// Whether a function calls itself more than once, or in the background, as in `:(){ :|:& };:`.
fn floods(script: &Script, name: &str, body: &Range<usize>) -> bool {
    let is_call = |at: &usize| {
        script.steps.get(*at).and_then(|step| step.words.first()).is_some_and(|word| word.text == name)
    };
    let calls: Vec<usize> = body.clone().filter(is_call).collect();
    let in_pipe = script.pipelines.iter().any(|stages| {
        stages.len() > 1 && calls.iter().any(|call| stages.iter().any(|stage| stage.contains(call)))
    });
    calls.len() > 1 || in_pipe
}

#[cfg(test)]
#[path = "danger_tests.rs"]
mod tests;
