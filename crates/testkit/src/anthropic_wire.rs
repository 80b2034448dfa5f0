//! Writes units as Anthropic Messages.

use throughline_transcript::Role;

use crate::pen::Pen;
use crate::tools::{Input, ToolRun};
use crate::words::Kind;

pub(crate) fn human(pen: &mut Pen) {
    let text = pen.text(Kind::Request);
    let content = match pen.form(&[50, 20, 12, 10, 8]) {
        0 => pen.quoted(&text),
        1 => {
            let block = text_block(pen, &text);
            pen.listed(&[block])
        }
        2 => {
            let reminder = pen.text(Kind::Reminder);
            let blocks = [text_block(pen, &reminder), text_block(pen, &text)];
            pen.listed(&blocks)
        }
        3 => {
            let blocks = [picture_block(pen), text_block(pen, &text)];
            pen.listed(&blocks)
        }
        _ => {
            let source = pen.object().text("type", "base64").text("media_type", "application/pdf");
            let source = source.text("data", &pen.base64(80)).end();
            let document = pen.object().text("type", "document").raw("source", &source).end();
            let blocks = [document, text_block(pen, &text)];
            pen.listed(&blocks)
        }
    };
    let message = pen.spoken("user", &content);
    let json = pen.odd_members(message).end();
    pen.push(Role::User, json);
}

pub(crate) fn machine(pen: &mut Pen) {
    let text = pen.text(Kind::Reminder);
    let content = if pen.extra(50) {
        let block = text_block(pen, &text);
        pen.listed(&[block])
    } else {
        pen.quoted(&text)
    };
    let json = pen.spoken("user", &content).end();
    pen.push(Role::User, json);
}

/// Newer models accept instructions in the middle of a conversation.
pub(crate) fn instructions(pen: &mut Pen) {
    let text = pen.text(Kind::Instructions);
    let content = pen.quoted(&text);
    let json = pen.spoken("system", &content).end();
    pen.push(Role::System, json);
}

pub(crate) fn answer(pen: &mut Pen) {
    let text = pen.text(Kind::Answer);
    let content = if pen.form(&[30, 70]) == 0 {
        pen.quoted(&text)
    } else {
        let mut blocks = thinking(pen);
        blocks.push(text_block(pen, &text));
        if pen.extra(10) {
            let more = pen.text(Kind::Answer);
            blocks.push(text_block(pen, &more));
        }
        pen.listed(&blocks)
    };
    let message = pen.spoken("assistant", &content);
    let json = pen.odd_members(message).end();
    pen.push(Role::Assistant, json);
}

/// Only the last message may be empty.
pub(crate) fn empty_answer(pen: &mut Pen) {
    let content = if pen.extra(50) { "[]" } else { "\"\"" };
    let json = pen.spoken("assistant", content).end();
    pen.push(Role::Assistant, json);
}

/// Tools that the provider runs itself: call and result are in one answer, in blocks that are not parsed.
pub(crate) fn foreign(pen: &mut Pen) {
    let id = pen.item_id("srvtoolu_");
    let asked = pen.object().text("type", "server_tool_use").text("id", &id).text("name", "web_search");
    let asked = asked.raw("input", r#"{"query":"parser"}"#).end();
    let hit = pen.object().text("type", "web_search_result").text("title", "Parsers").end();
    let found = pen.object().text("type", "web_search_tool_result").text("tool_use_id", &id);
    let found = found.list("content", &[hit]).end();
    let text = pen.text(Kind::Answer);
    let blocks =
        [asked, found, text_block(pen, &text), r#"{"type":"x_unheard_of","data":[1.50,2e3]}"#.to_owned()];
    let content = pen.listed(&blocks);
    let json = pen.spoken("assistant", &content).end();
    pen.push(Role::Assistant, json);
}

/// Writes an answer with tool calls, and one user message with the results of `answered` of them.
pub(crate) fn step(pen: &mut Pen, runs: &[ToolRun], answered: usize) {
    let calls = runs.len();
    let ids = pen.call_ids("toolu_01", calls);
    let mut blocks = thinking(pen);
    if pen.extra(45) {
        let text = pen.text(Kind::Answer);
        blocks.push(text_block(pen, &text));
    }
    for (run, id) in runs.iter().zip(&ids) {
        let input = match run.input {
            Input::Json => run.arguments.clone(),
            Input::Free => pen.object().text("input", &run.arguments).end(),
        };
        let marked = pen.extra(4);
        let block =
            pen.object().text("type", "tool_use").text("id", id).text("name", run.name).raw("input", &input);
        blocks.push(block.raw_if(marked, "cache_control", r#"{"type":"ephemeral"}"#).end());
    }
    let content = pen.listed(&blocks);
    let message = pen.spoken("assistant", &content);
    let json = pen.odd_members(message).end();
    pen.push(Role::Assistant, json);
    if answered == 0 {
        return;
    }
    let mut results = Vec::new();
    for index in pen.arrival_order(calls).into_iter().take(answered) {
        results.push(result(pen, &runs[index], &ids[index]));
    }
    // Human text, or a reminder of the agent, may follow in the message with the results.
    match pen.form(&[82, 10, 8]) {
        0 => {}
        1 => {
            let text = pen.text(Kind::Request);
            results.push(text_block(pen, &text));
        }
        _ => {
            let text = pen.text(Kind::Reminder);
            results.push(text_block(pen, &text));
        }
    }
    let content = pen.listed(&results);
    let json = pen.spoken("user", &content).end();
    pen.push(Role::User, json);
}

fn result(pen: &mut Pen, run: &ToolRun, id: &str) -> String {
    let object = pen.object();
    let object = if pen.extra(30) {
        object.text("tool_use_id", id).text("type", "tool_result")
    } else {
        object.text("type", "tool_result").text("tool_use_id", id)
    };
    let object = if run.shows_picture && pen.extra(70) {
        let blocks = [text_block(pen, &run.output), picture_block(pen)];
        object.list("content", &blocks)
    } else {
        match pen.form(&[70, 26, 4]) {
            0 => object.text("content", &run.output),
            1 => {
                let block = text_block(pen, &run.output);
                object.list("content", &[block])
            }
            // A tool without output needs no content.
            _ => object,
        }
    };
    let said_so = pen.extra(20);
    let object =
        if run.failed { object.raw("is_error", "true") } else { object.raw_if(said_so, "is_error", "false") };
    let marked = pen.extra(4);
    object.raw_if(marked, "cache_control", r#"{"type":"ephemeral","ttl":"1h"}"#).end()
}

/// Signed thinking, which must be sent back unchanged.
fn thinking(pen: &mut Pen) -> Vec<String> {
    match pen.form(&[62, 33, 5]) {
        0 => Vec::new(),
        1 => {
            let thought = pen.text(Kind::Thought);
            let block = pen.object().text("type", "thinking").text("thinking", &thought);
            vec![block.text("signature", &pen.base64(300)).end()]
        }
        _ => vec![pen.object().text("type", "redacted_thinking").text("data", &pen.base64(300)).end()],
    }
}

fn text_block(pen: &mut Pen, text: &str) -> String {
    let marked = pen.extra(3);
    let block = pen.object().text("type", "text").text("text", text);
    block.raw_if(marked, "cache_control", r#"{"type":"ephemeral"}"#).end()
}

fn picture_block(pen: &mut Pen) -> String {
    let source = pen.object().text("type", "base64").text("media_type", "image/png");
    let source = source.text("data", &pen.base64(400)).end();
    pen.object().text("type", "image").raw("source", &source).end()
}
