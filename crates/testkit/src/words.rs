//! Text of generated conversations: what users ask and models answer, in many scripts, with the exact strings that such text contains
//! (paths, names, numbers, hashes, addresses).

use std::fmt::Write as _;

use crate::rng::Rng;

const REQUESTS: &[&str] = &[
    "Please fix the failing test in {path}.",
    "Why does {name} return {number} instead of an error?",
    "Add a --dry-run flag to the import command, and document it.",
    "No, do not touch {path}. I said only the parser.",
    "The build is red since {hash}. Find out which change did it.",
    "Always use tabs in the Makefile, and never commit generated files.",
    "Rename {name} to something that explains itself, everywhere.",
    "Look at {url} and tell me whether we are affected.",
    "Set the limit to {number} and run the whole suite again.",
    "Thanks. Now write the migration for the new column in {path}.",
    "Can you explain how {name} works before changing anything?",
    "Revert that. The port has to stay {number}, other services depend on it.",
    "What is left to do?",
    "go on",
    "yes",
];

const FOREIGN_REQUESTS: &[&str] = &[
    "Bitte prüfe, warum {name} bei Umlauten (äöüß) abbricht, und ändere nur {path}.",
    "Corrige l'erreur « dépassement » dans {path}, s'il te plaît, et garde la limite à {number}.",
    "¿Por qué falla {name}? Añade una prueba que lo demuestre en {path}.",
    "请修复 {path} 里的解析错误，不要改动公开接口，超时保持 {number} 毫秒。",
    "{name} の戻り値が空になる原因を調べて、{path} にテストを追加してください。",
    "{path} 파일에서 {name} 함수가 왜 {number}번 호출되는지 확인해 주세요.",
    "Почему {name} возвращает пустой список? Исправь в {path}, но не трогай тесты.",
    "لماذا تفشل الدالة {name} عند القيمة {number}؟ أصلح الملف {path} فقط.",
    "למה הפונקציה {name} מחזירה {number}? תקן את {path} בלי לשנות את הממשק.",
    "{path} में {name} की गलती ठीक करो, सीमा {number} ही रहे।",
    "ช่วยแก้ {name} ในไฟล์ {path} ให้รองรับ {number} รายการ",
    "🚨 {name} is broken 😱 in {path} 👩‍💻🧵 fix it pls 🙏🏽 (we need {number} by Friday)",
    "Ünïcödé Zäłgo t̸e̷x̶t̵ in {path} — does {name} survive it? ∑ ≠ ∏, ½ × {number}",
];

const ANSWERS: &[&str] = &[
    "I will look at {path} first.",
    "The cause is in {name}: it compares bytes where characters are meant.",
    "Done. {number} tests pass, none fails. The change is in {path}.",
    "I changed {name} so that an empty input is an error, and added a test for it.",
    "Two ways are open: keep the old format and convert on read, or migrate once. I chose to convert on read because nothing has to be stopped.",
    "That commit ({hash}) introduced it: the timeout went from 30 to {number} seconds.",
    "The page at {url} says versions before 2.{number} are affected; we are not.",
    "I could not finish this: {path} is not writable. Shall I write to a copy instead?",
    "## What was done\n\n1. Read `{path}`\n2. Changed `{name}`\n3. Ran the tests: **{number} passed**\n\n```rust\nlet limit = {number};\n```",
];

const FOREIGN_ANSWERS: &[&str] = &[
    "Erledigt: {name} zählt jetzt Zeichen statt Bytes, die Grenze bleibt {number}.",
    "已经修复：{name} 现在按字符计数，改动只在 {path}。",
    "{path} を修正しました。{number} 件のテストがすべて成功しています。",
    "완료했습니다. {name} 함수의 한계값은 {number}입니다.",
    "Готово: ошибка была в {name}, исправлено в {path}.",
    "تم الإصلاح في {path}، والحد بقي {number}.",
    "✅ {name} fixed 🎉 — {number} green, 0 red 🟢",
];

const THOUGHTS: &[&str] = &[
    "The user wants a small change. I should read {path} before editing, then run the tests.",
    "{name} is called from two places; changing its result breaks the second. Better to add a new function.",
    "Exit status {number} means the linker was killed. Memory, most likely. Try with fewer jobs.",
    "I have to be careful: the user said not to touch the generated files.",
];

const REMINDERS: &[&str] = &[
    "<system-reminder>\nThe to-do list is empty. Do not mention this note.\n</system-reminder>",
    "<system-reminder>{path} was changed on disk, line {number}.</system-reminder>",
    "<command-name>/model</command-name>\n<command-message>model</command-message>",
    "<local-command-stdout>Set model to the default.</local-command-stdout>",
    "<environment_context>\n  <cwd>/srv/app</cwd>\n  <shell>zsh</shell>\n</environment_context>",
    "<task-notification>\n<status>done</status>\n<summary>{number} files scanned</summary>\n</task-notification>",
    "[Request interrupted by user]",
];

