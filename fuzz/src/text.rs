//! Readers of plain text: the redactor, and the parser of summaries.

use std::sync::OnceLock;

use serde::de::IgnoredAny;
use throughline_compaction::{SummaryDocument, SummaryFrame};
use throughline_redact::Redactor;
use throughline_transcript::{Role, WireFormat, decode_message_text, text_message};

/// Any text through the redactor: findings lie in the text, in order; masking twice changes nothing; JSON stays JSON.
pub fn redact(data: &[u8]) {
    static REDACTOR: OnceLock<Redactor> = OnceLock::new();
    let redactor = REDACTOR.get_or_init(|| Redactor::with_known_secrets(["hunter2-hunter2"]));
    let text = String::from_utf8_lossy(data);
    let redaction = redactor.redact_with_findings(&text);
    let mut end = 0;
    for finding in &redaction.findings {
        assert!(finding.range.start >= end && finding.range.end > finding.range.start, "{finding:?}");
        assert!(text.get(finding.range.clone()).is_some(), "{finding:?} lies on character boundaries");
        end = finding.range.end;
    }
    assert_eq!(redaction.findings.is_empty(), redaction.text == text);
    assert!(!redaction.text.contains("hunter2-hunter2"));
    assert_eq!(redactor.redact(&redaction.text), redaction.text, "masking twice changes nothing");
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        assert!(
            serde_json::from_str::<IgnoredAny>(&redaction.text).is_ok(),
            "JSON stays JSON: {}",
            redaction.text
        );
    }
}

/// Any text as a summary: what was read prints to a text that reads and prints the same.
pub fn summary(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let document = SummaryDocument::parse(&text);
    let printed = document.to_markdown();
    let again = SummaryDocument::parse(&printed);
    assert_eq!(again.to_markdown(), printed, "a printed summary reads as itself");
    let _ = document.next_action_number();
    for wire_format in WireFormat::ALL {
        let message =
            decode_message_text(text_message(wire_format, Role::User, &text)).expect("our messages are JSON");
        let _ = SummaryFrame::find(&message);
    }
}
