//! `throughline chat` in a real terminal: the time to its prompt with a large record, and the delay of the first token on the screen
//! against a bare connection to the same server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use throughline_store::SqliteStore;
use throughline_testkit::{RecordedRequest, Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};

use crate::store::{IN_FILE, START_MS, append, percentiles, told};
use crate::store_texts::Author;
use crate::table::Table;

/// The number of timed starts.
const STARTS: usize = 21;
/// The number of timed questions, after the warm-up.
const QUESTIONS: usize = 60;
const WARM_UP: usize = 5;
/// The timeout of every wait, longer than any measured time.
const PATIENCE: Duration = Duration::from_secs(30);
const PROMPT: &str = "\u{203a} ";

/// Runs the benchmark with a generated record.
pub(crate) fn run(program: &Path, messages: usize) -> Result<String, String> {
    let program = program
        .canonicalize()
        .map_err(|error| format!("{} cannot be run: {error}; build it first", program.display()))?;
    let home = tempfile::tempdir().map_err(words)?;
    let mut table = Table::default();
    {
        let store = SqliteStore::open(&home.path().join("record.db"), START_MS).map_err(told)?;
        append(&store, &mut Author::new(11), messages, &IN_FILE, &mut Table::default())?;
    }
    table.note("what doctor says of the record", doctor(&program, home.path())?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(words)?;
    let options = UpstreamOptions {
        models: vec![ServedModel::with_window("worker", 1_000_000)],
        ..UpstreamOptions::default()
    };
    let script = Script::answering(|request| {
        Reply::text(format!("Token{} and a few more words.", number_in(request)))
    });
    let upstream = runtime.block_on(ScriptedUpstream::start_with(options, script)).map_err(words)?;
    let config = format!(
        "model: {{provider: custom, base_url: '{}/v1', default: worker, context_length: 1000000}}\n",
        upstream.url()
    );
    std::fs::write(home.path().join("config.yaml"), config).map_err(words)?;
    starts(&program, home.path(), &mut table)?;
    first_tokens(&program, home.path(), &upstream, &mut table)?;
    Ok(format!("throughline chat beside a record of {messages} messages\n\n{}", table.print()))
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn doctor(program: &Path, home: &Path) -> Result<String, String> {
    let ended = Command::new(program).arg("doctor").env("THROUGHLINE_HOME", home).output().map_err(words)?;
    if !ended.status.success() {
        return Err(format!("the record is not sound: {}", String::from_utf8_lossy(&ended.stderr)));
    }
    let said = String::from_utf8_lossy(&ended.stdout);
    Ok(said.split(':').next().unwrap_or_default().trim().to_owned())
}

/// The number at the end of a question.
fn number_in(request: &RecordedRequest) -> usize {
    let body = request.json();
    let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let said = last["content"].as_str().unwrap_or_default();
    said.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A terminal that runs the program.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Receiver<(Instant, Vec<u8>)>,
    seen: String,
    /// The time at which the last output arrived.
    seen_at: Instant,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    fn start(program: &Path, home: &Path, arguments: &[&str]) -> Result<Self, String> {
        let size = PtySize { rows: 40, cols: 100, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).map_err(words)?;
        let mut command = CommandBuilder::new(program);
        command.arg("chat");
        command.args(arguments);
        command.cwd(home);
        command.env("THROUGHLINE_HOME", home);
        command.env("TERM", "xterm-256color");
        let mut reader = pair.master.try_clone_reader().map_err(words)?;
        let keys = pair.master.take_writer().map_err(words)?;
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4_096];
            while let Ok(read) = reader.read(&mut buffer) {
                let piece = buffer.get(..read).unwrap_or_default().to_vec();
                if read == 0 || sender.send((Instant::now(), piece)).is_err() {
                    return;
                }
            }
        });
        let child = pair.slave.spawn_command(command).map_err(words)?;
        Ok(Self { child, keys, output, seen: String::new(), seen_at: Instant::now(), _master: pair.master })
    }

    fn press(&mut self, keys: &str) -> Result<(), String> {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).map_err(words)
    }

    /// Waits until this text was written since the last call; returns the time.
    fn see(&mut self, text: &str) -> Result<Instant, String> {
        loop {
            // It may have arrived together with the text of the last call.
            if let Some(found) = self.seen.find(text) {
                self.seen.drain(..found + text.len());
                return Ok(self.seen_at);
            }
            let (at, piece) = self
                .output
                .recv_timeout(PATIENCE)
                .map_err(|_| format!("`{text}` was never seen after: {}", self.seen))?;
            self.seen.push_str(&String::from_utf8_lossy(&piece));
            self.seen_at = at;
        }
    }

    fn leave(mut self) -> Result<(), String> {
        self.press("\x04")?;
        self.child.wait().map(drop).map_err(words)
    }
}

