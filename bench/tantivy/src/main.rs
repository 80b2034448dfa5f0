//! tantivy on the messages and questions of `throughline-bench index`: append speed, size, questions. Its index is a folder with
//! commits of its own; a commit after every batch is what it takes for messages to be found when they were appended.

#[path = "../../src/index_questions.rs"]
mod index_questions;
#[allow(dead_code, reason = "other benchmarks use the rest")]
#[path = "../../src/store_texts.rs"]
mod store_texts;

use std::path::Path;
use std::time::Instant;

use index_questions::{QuestionKind, Wanted, kinds, trigrams_of};
use store_texts::Author;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{LowerCaser, NgramTokenizer, TextAnalyzer};
use tantivy::{Index, TantivyDocument, Term};
use throughline_transcript::{Message, Part, SharedText, decode_message};

const BATCH: usize = 1_000;
const LIMIT: usize = 20;

/// The fields of the index.
struct Fields {
    words: Field,
    trigrams: Field,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(messages)) = (arguments.next(), arguments.next()) else {
        return Err("usage: throughline-bench-tantivy FOLDER MESSAGES [words|trigrams]".into());
    };
    let messages: usize = messages.parse()?;
    let holds_trigrams = arguments.next().as_deref() == Some("trigrams");
    let mut schema = Schema::builder();
    let field = |tokenizer: &str, records| {
        let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(records);
        TextOptions::default().set_indexing_options(indexing)
    };
    let words = schema.add_text_field("words", field("en_stem", IndexRecordOption::WithFreqsAndPositions));
    let trigrams = schema.add_text_field("trigrams", field("trigrams", IndexRecordOption::Basic));
    let number = schema.add_u64_field("number", STORED);
    let fields = Fields { words, trigrams };
    std::fs::create_dir_all(&folder)?;
    let index = Index::create_in_dir(Path::new(&folder), schema.build())?;
    let of_three = TextAnalyzer::builder(NgramTokenizer::new(3, 3, false)?).filter(LowerCaser).build();
    index.tokenizers().register("trigrams", of_three);
    let mut author = Author::new(11);
    let started = Instant::now();
    let before = cpu_ms();
    let mut writer = index.writer_with_num_threads(1, 64 << 20)?;
    for at in 0..messages {
        let message = decode_message(SharedText::new(author.message().json)).ok_or("no message was made")?;
        let text = text_of(&message);
        let mut document = TantivyDocument::default();
        if holds_trigrams {
            document.add_text(fields.trigrams, &text);
        }
        document.add_text(fields.words, text);
        document.add_u64(number, at as u64);
        writer.add_document(document)?;
        if (at + 1) % BATCH == 0 {
            writer.commit()?;
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let (cpu, wall) = (cpu_ms() - before, started.elapsed().as_secs_f64() * 1_000.0);
    println!(
        "appended {:.0} messages/s of CPU ({:.0} of wall time)",
        messages as f64 / cpu * 1e3,
        messages as f64 / wall * 1e3
    );
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder)? {
        bytes += entry?.metadata()?.len();
    }
    println!("{:.0} MB", bytes as f64 / 1e6);
    let searcher = index.reader()?.searcher();
    for kind in kinds(&author) {
        let mut times = Vec::new();
        let mut found = 0;
        for question in &kind.questions {
            let Some(query) = query_of(&index, &fields, holds_trigrams, &kind, question)? else { break };
            let started = Instant::now();
            let before = thread_cpu_ms(started);
            let hits = searcher.search(&query, &TopDocs::with_limit(LIMIT).order_by_score())?;
            found += usize::from(!hits.is_empty());
            times.push((thread_cpu_ms(started) - before, started.elapsed().as_secs_f64() * 1_000.0));
        }
        if times.is_empty() {
            println!("{}: cannot", kind.name);
            continue;
        }
        let percentile = |of: fn(&(f64, f64)) -> f64, share: usize| {
            let mut times: Vec<f64> = times.iter().map(of).collect();
            times.sort_by(f64::total_cmp);
            times.get((times.len() - 1) * share / 100).copied().unwrap_or_default()
        };
        println!(
            "{}: p50 {:.1} ({:.1}) ms, p95 {:.1} ({:.1}) ms, {found} of {} found",
            kind.name,
            percentile(|time| time.0, 50),
            percentile(|time| time.1, 50),
            percentile(|time| time.0, 95),
            percentile(|time| time.1, 95),
            times.len()
        );
    }
    Ok(())
}

/// The text in a message, as the other indexes are given it.
fn text_of(message: &Message) -> String {
    let mut out = String::new();
    for part in message.parts() {
        match part {
            Part::Text(string) => out.push_str(&message.str(*string)),
            Part::ToolCall { name, arguments, .. } => {
                out.push_str(&message.str(*name));
                out.push(' ');
                out.push_str(&throughline_transcript::JsonStr::unescape(&message.arguments_text(*arguments)));
            }
            Part::ToolResult { content, .. } => out.push_str(&message.result_text(content)),
            Part::Reasoning { .. } | Part::Image { .. } | Part::Opaque { .. } => {}
        }
        out.push('\n');
    }
    out
}

/// A question as tantivy is asked; `None` where the index cannot answer it.
fn query_of(
    index: &Index,
    fields: &Fields,
    holds_trigrams: bool,
    kind: &QuestionKind,
    text: &str,
) -> Result<Option<Box<dyn Query>>, tantivy::TantivyError> {
    if kind.wanted == Wanted::Substring {
        let parts = trigrams_of(text);
        if !holds_trigrams || parts.is_empty() {
            return Ok(None);
        }
        let terms = parts.iter().map(|part| term(fields.trigrams, part, IndexRecordOption::Basic));
        return Ok(Some(Box::new(BooleanQuery::intersection(terms.collect()))));
    }
    let mut analyzer = index.tokenizer_for_field(fields.words)?;
    let mut words = Vec::new();
    analyzer.token_stream(text).process(&mut |token| words.push(token.text.clone()));
    if kind.wanted == Wanted::Phrase {
        let terms = words.iter().map(|word| Term::from_field_text(fields.words, word)).collect();
        return Ok(Some(Box::new(PhraseQuery::new(terms))));
    }
    let terms = words.iter().map(|word| term(fields.words, word, IndexRecordOption::WithFreqs)).collect();
    Ok(Some(Box::new(match kind.wanted {
        Wanted::AllWords => BooleanQuery::intersection(terms),
        _ => BooleanQuery::union(terms),
    })))
}

fn term(field: Field, text: &str, records: IndexRecordOption) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, text), records))
}

/// CPU time of this process: tantivy writes on threads of its own.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) * 10.0
}

/// CPU time of this thread, which searches; wall time where the system does not say.
fn thread_cpu_ms(started: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split_whitespace().next()?.parse::<f64>().ok());
    nanos.map_or_else(|| started.elapsed().as_secs_f64() * 1_000.0, |nanos| nanos / 1e6)
}
