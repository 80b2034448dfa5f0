//! Writes units as items of OpenAI Responses.

use throughline_transcript::Role;

use crate::pen::Pen;
use crate::tools::{Input, ToolRun};
use crate::words::Kind;

pub(crate) fn human(pen: &mut Pen) {
    let text = pen.text(Kind::Request);
    match pen.form(&[50, 25, 10, 10, 5]) {
        0 => {
            let blocks = [input_text(pen, &text)];
            message(pen, Role::User, &blocks);
        }
        1 => {
            let content = pen.quoted(&text);
            let object = pen.spoken("user", &content);
            let json = pen.odd_members(object).end();
            pen.push(Role::User, json);
        }
        2 => {
            let reminder = pen.text(Kind::Reminder);
            let blocks = [input_text(pen, &reminder), input_text(pen, &text)];
            message(pen, Role::User, &blocks);
        }
        3 => {
            let blocks = [input_text(pen, &text), picture(pen)];
            message(pen, Role::User, &blocks);
        }
        _ => {
            let file = pen.object().text("type", "input_file").text("file_id", "file_1").end();
            let blocks = [file, input_text(pen, &text)];
            message(pen, Role::User, &blocks);
        }
    }
}

pub(crate) fn machine(pen: &mut Pen) {
    let text = pen.text(Kind::Reminder);
    let blocks = [input_text(pen, &text)];
    message(pen, Role::User, &blocks);
}

pub(crate) fn instructions(pen: &mut Pen) {
    let text = pen.text(Kind::Instructions);
    let role = if pen.extra(70) { Role::Developer } else { Role::System };
    let blocks = [input_text(pen, &text)];
    message(pen, role, &blocks);
}

pub(crate) fn answer(pen: &mut Pen) {
    reasoning(pen, 35);
    let text = pen.text(Kind::Answer);
    match pen.form(&[80, 15, 5]) {
        0 => spoken_answer(pen, &text),
        1 => {
            let content = pen.quoted(&text);
            let json = pen.spoken("assistant", &content).end();
            pen.push(Role::Assistant, json);
        }
        _ => {
            let refusal = pen.object().text("type", "refusal").text("refusal", &text).end();
            message(pen, Role::Assistant, &[refusal]);
        }
    }
}

pub(crate) fn empty_answer(pen: &mut Pen) {
    if pen.extra(50) {
        spoken_answer(pen, "");
    } else {
        message(pen, Role::Assistant, &[]);
    }
}

