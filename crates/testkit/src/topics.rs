//! Generated conversations about several topics, with known words for each topic: they measure how much of a summary is about one topic.
//!
//! Each topic has its own words. Its files, identifiers, commands and sentences are made of them, and no topic uses those of another.
//! Only some contain the words of the topic's name, as in real work.

use throughline_transcript::{Role, WireFormat, compact_json_string, text_message, tool_result_stub};

use crate::list::GeneratedList;
use crate::rng::Rng;

/// The order of the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicShape {
    /// The user asks about one topic in each turn.
    Turns,
    /// The user asks once for everything, and the agent works on one topic after the other.
    OneTask,
}

/// The options of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct TopicOptions {
    /// The number of topics, up to eight.
    pub topics: usize,
    /// The number of turns, or of stretches of work.
    pub turns: usize,
    /// The percentage of turns about the first topic.
    pub first_percent: usize,
    /// The order of the topics.
    pub shape: TopicShape,
    /// The seed; the same seed gives the same bytes.
    pub seed: u64,
}

/// A conversation with its topics.
#[derive(Clone, Debug)]
pub struct TopicConversation {
    /// The conversation, as Chat Completions messages.
    pub list: GeneratedList,
    /// The name of each topic.
    pub names: Vec<&'static str>,
}

/// A topic's name and words. No word belongs to two topics.
struct Vocabulary {
    name: &'static str,
    words: &'static [&'static str],
}

const VOCABULARIES: [Vocabulary; 8] = [
    Vocabulary {
        name: "invoice rounding",
        words: &[
            "invoice",
            "rounding",
            "cents",
            "currency",
            "subtotal",
            "decimal",
            "discount",
            "billing",
            "remainder",
            "vat",
            "surcharge",
            "receipt",
            "payable",
            "accrual",
            "credit",
        ],
    },
    Vocabulary {
        name: "login cookies",
        words: &[
            "login",
            "cookie",
            "logout",
            "expiry",
            "csrf",
            "signin",
            "identity",
            "samesite",
            "bcrypt",
            "lockout",
            "captcha",
            "principal",
            "impersonation",
            "refresh",
            "nonce",
        ],
    },
    Vocabulary {
        name: "image thumbnails",
        words: &[
            "image",
            "thumbnail",
            "crop",
            "pixel",
            "exif",
            "gallery",
            "scaler",
            "canvas",
            "gamma",
            "orientation",
            "jpeg",
            "palette",
            "dither",
            "aspect",
            "watermark",
        ],
    },
    Vocabulary {
        name: "search ranking",
        words: &[
            "search",
            "ranking",
            "postings",
            "snippet",
            "stemmer",
            "synonym",
            "relevance",
            "bm25",
            "facet",
            "typo",
            "analyzer",
            "shingle",
            "recall",
            "corpus",
            "boost",
        ],
    },
    Vocabulary {
        name: "mail bounces",
        words: &[
            "mail",
            "bounce",
            "smtp",
            "recipient",
            "attachment",
            "outbox",
            "spam",
            "unsubscribe",
            "dkim",
            "mailbox",
            "greylist",
            "newsletter",
            "sender",
            "mime",
            "relay",
        ],
    },
    Vocabulary {
        name: "map tiles",
        words: &[
            "map",
            "tile",
            "zoom",
            "geojson",
            "latitude",
            "raster",
            "polygon",
            "mercator",
            "contour",
            "basemap",
            "terrain",
            "viewport",
            "longitude",
            "simplify",
            "coastline",
        ],
    },
    Vocabulary {
        name: "audio playback",
        words: &[
            "audio",
            "playback",
            "codec",
            "bitrate",
            "waveform",
            "mixer",
            "decibel",
            "resampler",
            "podcast",
            "crossfade",
            "equalizer",
            "opus",
            "latency",
            "stereo",
            "loudness",
        ],
    },
    Vocabulary {
        name: "backup retention",
        words: &[
            "backup",
            "retention",
            "archive",
            "restore",
            "vault",
            "incremental",
            "checksum",
            "rotation",
            "offsite",
            "tarball",
            "manifest",
            "prune",
            "catalogue",
            "verify",
            "cold",
        ],
    },
];

const VERBS: &[&str] = &["reads", "checks", "rejects", "returns", "keeps", "drops", "compares", "writes"];
const FAULTS: &[&str] =
    &["is off by one", "ignores the last row", "fails on empty input", "is far too slow", "runs twice"];

/// Generates a conversation.
#[must_use]
pub fn topic_conversation(options: TopicOptions) -> TopicConversation {
    let count = options.topics.clamp(1, VOCABULARIES.len());
    let mut writer = Writer { rng: Rng::new(options.seed), json: Vec::new(), calls: 0 };
    let names: Vec<&'static str> = VOCABULARIES.iter().take(count).map(|topic| topic.name).collect();
    if options.shape == TopicShape::OneTask {
        let list = names.join(", ");
        writer.say(Role::User, &format!("Work through these one after the other, and do not stop: {list}."));
    }
    for _ in 0..options.turns {
        let first = count == 1 || writer.rng.chance(options.first_percent);
        let topic = if first { 0 } else { 1 + writer.rng.below(count - 1) };
        writer.stretch(&VOCABULARIES[topic], options.shape);
    }
    writer.say(Role::User, "Thank you. Sum up where we are, please.");
    TopicConversation { list: GeneratedList::of(WireFormat::Chat, writer.json), names }
}

