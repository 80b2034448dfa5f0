//! Prints how fast text is searched by one thread: the files of a folder, or generated text, and inputs made to be slow.
//!
//! `cargo run --release -p throughline-redact --example speed -- [FOLDER] [--quick]`
//!
//! `--quick` leaves out the slow ones.

#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

use std::borrow::Cow;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use throughline_redact::Redactor;

const MEGABYTE: usize = 1_000_000;
/// Texts are searched in pieces of about the size of a message.
const MESSAGE_BYTES: usize = 16 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let redactor = Redactor::new();
    println!("built in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, text) = match arguments.iter().find(|argument| !argument.starts_with("--")) {
        Some(folder) => (folder.clone(), read_folder(Path::new(folder))?),
        None => ("generated text".to_owned(), generated(20 * MEGABYTE)),
    };
    let messages = split(&text);
    let clean: Vec<&str> = messages
        .iter()
        .copied()
        .filter(|message| matches!(redactor.redact(message), Cow::Borrowed(_)))
        .collect();
    println!(
        "{name}: {:.1} MB in {} messages, {} without a secret",
        megabytes(&messages),
        messages.len(),
        clean.len()
    );
    measure("  without a secret", &redactor, &clean);
    measure("  all of it", &redactor, &messages);
    if arguments.iter().any(|argument| argument == "--quick") {
        return Ok(());
    }
    println!("made to be slow, 1 MB each:");
    for (name, unit) in [
        ("a", "a"),
        ("=", "="),
        ("\"", "\""),
        ("\\", "\\"),
        ("-", "-"),
        ("key=", "key="),
        ("password=", "password="),
        ("PASSWORD=a;", "PASSWORD=a;"),
        ("password:", "password:"),
        ("\"password\":\"", "\"password\":\""),
        ("token ", "token "),
        ("api_key=q7Rk2Vw9Xz4B ", "api_key=q7Rk2Vw9Xz4B "),
        ("://", "://"),
        ("://a:b@", "://a:b@"),
        ("sk-", "sk-"),
        (".sk-aaaaaaaaaaaaaaaaaaaa", ".sk-aaaaaaaaaaaaaaaaaaaa"),
        (".xoxb-xxxxxxxxxxxx", ".xoxb-xxxxxxxxxxxx"),
        ("eyJ.", "eyJ."),
        (" eyJaaaaaaaaaaaaaaaaaaaa", " eyJaaaaaaaaaaaaaaaaaaaa"),
        ("Authorization: ", "Authorization: "),
        ("Cookie: a=b; ", "Cookie: a=b; "),
        ("Digest =", "authorization: digest a="),
        ("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"),
        ("----BEGIN PRIVATE KEY", "----BEGIN PRIVATE KEY"),
        ("curl -u ", "curl -u "),
        ("密码", "密码"),
        ("base64", "q7Rk2Vw9Xz4Bn6MtLp3Yq7Rk2Vw9Xz4Bn6MtLp3Y+/"),
    ] {
        let text = unit.repeat(MEGABYTE / unit.len());
        let stopwatch = Stopwatch::start();
        let findings = redactor.find(&text).len();
        println!("  {:8.1} ms  {name:?} ({findings} findings)", stopwatch.millis());
    }
    Ok(())
}

/// Measures the time this thread spent computing, where the system says so (Linux), else the time that passed: other
/// work on the machine should not count.
struct Stopwatch {
    started: Instant,
    computed: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { started: Instant::now(), computed: computed() }
    }

    fn millis(&self) -> f64 {
        let spent = match (self.computed, computed()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => self.started.elapsed(),
        };
        spent.as_secs_f64() * 1e3
    }
}

fn computed() -> Option<Duration> {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(statistics.split_whitespace().next()?.parse().ok()?))
}

fn measure(name: &str, redactor: &Redactor, messages: &[&str]) {
    const ROUNDS: usize = 10;
    let stopwatch = Stopwatch::start();
    for _ in 0..ROUNDS {
        std::hint::black_box(messages.iter().map(|message| redactor.redact(message).len()).sum::<usize>());
    }
    let megabytes = megabytes(messages) * ROUNDS as f64;
    println!("{name}: {:.0} MB/s (mean of {ROUNDS} rounds)", megabytes / stopwatch.millis() * 1e3);
}

fn megabytes(messages: &[&str]) -> f64 {
    messages.iter().map(|message| message.len()).sum::<usize>() as f64 / MEGABYTE as f64
}

fn split(text: &str) -> Vec<&str> {
    let mut messages = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (message, after) = rest.split_at(rest.floor_char_boundary(MESSAGE_BYTES.min(rest.len())));
        messages.push(message);
        rest = after;
    }
    messages
}

fn read_folder(folder: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
            continue;
        }
        let bytes = fs::read(&path)?;
        let mut content = String::new();
        if path.extension().is_some_and(|extension| extension == "gz") {
            if GzDecoder::new(bytes.as_slice()).read_to_string(&mut content).is_err() {
                continue;
            }
        } else if let Ok(plain) = String::from_utf8(bytes) {
            content = plain;
        }
        text.push_str(&content);
    }
    Ok(text)
}

/// Prose, code, configuration, logs and other scripts, with the words that make a scanner look twice.
fn generated(bytes: usize) -> String {
    const PIECES: &[&str] = &[
        "The summary keeps the latest request word for word and names every file that was read or changed.\n",
        "    let budget = compute_token_budget(&messages, settings.max_tokens);\n",
        "    if token.kind == TokenKind::Ident && !self.keywords.contains(&token.text) {\n        return None;\n    }\n",
        "def authenticate(username: str, password: str) -> Token:\n    return Token(secrets.token_urlsafe(32))\n",
        "api_key = os.getenv(\"API_KEY\")\nMAX_TOKENS=100\ntoken_count: 500\n",
        "2024-05-01T10:00:00.123Z INFO request req_011CSHoEeqs5C35K2UUqR7Fy took 153 ms, 8412 tokens\n",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8\nAuthor: Jane Doe <jane@example.com>\n",
        "{\"type\":\"tool_use\",\"id\":\"toolu_01BUu91huguWsbndqfU7cfVC\",\"name\":\"Read\",\"input\":{\"path\":\"src/auth/token.rs\"}}\n",
        "see https://docs.example.com/guide/authentication#tokens for how keys are rotated\n",
        "[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nregex = \"1\"\n",
        "压缩后的摘要保留最近的请求，并列出读取或修改过的每个文件。\n",
        "Сводка сохраняет последний запрос дословно и называет каждый изменённый файл.\n",
        "| name | value | passed |\n|---|---|---|\n| keys | 12 | yes |\n",
        "test result: ok. 128 passed; 0 failed; 3 ignored; 0 measured; finished in 0.42s\n",
    ];
    let mut text = String::with_capacity(bytes + 256);
    let mut state = 1usize;
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(PIECES[(state >> 33) % PIECES.len()]);
    }
    text
}