/// Items that are passed on without parsing: tools that the provider runs, references, encrypted history.
pub(crate) fn foreign(pen: &mut Pen) {
    let id = pen.item_id("ws_");
    let (role, json) = match pen.form(&[40, 25, 20, 15]) {
        0 => {
            let item =
                pen.object().text("type", "web_search_call").text("id", &id).text("status", "completed");
            (Role::Assistant, item.raw("action", r#"{"type":"search","query":"parser"}"#).end())
        }
        1 => {
            let item = pen.object().text("type", "mcp_call").text("id", &id).text("name", "find");
            (Role::Assistant, item.text("arguments", "{}").text("output", "3 found").end())
        }
        2 => {
            let sealed = pen.base64(200);
            (Role::Other, pen.object().text("type", "compaction").text("encrypted_content", &sealed).end())
        }
        _ => (Role::Other, pen.object().text("type", "item_reference").text("id", &id).end()),
    };
    pen.push(role, json);
}

/// Writes an answer as a run of items: reasoning, text, calls; then the results of `answered` calls.
pub(crate) fn step(pen: &mut Pen, runs: &[ToolRun], answered: usize) {
    let calls = runs.len();
    let ids = pen.call_ids("call_", calls);
    reasoning(pen, 40);
    if pen.extra(25) {
        let text = pen.text(Kind::Answer);
        spoken_answer(pen, &text);
    }
    if answered == calls && pen.extra(15) {
        // Each call is directly followed by its result.
        for (run, id) in runs.iter().zip(&ids) {
            call(pen, run, id);
            result(pen, run, id);
        }
        return;
    }
    for (run, id) in runs.iter().zip(&ids) {
        call(pen, run, id);
    }
    for index in pen.arrival_order(calls).into_iter().take(answered) {
        result(pen, &runs[index], &ids[index]);
    }
}

/// The item type of a call.
fn call_kind(run: &ToolRun) -> &'static str {
    match (run.input, run.name) {
        (Input::Free, _) => "custom_tool_call",
        // The arguments of the shell tool are its action; every second call of it has the type of the built-in shell.
        (Input::Json, "shell") if run.output.len().is_multiple_of(2) => "local_shell_call",
        _ => "function_call",
    }
}

fn call(pen: &mut Pen, run: &ToolRun, id: &str) {
    let kind = call_kind(run);
    let item = pen.object().text("type", kind);
    let item = if pen.extra(50) { item.text("id", &pen.item_id("fc_")) } else { item };
    let item = item.text("call_id", id);
    let item = match kind {
        "custom_tool_call" => item.text("name", run.name).text("input", &run.arguments),
        "local_shell_call" => item.raw("action", &run.arguments),
        _ => item.text("name", run.name).text("arguments", &run.arguments),
    };
    let with_status = pen.extra(60);
    let item = item.raw_if(with_status, "status", "\"completed\"");
    let json = pen.odd_members(item).end();
    pen.push(Role::Assistant, json);
}

fn result(pen: &mut Pen, run: &ToolRun, id: &str) {
    let kind = match call_kind(run) {
        "custom_tool_call" => "custom_tool_call_output",
        "local_shell_call" => "local_shell_call_output",
        _ => "function_call_output",
    };
    let item = pen.object().text("type", kind).text("call_id", id);
    let item = if kind == "function_call_output" && run.shows_picture && pen.extra(80) {
        let blocks = [input_text(pen, &run.output), picture(pen)];
        item.list("output", &blocks)
    } else if kind == "function_call_output" && pen.extra(10) {
        let blocks = [input_text(pen, &run.output)];
        item.list("output", &blocks)
    } else {
        item.text("output", &run.output)
    };
    pen.push(Role::Tool, item.end());
}

/// Writes reasoning, encrypted or readable; the caller writes the item after it.
fn reasoning(pen: &mut Pen, percent: usize) {
    if !pen.extra(percent) {
        return;
    }
    let thought = pen.text(Kind::Thought);
    let item = pen.object().text("type", "reasoning").text("id", &pen.item_id("rs_"));
    let item = match pen.rng.below(3) {
        0 => item.raw("summary", "[]"),
        1 => {
            let summary = pen.object().text("type", "summary_text").text("text", &thought).end();
            item.list("summary", &[summary])
        }
        _ => {
            let content = pen.object().text("type", "reasoning_text").text("text", &thought).end();
            item.raw("summary", "[]").list("content", &[content])
        }
    };
    let json = item.text("encrypted_content", &pen.base64(500)).end();
    pen.push(Role::Assistant, json);
}

fn spoken_answer(pen: &mut Pen, text: &str) {
    let block = pen.object().text("type", "output_text").text("text", text).raw("annotations", "[]").end();
    message(pen, Role::Assistant, &[block]);
}

fn message(pen: &mut Pen, role: Role, blocks: &[String]) {
    let item = pen.object().text("type", "message");
    let item = if role == Role::Assistant && pen.extra(60) {
        item.text("id", &pen.item_id("msg_")).text("status", "completed")
    } else {
        item
    };
    let item = item.text("role", role.name()).list("content", blocks);
    let json = pen.odd_members(item).end();
    pen.push(role, json);
}

fn input_text(pen: &mut Pen, text: &str) -> String {
    // Members have no order, and not every client writes the type first.
    if pen.extra(10) {
        return pen.object().text("text", text).text("type", "input_text").end();
    }
    pen.object().text("type", "input_text").text("text", text).end()
}

fn picture(pen: &mut Pen) -> String {
    let url = format!("data:image/png;base64,{}", pen.base64(400));
    pen.object().text("type", "input_image").text("image_url", &url).text("detail", "auto").end()
}
