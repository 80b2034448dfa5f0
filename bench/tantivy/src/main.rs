//! tantivy on the messages and questions of `throughline-bench index`: build time, size, questions. Its index is a folder with
//! commits of its own; a commit after every batch is what it takes for messages to be found when they were appended.

#[path = "../../src/store_texts.rs"]
mod store_texts;

use std::path::Path;
use std::time::Instant;

use store_texts::Author;
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, TantivyDocument};
use throughline_testkit::Rng;
use throughline_transcript::{SharedText, decode_message};

const BATCH: usize = 1_000;
const QUESTIONS: usize = 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(messages)) = (arguments.next(), arguments.next()) else {
        return Err("usage: throughline-bench-tantivy FOLDER MESSAGES [commit-every]".into());
    };
    let messages: usize = messages.parse()?;
    let commit_every: usize = arguments.next().map_or(Ok(BATCH), |every| every.parse())?;
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("en_stem")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let number = schema.add_u64_field("number", STORED);
    std::fs::create_dir_all(&folder)?;
    let index = Index::create_in_dir(Path::new(&folder), schema.build())?;
    let mut author = Author::new(11);
    let started = Instant::now();
    let before = cpu_ms();
    let mut writer = index.writer_with_num_threads(1, 64 << 20)?;
    for at in 0..messages {
        let message = decode_message(SharedText::new(author.message().json)).ok_or("no message was made")?;
        let mut document = TantivyDocument::default();
        document.add_text(text, message.text());
        document.add_u64(number, at as u64);
        writer.add_document(document)?;
        if (at + 1) % commit_every == 0 {
            writer.commit()?;
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let (cpu, wall) = (cpu_ms() - before, started.elapsed().as_secs_f64() * 1_000.0);
    println!("appended {:.0} messages/s of CPU ({:.0} of wall time)", messages as f64 / cpu * 1e3, messages as f64 / wall * 1e3);
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder)? {
        bytes += entry?.metadata()?.len();
    }
    println!("{:.0} MB", bytes as f64 / 1e6);
    let searcher = index.reader()?.searcher();
    let mut parser = QueryParser::for_index(&index, vec![text]);
    let mut rng = Rng::new(9);
    for (name, count, from, to, is_exact) in [
        ("a rare word", 1, 20_000, 39_999, true),
        ("a word", 1, 500, 5_000, true),
        ("two words", 2, 60, 2_000, true),
        ("a question of five words", 5, 60, 3_000, false),
        ("a question of five common words", 5, 20, 300, false),
        ("a question of twelve words", 12, 60, 20_000, false),
    ] {
        let mut times = Vec::new();
        for _ in 0..QUESTIONS {
            let words: Vec<&str> = (0..count).map(|_| author.word(rng.between(from, to))).collect();
            if is_exact {
                parser.set_conjunction_by_default();
            } else {
                parser = QueryParser::for_index(&index, vec![text]);
            }
            let started = Instant::now();
            let query = parser.parse_query(&words.join(" "))?;
            searcher.search(&query, &TopDocs::with_limit(20).order_by_score())?;
            times.push(started.elapsed().as_secs_f64() * 1_000.0);
        }
        times.sort_by(f64::total_cmp);
        println!("{name}: p50 {:.2} ms, p95 {:.2} ms", times[times.len() / 2], times[times.len() * 95 / 100]);
    }
    Ok(())
}

/// CPU time of this process: tantivy writes on threads of its own.
fn cpu_ms() -> f64 {
    let told = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = told.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) * 10.0
}