impl TopicConversation {
    /// The share of a text's characters that is about a topic, from 0 to 1. Each word of a topic counts for it; the other words of a line
    /// are divided in the same proportion. Lines without such words do not count.
    #[must_use]
    pub fn share(&self, text: &str, topic: usize) -> f64 {
        let (mut about, mut all) = (0.0, 0.0);
        for line in text.lines() {
            let length = line.chars().count() as f64;
            all += length;
            let (mut own, mut owned) = (0.0, 0.0);
            for word in line.split_whitespace() {
                if let Some(owner) = self.owner(word) {
                    let size = word.chars().count() as f64;
                    owned += size;
                    own += if owner == topic { size } else { 0.0 };
                }
            }
            if owned > 0.0 {
                about += length * own / owned;
            }
        }
        if all > 0.0 { about / all } else { 0.0 }
    }

    /// The topic of a word, identifier or path.
    fn owner(&self, word: &str) -> Option<usize> {
        let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        parts.find_map(|part| {
            let part = part.to_ascii_lowercase();
            VOCABULARIES.iter().take(self.names.len()).position(|topic| {
                topic.words.iter().any(|word| part == *word || part.strip_suffix('s') == Some(word))
            })
        })
    }
}

struct Writer {
    rng: Rng,
    json: Vec<String>,
    calls: usize,
}

impl Writer {
    fn say(&mut self, role: Role, text: &str) {
        self.json.push(text_message(WireFormat::Chat, role, text));
    }

    fn word(&mut self, topic: &Vocabulary) -> &'static str {
        self.rng.pick(topic.words)
    }

    /// An identifier such as `exif_crop_12`; identifiers repeat, as in code.
    fn identifier(&mut self, topic: &Vocabulary) -> String {
        let (first, second) = (self.word(topic), self.word(topic));
        format!("{first}_{second}_{}", self.rng.below(4))
    }

    /// One of the few files of a topic.
    fn file(&mut self, topic: &Vocabulary) -> String {
        let at = self.rng.below(5);
        let word = |offset: usize| {
            topic.words.get((at * 3 + offset) % topic.words.len()).copied().unwrap_or_default()
        };
        format!("src/{}/{}_{}.rs", word(0), word(1), word(2))
    }

    fn sentence(&mut self, topic: &Vocabulary) -> String {
        let verb = self.rng.pick(VERBS);
        let (a, b) = (self.identifier(topic), self.identifier(topic));
        let (c, d) = (self.word(topic), self.word(topic));
        format!("The {c} code in `{a}` {verb} the {d} before `{b}` does.")
    }

    fn call(&mut self, note: &str, tool: &str, arguments: &str, result: &str) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let (note, arguments) = (compact_json_string(note), compact_json_string(arguments));
        self.json.push(format!(
            r#"{{"role":"assistant","content":{note},"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":{arguments}}}}}]}}"#
        ));
        self.json.push(tool_result_stub(WireFormat::Chat, &id, result));
    }

    /// Writes one turn, or one stretch of a longer turn.
    fn stretch(&mut self, topic: &Vocabulary, shape: TopicShape) {
        let fault = self.rng.pick(FAULTS);
        let subject = self.word(topic);
        if shape == TopicShape::Turns {
            // In half of the cases, another word stands in for the topic's name.
            let named = self.rng.chance(50);
            let what = if named { topic.name } else { subject };
            let rule = if self.rng.chance(15) {
                format!(" Never change `{}` without a test.", self.identifier(topic))
            } else {
                String::new()
            };
            self.say(Role::User, &format!("Have a look at the {what}: the {subject} {fault}.{rule}"));
        }
        for _ in 0..self.rng.between(3, 6) {
            self.step(topic);
        }
        let sentences: Vec<String> = (0..self.rng.between(3, 6)).map(|_| self.sentence(topic)).collect();
        let decision = self.identifier(topic);
        let answer =
            format!("{} I decided to keep `{decision}` because the {subject} {fault}.", sentences.join(" "));
        match shape {
            TopicShape::Turns => self.say(Role::Assistant, &answer),
            TopicShape::OneTask => {
                let file = self.file(topic);
                let arguments = format!(r#"{{"path":"{file}"}}"#);
                let result = self.code(topic, 12);
                self.call(&answer, "read_file", &arguments, &result);
            }
        }
    }

    fn code(&mut self, topic: &Vocabulary, lines: usize) -> String {
        let line = |writer: &mut Self| {
            let (a, b) = (writer.identifier(topic), writer.identifier(topic));
            format!("    let {a} = {b}({});", writer.rng.below(90))
        };
        (0..lines).map(|_| line(self)).collect::<Vec<_>>().join("\n")
    }

    fn step(&mut self, topic: &Vocabulary) {
        let file = self.file(topic);
        let note = if self.rng.chance(40) { self.sentence(topic) } else { String::new() };
        match self.rng.weighted(&[45, 25, 30]) {
            0 => {
                let lines = self.rng.between(15, 45);
                let result = self.code(topic, lines);
                self.call(&note, "read_file", &format!(r#"{{"path":"{file}"}}"#), &result);
            }
            1 => {
                let (old, new) = (self.identifier(topic), self.identifier(topic));
                let arguments =
                    format!(r#"{{"path":"{file}","old_string":"{old}","new_string":"{new}\nok"}}"#);
                self.call(&note, "patch", &arguments, r#"{"success":true}"#);
            }
            _ => {
                let word = self.word(topic);
                let name = self.identifier(topic);
                let failed = self.rng.chance(35);
                let (word_of_end, code) = if failed { ("FAILED", 101) } else { ("ok", 0) };
                let output = format!(
                    "running 2 tests\ntest {name} ... {word_of_end}\n\ntest result: {word_of_end}. 1 passed; {} failed\n",
                    u8::from(failed)
                );
                let result = format!(r#"{{"output":{},"exit_code":{code}}}"#, compact_json_string(&output));
                self.call(&note, "terminal", &format!(r#"{{"command":"cargo test -p {word}"}}"#), &result);
            }
        }
    }
}
