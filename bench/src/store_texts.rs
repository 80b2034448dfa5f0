//! Messages for the benchmark of the record: prose, tool calls and tool output with a vocabulary of a few very common and many rare
//! words, with identifiers, paths, hashes and some Chinese. They are equal on every machine.

use std::fmt::Write;

use throughline_testkit::Rng;

/// The number of different words, the most common first.
const VOCABULARY: usize = 40_000;

const COMMON: &[&str] = &[
    "the", "to", "of", "a", "in", "is", "and", "that", "it", "for", "with", "not", "this", "on", "error",
    "file", "test", "was", "be", "are", "we", "from", "as", "if", "line", "at", "by", "can", "have", "but",
    "no", "code", "run", "function", "value", "which", "set", "use", "all", "now", "an", "so", "when", "one",
    "build", "there", "change", "type", "only", "first", "server", "path", "request", "result", "should",
    "data", "config", "after",
];

const SYLLABLES: &[&str] = &[
    "ba", "con", "de", "er", "fi", "ga", "hel", "in", "jo", "kra", "lo", "men", "na", "or", "pre", "qui",
    "re", "sto", "ta", "un", "ver", "wi", "xe", "yo", "zi", "ing", "tion", "ser", "lim", "pro", "tra", "cel",
    "dur", "fol", "gram", "sig", "tep", "mon", "ral", "vi",
];

pub(crate) const HAN: &[&str] = &[
    "修复",
    "解析",
    "错误",
    "配置",
    "文件",
    "测试",
    "服务器",
    "请求",
    "超时",
    "数据库",
    "连接",
    "接口",
    "改动",
    "公开",
    "返回",
    "为空",
    "原因",
    "检查",
    "日志",
    "缓存",
    "版本",
    "升级",
    "依赖",
    "失败",
    "成功",
    "运行",
    "函数",
    "变量",
    "类型",
    "内存",
];

/// A generated message.
pub(crate) struct MadeMessage {
    /// The message as Anthropic JSON.
    pub(crate) json: String,
    /// The bytes of its text.
    pub(crate) text_bytes: usize,
    /// The tool that it calls or has a result of.
    pub(crate) tool: Option<&'static str>,
}

/// Generates a sequence of messages.
pub(crate) struct Author {
    rng: Rng,
    words: Vec<String>,
    turn: usize,
}

impl Author {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut words: Vec<String> = COMMON.iter().map(|&word| word.to_owned()).collect();
        while words.len() < VOCABULARY {
            let syllables = 2 + rng.below(3);
            words.push((0..syllables).map(|_| rng.pick(SYLLABLES)).collect());
        }
        Self { rng, words, turn: 0 }
    }

    /// The word of a frequency rank; 0 is the most common.
    pub(crate) fn word(&self, rank: usize) -> &str {
        self.words.get(rank).map_or("", String::as_str)
    }

    /// A word of running text: the probability of a word falls with its rank.
    fn any_word(&mut self) -> &str {
        let share = self.rng.below(1 << 20) as f64 / f64::from(1 << 20);
        let rank = (VOCABULARY as f64).powf(share) as usize - 1;
        self.words.get(rank).map_or("", String::as_str)
    }

    fn identifier(&mut self) -> String {
        let parts: Vec<String> = (0..self.rng.between(2, 3)).map(|_| self.any_word().to_owned()).collect();
        if self.rng.chance(60) {
            return parts.join("_");
        }
        let mut camel = String::new();
        for (at, part) in parts.iter().enumerate() {
            let mut letters = part.chars();
            match letters.next() {
                Some(first) if at > 0 => camel.extend(first.to_uppercase()),
                Some(first) => camel.push(first),
                None => {}
            }
            camel.push_str(letters.as_str());
        }
        camel
    }

    fn path(&mut self) -> String {
        let folder = self.any_word().to_owned();
        let extension = self.rng.pick(&["rs", "py", "ts", "toml", "md", "json"]);
        format!("src/{folder}/{}.{extension}", self.identifier())
    }

    fn prose(&mut self, bytes: usize) -> String {
        let mut out = String::new();
        let is_chinese = self.rng.chance(4);
        while out.len() < bytes {
            if is_chinese {
                out.push_str(self.rng.pick(HAN));
                if self.rng.chance(12) {
                    out.push('，');
                }
                continue;
            }
            match self.rng.below(40) {
                0 => out.push_str(&self.identifier()),
                1 => out.push_str(&self.path()),
                2 => {
                    let _ = write!(out, "{}", self.rng.below(100_000));
                }
                _ => {
                    let word = self.any_word().to_owned();
                    out.push_str(&word);
                }
            }
            out.push_str(if self.rng.chance(8) { ". " } else { " " });
        }
        out
    }

    fn output(&mut self, bytes: usize) -> String {
        let mut out = String::new();
        while out.len() < bytes {
            let line = self.rng.below(2_000);
            match self.rng.below(4) {
                0 => {
                    let path = self.path();
                    let words = self.prose(40);
                    let _ = writeln!(out, "{path}:{line}: {words}");
                }
                1 => {
                    let (left, right) = (self.identifier(), self.identifier());
                    let _ = writeln!(out, "    let {left} = {right}({line});");
                }
                2 => {
                    let hash = self.rng.next_u64() >> 24;
                    let words = self.prose(30);
                    let _ = writeln!(out, "{hash:010x} {words}");
                }
                _ => {
                    let words = self.prose(60);
                    let _ = writeln!(out, "{words}");
                }
            }
        }
        out
    }

    /// A text of prose or of tool output.
    pub(crate) fn text(&mut self) -> String {
        let length = self.rng.between(60, 560);
        if self.rng.chance(50) { self.prose(length) } else { self.output(length) }
    }

    /// The next message of a conversation: a request, then calls and answers in turn.
    pub(crate) fn message(&mut self) -> MadeMessage {
        self.turn += 1;
        let tool = self.rng.pick(&["Bash", "Read", "Edit", "Grep"]);
        match self.turn % 6 {
            1 => {
                let length = self.rng.between(60, 420);
                let text = self.prose(length);
                MadeMessage {
                    json: format!(r#"{{"role":"user","content":{}}}"#, quoted(&text)),
                    text_bytes: text.len(),
                    tool: None,
                }
            }
            at if at % 2 == 0 => {
                let length = self.rng.between(60, 560);
                let text = self.prose(length);
                let path = self.path();
                let id = self.turn;
                MadeMessage {
                    json: format!(
                        r#"{{"role":"assistant","content":[{{"type":"text","text":{}}},{{"type":"tool_use","id":"toolu_{id:08x}","name":"{tool}","input":{{"path":{}}}}}]}}"#,
                        quoted(&text),
                        quoted(&path)
                    ),
                    text_bytes: text.len() + path.len() + tool.len(),
                    tool: Some(tool),
                }
            }
            _ => {
                let length = self.rng.between(120, 800);
                let text = self.output(length);
                let id = self.turn - 1;
                MadeMessage {
                    json: format!(
                        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id:08x}","content":{}}}]}}"#,
                        quoted(&text)
                    ),
                    text_bytes: text.len(),
                    tool: Some(tool),
                }
            }
        }
    }
}

fn quoted(text: &str) -> String {
    throughline_transcript::compact_json_string(text)
}