fn starts(program: &Path, home: &Path, table: &mut Table) -> Result<(), String> {
    let resumed = ["--resume", "Conversation 7"];
    for (what, arguments) in [("a new conversation", &[][..]), ("4,000 messages resumed", &resumed[..])] {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let begun = Instant::now();
            let mut terminal = Terminal::start(program, home, arguments)?;
            let prompted = terminal.see(PROMPT)?;
            times.push(prompted.duration_since(begun).as_secs_f64() * 1_000.0);
            terminal.leave()?;
        }
        let (p50, p95) = percentiles(&mut times);
        table.at_most(format!("start to prompt, {what}, p50"), p50, 100.0, "ms");
        table.note("  p95", format!("{p95:.1} ms"));
    }
    Ok(())
}

fn first_tokens(
    program: &Path,
    home: &Path,
    upstream: &ScriptedUpstream,
    table: &mut Table,
) -> Result<(), String> {
    let mut terminal = Terminal::start(program, home, &[])?;
    terminal.see(PROMPT)?;
    let mut shown = Vec::new();
    for number in 0..WARM_UP + QUESTIONS {
        terminal.press(&format!("question {number}"))?;
        let pressed = Instant::now();
        terminal.press("\r")?;
        let seen = terminal.see(&format!("Token{number}"))?;
        terminal.see(PROMPT)?;
        if number >= WARM_UP {
            shown.push(seen.duration_since(pressed).as_secs_f64() * 1_000.0);
        }
    }
    terminal.leave()?;
    let body = upstream.calls().last().map(RecordedRequest::text).ok_or("nothing was asked")?;
    let mut bare = bare_connection(&upstream.url(), &body)?;
    let (shown_p50, shown_p95) = percentiles(&mut shown);
    let (bare_p50, bare_p95) = percentiles(&mut bare);
    table.note(
        "Enter to first token on the screen, p50, p95",
        format!("{shown_p50:.2} ms, {shown_p95:.2} ms"),
    );
    table.note("the same over a bare connection, p50, p95", format!("{bare_p50:.2} ms, {bare_p95:.2} ms"));
    table.at_most("added to the first token, p50", shown_p50 - bare_p50, 5.0, "ms");
    table.at_most("added to the first token, p95", shown_p95 - bare_p95, 5.0, "ms");
    Ok(())
}

/// Measures the server alone: the same body over an open connection, up to the first token.
fn bare_connection(url: &str, body: &str) -> Result<Vec<f64>, String> {
    let host = url.trim_start_matches("http://");
    let mut connection = TcpStream::connect(host).map_err(words)?;
    connection.set_nodelay(true).map_err(words)?;
    connection.set_read_timeout(Some(PATIENCE)).map_err(words)?;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut times = Vec::new();
    let mut unread = Vec::new();
    for number in 0..WARM_UP + QUESTIONS {
        let asked = Instant::now();
        connection.write_all(request.as_bytes()).map_err(words)?;
        let first = read_until(&mut connection, &mut unread, "Token")?;
        if number >= WARM_UP {
            times.push(first.duration_since(asked).as_secs_f64() * 1_000.0);
        }
        read_until(&mut connection, &mut unread, "\r\n0\r\n\r\n")?;
    }
    Ok(times)
}

/// Reads until this text has arrived; returns the time. Text after it stays in `unread`.
fn read_until(connection: &mut TcpStream, unread: &mut Vec<u8>, text: &str) -> Result<Instant, String> {
    let mut buffer = [0u8; 4_096];
    loop {
        let at = Instant::now();
        let found = unread.windows(text.len()).position(|piece| piece == text.as_bytes());
        if let Some(found) = found {
            unread.drain(..found + text.len());
            return Ok(at);
        }
        let read = connection.read(&mut buffer).map_err(words)?;
        if read == 0 {
            return Err("the server hung up".to_owned());
        }
        unread.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
}