const INSTRUCTIONS: &[&str] = &[
    "You are a careful programming assistant. Work in small steps and say what you did.",
    "Answer in the language of the user. The project lives in /srv/app; tests run with `make test`.",
    "Never print secrets. Ask before deleting anything. The limit for one file is {number} lines.",
];

const DIRECTORIES: &[&str] =
    &["src", "src/parser", "crates/core/src", "tests", "docs", "web/app", "internal/store", "migrations"];
const STEMS: &[&str] = &[
    "main",
    "lexer",
    "session_store",
    "config",
    "retry",
    "http_client",
    "ledger",
    "index",
    "worker",
    "auth",
    "billing",
    "README",
    "größen",
    "数据",
    "a b",
];
const ENDINGS: &[&str] = &["rs", "py", "ts", "go", "md", "yaml", "sql", "tsx", "toml"];
const NAMES: &[&str] = &[
    "parse_header",
    "SessionStore::open",
    "computeTotals",
    "retry_with_backoff",
    "handle_upload",
    "TokenBucket",
    "merge_intervals",
    "load_config",
    "flushQueue",
    "is_expired",
];
const HOSTS: &[&str] =
    &["docs.example.org", "github.example.com", "status.example.net", "localhost:8443", "wiki.example.io"];

/// The scripts of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    English,
    /// All scripts, changing from message to message.
    World,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Request,
    Answer,
    Thought,
    Reminder,
    Instructions,
}

/// A text of a kind, with paths, names and numbers.
pub(crate) fn text(rng: &mut Rng, voice: Voice, kind: Kind) -> String {
    let foreign = voice == Voice::World && rng.chance(75);
    let templates = match kind {
        Kind::Request if foreign => FOREIGN_REQUESTS,
        Kind::Request => REQUESTS,
        Kind::Answer if foreign => FOREIGN_ANSWERS,
        Kind::Answer => ANSWERS,
        Kind::Thought => THOUGHTS,
        Kind::Reminder => REMINDERS,
        Kind::Instructions => INSTRUCTIONS,
    };
    let mut out = String::new();
    let template = rng.pick(templates);
    fill(rng, template, &mut out);
    // Some texts have several paragraphs, so that texts of one kind differ in size.
    while matches!(kind, Kind::Request | Kind::Answer | Kind::Thought) && rng.chance(18) {
        out.push_str("\n\n");
        let template = rng.pick(templates);
        fill(rng, template, &mut out);
    }
    out
}

/// Writes a template with `{path}` and similar placeholders replaced.
pub(crate) fn fill(rng: &mut Rng, template: &str, out: &mut String) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((slot, remaining)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        match slot {
            "path" => path(rng, out),
            "name" => out.push_str(rng.pick(NAMES)),
            "number" => number(rng, out),
            "hash" => hash(rng, 7, out),
            "url" => url(rng, out),
            other => {
                out.push('{');
                out.push_str(other);
                out.push('}');
            }
        }
        rest = remaining;
    }
    out.push_str(rest);
}

/// A path as tools and people write them, relative or absolute.
pub(crate) fn path(rng: &mut Rng, out: &mut String) {
    if rng.chance(40) {
        out.push_str("/srv/app/");
    }
    out.push_str(rng.pick(DIRECTORIES));
    out.push('/');
    out.push_str(rng.pick(STEMS));
    out.push('.');
    out.push_str(rng.pick(ENDINGS));
}

/// A path in a new string.
pub(crate) fn new_path(rng: &mut Rng) -> String {
    let mut out = String::new();
    path(rng, &mut out);
    out
}

/// The name of a function or type.
pub(crate) fn name(rng: &mut Rng) -> &'static str {
    rng.pick(NAMES)
}

/// A number of one to six digits.
pub(crate) fn number(rng: &mut Rng, out: &mut String) {
    let digits = rng.between(1, 6);
    let bound = 10usize.pow(u32::try_from(digits).unwrap_or(1));
    let _ = write!(out, "{}", rng.below(bound));
}

/// A hexadecimal hash.
pub(crate) fn hash(rng: &mut Rng, digits: usize, out: &mut String) {
    let mut bits = 0;
    for at in 0..digits {
        if at % 16 == 0 {
            bits = rng.next_u64();
        }
        out.push(char::from_digit((bits & 15) as u32, 16).unwrap_or('0'));
        bits >>= 4;
    }
}

/// A web address.
pub(crate) fn url(rng: &mut Rng, out: &mut String) {
    out.push_str("https://");
    out.push_str(rng.pick(HOSTS));
    out.push('/');
    out.push_str(rng.pick(STEMS));
    out.push_str("?page=");
    number(rng, out);
}

/// Base64 text, as in signatures and images.
pub(crate) fn base64(rng: &mut Rng, length: usize, out: &mut String) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut left = length;
    while left > 0 {
        let mut bits = rng.next_u64();
        for _ in 0..left.min(10) {
            out.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
        left = left.saturating_sub(10);
    }
}
