//! Reads the public formats of LoCoMo and BEAM. Neither is part of this repository; their folders are arguments.
//!
//! A question is answered if a passage contains one of its evidence messages. Questions without evidence are left out.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Answer, Asked, Examined, Source};

/// A public format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublicFormat {
    Locomo,
    Beam,
}

/// The format of the files in a folder; `None` if it is neither.
pub(super) fn format_of(folder: &Path) -> Option<PublicFormat> {
    let files = json_files(folder).ok()?;
    let holds = |test: fn(&str) -> bool| {
        files.iter().any(|path| path.file_name().is_some_and(|name| test(&name.to_string_lossy())))
    };
    if holds(|name| name == "probing_questions.json") {
        return Some(PublicFormat::Beam);
    }
    holds(|name| name.to_lowercase().starts_with("locomo")).then_some(PublicFormat::Locomo)
}

/// Reads LoCoMo: a file, or the JSON files of a folder; each a list of samples with `conversation` and `qa`.
pub(super) fn locomo(path: &Path) -> Result<Vec<Examined>, String> {
    let mut found = Vec::new();
    for file in json_files(path)? {
        let value = read(&file)?;
        let samples = match &value {
            Value::Array(samples) => samples.as_slice(),
            one => std::slice::from_ref(one),
        };
        found.extend(samples.iter().filter_map(locomo_sample));
    }
    some(found, path)
}

fn locomo_sample(sample: &Value) -> Option<Examined> {
    let conversation = sample.get("conversation")?.as_object()?;
    let mut messages = Vec::new();
    let mut places = HashMap::new();
    for number in 1.. {
        let Some(turns) = conversation.get(&format!("session_{number}")).and_then(Value::as_array) else {
            if conversation.contains_key(&format!("session_{}", number + 1)) {
                continue;
            }
            break;
        };
        for turn in turns {
            let word = |name: &str| turn.get(name).and_then(Value::as_str).unwrap_or_default();
            places.insert(word("dia_id").to_owned(), messages.len() as u64);
            let is_first = Some(word("speaker")) == conversation.get("speaker_a").and_then(Value::as_str);
            let role = if is_first { "user" } else { "assistant" };
            // A picture is represented by its caption.
            let caption = match word("blip_caption") {
                "" => String::new(),
                caption => format!(" [picture: {caption}]"),
            };
            messages.push((role, format!("{}: {}{caption}", word("speaker"), word("text"))));
        }
    }
    let mut questions = Vec::new();
    for question in sample.get("qa")?.as_array()? {
        let evidence = question.get("evidence").and_then(Value::as_array).into_iter().flatten();
        let evidence: HashSet<u64> =
            // Some entries name several turns.
            evidence
                .filter_map(Value::as_str)
                .flat_map(|ids| ids.split([';', ',', ' ']))
                .filter_map(|id| places.get(id).copied())
                .collect();
        questions.extend(asked(question, evidence));
    }
    let name = sample.get("sample_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(Examined { name, source: Source::Messages(messages), questions })
}

/// Reads BEAM: a folder in which every `chat.json` has its `probing_questions.json` beside or below it. For conversations that were too
/// long for their class, the set's own programs read `chat_trunecated.json` (sic) instead of `chat.json`.
pub(super) fn beam(folder: &Path) -> Result<Vec<Examined>, String> {
    const SHORTENED: &str = "chat_trunecated.json";
    let mut found = Vec::new();
    let files = json_files(folder)?;
    let is_named = |path: &Path, name: &str| path.file_name().is_some_and(|file| file == name);
    let is_shortened = |chat: &Path| files.contains(&chat.with_file_name(SHORTENED));
    let is_read =
        |path: &Path| is_named(path, SHORTENED) || is_named(path, "chat.json") && !is_shortened(path);
    for chat in files.iter().filter(|path| is_read(path)) {
        let Some(own) = chat.parent() else { continue };
        let probes =
            files.iter().find(|path| is_named(path, "probing_questions.json") && path.starts_with(own));
        let Some(probes) = probes else { continue };
        let mut turns = Vec::new();
        collect_turns(&read(chat)?, &mut turns);
        let places: HashMap<i64, u64> =
            turns.iter().enumerate().filter_map(|(at, (id, ..))| Some(((*id)?, at as u64))).collect();
        let mut questions = Vec::new();
        collect_questions(&read(probes)?, &places, &mut questions);
        let messages = turns.into_iter().map(|(_, role, text)| (role, text)).collect();
        found.push(Examined {
            name: own.display().to_string(),
            source: Source::Messages(messages),
            questions,
        });
    }
    some(found, folder)
}

/// Collects every object with a role and a content, in order.
fn collect_turns(value: &Value, turns: &mut Vec<(Option<i64>, &'static str, String)>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_turns(value, turns)),
        Value::Object(members) => match (members.get("role"), members.get("content")) {
            (Some(role), Some(Value::String(content))) => {
                let role = if role == "user" { "user" } else { "assistant" };
                turns.push((members.get("id").and_then(Value::as_i64), role, content.clone()));
            }
            _ => members.values().for_each(|value| collect_turns(value, turns)),
        },
        _ => {}
    }
}

/// Collects every object with a question, with the messages it names.
fn collect_questions(value: &Value, places: &HashMap<i64, u64>, questions: &mut Vec<Asked>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_questions(value, places, questions)),
        Value::Object(members) if members.contains_key("question") => {
            let mut ids = Vec::new();
            members.get("source_chat_ids").iter().for_each(|value| collect_numbers(value, &mut ids));
            questions.extend(asked(value, ids.iter().filter_map(|id| places.get(id).copied()).collect()));
        }
        Value::Object(members) => {
            members.values().for_each(|value| collect_questions(value, places, questions));
        }
        _ => {}
    }
}

fn collect_numbers(value: &Value, numbers: &mut Vec<i64>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_numbers(value, numbers)),
        Value::Object(members) => members.values().for_each(|value| collect_numbers(value, numbers)),
        other => numbers.extend(other.as_i64()),
    }
}

fn asked(question: &Value, evidence: HashSet<u64>) -> Option<Asked> {
    let text = question.get("question")?.as_str()?.to_owned();
    (!evidence.is_empty()).then_some(Asked { text, answer: Answer::Messages(evidence) })
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The JSON files of a folder and its subfolders, sorted; or the named file.
fn json_files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn some(found: Vec<Examined>, path: &Path) -> Result<Vec<Examined>, String> {
    match found.is_empty() {
        true => Err(format!("no conversation was found in {}", path.display())),
        false => Ok(found),
    }
}
