//! Writes units as OpenAI Chat Completions messages.

use throughline_transcript::Role;

use crate::json_text::Object;
use crate::pen::Pen;
use crate::tools::ToolRun;
use crate::words::Kind;

pub(crate) fn human(pen: &mut Pen) {
    let text = pen.text(Kind::Request);
    let content = match pen.form(&[70, 10, 8, 8, 4]) {
        0 => pen.quoted(&text),
        1 => pen.listed(&[text_part(pen, &text)]),
        2 => {
            let reminder = pen.text(Kind::Reminder);
            pen.listed(&[text_part(pen, &reminder), text_part(pen, &text)])
        }
        3 => {
            let picture = picture_part(pen);
            pen.listed(&[text_part(pen, &text), picture])
        }
        _ => {
            let audio = format!(
                r#"{{"type":"input_audio","input_audio":{{"data":"{}","format":"wav"}}}}"#,
                pen.base64(60)
            );
            pen.listed(&[audio, text_part(pen, &text)])
        }
    };
    let named = pen.extra(5);
    let message = pen.spoken("user", &content).raw_if(named, "name", "\"mara\"");
    let json = pen.odd_members(message).end();
    pen.push(Role::User, json);
}

pub(crate) fn machine(pen: &mut Pen) {
    let text = pen.text(Kind::Reminder);
    let content = if pen.extra(25) { pen.listed(&[text_part(pen, &text)]) } else { pen.quoted(&text) };
    let json = pen.spoken("user", &content).end();
    pen.push(Role::User, json);
}

pub(crate) fn instructions(pen: &mut Pen) {
    let text = pen.text(Kind::Instructions);
    let (word, role) = if pen.extra(35) { ("developer", Role::Developer) } else { ("system", Role::System) };
    let content = if pen.extra(15) { pen.listed(&[text_part(pen, &text)]) } else { pen.quoted(&text) };
    let json = pen.spoken(word, &content).end();
    pen.push(role, json);
}

pub(crate) fn answer(pen: &mut Pen) {
    let text = pen.text(Kind::Answer);
    let content = if pen.extra(15) { pen.listed(&[text_part(pen, &text)]) } else { pen.quoted(&text) };
    let message = pen.spoken("assistant", &content);
    let message = with_reasoning(pen, message);
    let bare = pen.extra(15);
    let message = message.raw_if(bare, "refusal", "null").raw_if(bare, "annotations", "[]");
    let json = pen.odd_members(message).end();
    pen.push(Role::Assistant, json);
}

pub(crate) fn empty_answer(pen: &mut Pen) {
    let message = pen.spoken("assistant", "\"\"");
    let json = with_reasoning(pen, message).end();
    pen.push(Role::Assistant, json);
}

/// Content that only some servers send: an answer with unknown parts.
pub(crate) fn foreign(pen: &mut Pen) {
    let text = pen.text(Kind::Answer);
    let unknown = r#"{"type":"x_citation_list","items":[{"type":"text","text":"not a part"}],"v":1e0}"#;
    let content = pen.listed(&[text_part(pen, &text), unknown.to_owned()]);
    let json = pen.spoken("assistant", &content).raw("audio", r#"{"id":"audio_1"}"#).end();
    pen.push(Role::Assistant, json);
}

/// Writes an answer with tool calls, and the results of `answered` of them.
pub(crate) fn step(pen: &mut Pen, runs: &[ToolRun], answered: usize) {
    let calls = runs.len();
    if let [only] = runs
        && answered == 1
        && pen.extra(3)
    {
        return legacy_step(pen, only);
    }
    let ids = pen.call_ids("call_", calls);
    let content = match pen.form(&[45, 35, 20]) {
        0 => "null".to_owned(),
        1 => {
            let text = pen.text(Kind::Answer);
            pen.quoted(&text)
        }
        _ => "\"\"".to_owned(),
    };
    let written: Vec<String> = runs.iter().zip(&ids).map(|(run, id)| call(pen, run, id)).collect();
    let without_content = content == "null" && pen.extra(30);
    let message = if without_content {
        pen.object().text("role", "assistant")
    } else {
        pen.spoken("assistant", &content)
    };
    let message = with_reasoning(pen, message).list("tool_calls", &written);
    let json = pen.odd_members(message).end();
    pen.push(Role::Assistant, json);
    for index in pen.arrival_order(calls).into_iter().take(answered) {
        result(pen, &runs[index], &ids[index]);
    }
}

fn call(pen: &mut Pen, run: &ToolRun, id: &str) -> String {
    let function = pen.object().text("name", run.name).text("arguments", &json_arguments(pen, run)).end();
    let object = pen.object();
    let indexed = pen.extra(10);
    object
        .raw_if(indexed, "index", "0")
        .text("id", id)
        .text("type", "function")
        .raw("function", &function)
        .end()
}

/// Free text becomes the only member of an object: this wire format has no free input.
fn json_arguments(pen: &Pen, run: &ToolRun) -> String {
    match run.input {
        crate::tools::Input::Json => run.arguments.clone(),
        crate::tools::Input::Free => pen.object().text("input", &run.arguments).end(),
    }
}

fn result(pen: &mut Pen, run: &ToolRun, id: &str) {
    let content = if run.shows_picture && pen.extra(60) {
        let picture = picture_part(pen);
        pen.listed(&[text_part(pen, &run.output), picture])
    } else if pen.extra(12) {
        pen.listed(&[text_part(pen, &run.output)])
    } else {
        pen.quoted(&run.output)
    };
    let named = pen.extra(30);
    let object = pen.object().text("role", "tool").text("tool_call_id", id);
    let object = if named { object.text("name", run.name) } else { object };
    let json = object.raw("content", &content).end();
    pen.push(Role::Tool, json);
}

/// The single call of the first function-calling models, whose result contains the name of the function.
fn legacy_step(pen: &mut Pen, run: &ToolRun) {
    let call = pen.object().text("name", run.name).text("arguments", &json_arguments(pen, run)).end();
    let asked =
        pen.object().text("role", "assistant").raw("content", "null").raw("function_call", &call).end();
    pen.push(Role::Assistant, asked);
    let answered =
        pen.object().text("role", "function").text("name", run.name).text("content", &run.output).end();
    pen.push(Role::Tool, answered);
}

fn with_reasoning(pen: &mut Pen, message: Object) -> Object {
    if !pen.extra(25) {
        return message;
    }
    let thought = pen.text(Kind::Thought);
    match pen.rng.below(3) {
        0 => message.text("reasoning_content", &thought),
        1 => {
            let detail = pen.object().text("type", "reasoning.text").text("text", &thought);
            let detail = detail.text("signature", &pen.base64(200)).raw("index", "0").end();
            message.text("reasoning", &thought).list("reasoning_details", &[detail])
        }
        _ => {
            let sealed = pen.object().text("type", "reasoning").raw("summary", "[]");
            let sealed = sealed.text("encrypted_content", &pen.base64(300)).end();
            message.list("codex_reasoning_items", &[sealed])
        }
    }
}

fn text_part(pen: &Pen, text: &str) -> String {
    pen.object().text("type", "text").text("text", text).end()
}

fn picture_part(pen: &mut Pen) -> String {
    let url = format!("data:image/png;base64,{}", pen.base64(400));
    let inner = pen.object().text("url", &url).text("detail", "auto").end();
    pen.object().text("type", "image_url").raw("image_url", &inner).end()
}
