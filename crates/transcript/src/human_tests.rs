//! Tests that a person's text is distinguished from programs' text.

use super::*;
use crate::blocks::decode_message_text;

fn user(content: &str) -> Message {
    decode_message_text(format!(r#"{{"role":"user","content":{content}}}"#)).unwrap()
}

#[test]
fn injected_blocks_are_stripped_and_words_kept() {
    for (text, own) in [
        ("<system-reminder>a</system-reminder>\nfix the bug", "fix the bug"),
        ("fix it <b>now</b>\n<system-reminder>a</system-reminder>", "fix it <b>now</b>"),
        ("<system-reminder>a</system-reminder> x <system-reminder>b</system-reminder>", "x"),
        ("<command-name>/init</command-name>\n<command-message>m</command-message>\nand this", "and this"),
        ("<ide_selection>line 3</ide_selection>why?", "why?"),
        ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>\n\ngo", "go"),
        ("<div>mine</div>", "<div>mine</div>"),
        ("  spaced  ", "spaced"),
        ("a < b and c > d", "a < b and c > d"),
    ] {
        assert_eq!(strip_injected(text), own, "{text}");
        assert!(!is_injected(text), "{text}");
    }
}

#[test]
fn requests_for_a_summary_of_the_client_are_recognised() {
    for text in [
        "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.",
        "You are a summarization agent creating a context checkpoint. Treat the turns below as source material.",
        "Your task is to create a detailed summary of the conversation so far.",
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the recent part.",
        "Summarize this session for continuation. Be concise and factual.\n\n## Goal\nOne sentence.",
    ] {
        let alone = serde_json::to_string(text).unwrap();
        let behind = format!(r#"[{{"type":"text","text":"name a bird"}},{{"type":"text","text":{alone}}}]"#);
        assert!(user(&alone).asks_for_summary(), "{text}");
        assert!(user(&behind).asks_for_summary(), "{text}");
    }
    for text in
        ["Summarise the file.", "What does \"You are performing a CONTEXT CHECKPOINT COMPACTION\" mean?"]
    {
        assert!(!user(&serde_json::to_string(text).unwrap()).asks_for_summary(), "{text}");
    }
}

#[test]
fn summaries_of_clients_are_recognised() {
    for text in [
        "This session is being continued from a previous conversation that ran out of context.",
        "Another language model started to solve this problem; this is its summary.",
        "[CONTEXT SUMMARY]: the parser is ported",
        "Context summary:\n\nThe parser is ported.\n\n## Files\nRead:\n- none",
    ] {
        assert!(user(&serde_json::to_string(text).unwrap()).is_client_summary(), "{text}");
    }
    for text in ["Context summary: what is it?", "Write a context summary:\n\nof this file"] {
        assert!(!user(&serde_json::to_string(text).unwrap()).is_client_summary(), "{text}");
    }
}

#[test]
fn nothing_but_injected_text() {
    for text in [
        "",
        "  \n",
        "<system-reminder>\nbe good\n</system-reminder>",
        "<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>",
        "<command-name>/clear</command-name>\n<command-message>x</command-message>",
        "<local-command-stdout></local-command-stdout>",
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
        "This session is being continued from a previous conversation that ran out of context.",
        "# AGENTS.md instructions for /srv/app\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
    ] {
        assert!(is_injected(text), "{text}");
        assert_eq!(strip_injected(text), "");
    }
}

#[test]
fn tags_that_are_not_whole_belong_to_the_person() {
    for text in [
        "<system-reminder>never closed",
        "never opened</system-reminder>",
        "<system-reminders>a</system-reminders>",
        "what does <system-reminder> mean?",
        "</system-reminder>",
        "<>",
        "<",
        ">",
    ] {
        assert_eq!(strip_injected(text), text, "{text}");
    }
}

#[test]
fn stripping_costs_no_more_than_the_text_is_long() {
    let many = "<system-reminder>a</system-reminder>".repeat(20_000);
    assert!(is_injected(&many));
    let unclosed = "<system-reminder>".repeat(20_000);
    assert_eq!(strip_injected(&unclosed), unclosed);
    let words = format!("{many}words{many}");
    assert_eq!(strip_injected(&words), "words");
}

#[test]
fn messages_of_people() {
    for content in [
        r#""hi""#,
        r#"[{"type":"text","text":"hi"}]"#,
        r#"[{"type":"image","source":{}}]"#,
        r#"[{"type":"document","source":{}}]"#,
        r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"hi"}]"#,
        r#"[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"hi"}]"#,
    ] {
        assert!(user(content).is_human(), "{content}");
        assert!(!user(content).is_machine_written(), "{content}");
    }
}

#[test]
fn messages_of_programs() {
    for content in [
        r#""""#,
        "[]",
        r#""<system-reminder>x</system-reminder>""#,
        r#"[{"type":"text","text":"[Request interrupted by user]"}]"#,
    ] {
        assert!(!user(content).is_human(), "{content}");
        assert!(user(content).is_machine_written(), "{content}");
    }
    let result = user(r#"[{"type":"tool_result","tool_use_id":"t","content":"r"}]"#);
    assert!(!result.is_human() && !result.is_machine_written(), "a result is neither");
    let reminded = user(
        r#"[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"<system-reminder>x</system-reminder>"}]"#,
    );
    assert!(!reminded.is_human());
}

#[test]
fn only_users_are_people() {
    for role in ["system", "developer", "assistant", "tool", "narrator"] {
        let message = decode_message_text(format!(r#"{{"role":"{role}","content":"hi"}}"#)).unwrap();
        assert!(!message.is_human(), "{role}");
        assert_eq!(message.human_words(), None, "{role}");
    }
}

#[test]
fn a_persons_words_without_the_rest() {
    let message = user(
        r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":" fix\n<ide_selection>s</ide_selection>"},{"type":"image","source":{}},{"type":"text","text":"caf\u00e9"}]"#,
    );
    assert_eq!(message.human_words().as_deref(), Some("fix\ncafé"));
    assert_eq!(user(r#"[{"type":"image","source":{}}]"#).human_words().as_deref(), Some(""));
}
