//! Tests of errors as they are stored and shown.

use std::time::Duration;

use super::{
    ConnectStage, ImageComplaint, ProviderError, ProviderErrorKind, RequestComplaint, Retry, WrongWireSign,
};

fn every_kind() -> Vec<ProviderErrorKind> {
    let complaints = [
        RequestComplaint::UnknownParameter { name: Some("top_k".to_owned()) },
        RequestComplaint::UnknownParameter { name: None },
        RequestComplaint::ForeignReasoning,
        RequestComplaint::ToolPairing,
        RequestComplaint::RoleOrder,
        RequestComplaint::Other,
    ];
    let images = [
        ImageComplaint::TooLarge { limit_bytes: Some(1) },
        ImageComplaint::TooMany,
        ImageComplaint::NotSupported,
        ImageComplaint::Unreadable,
    ];
    let signs = [
        WrongWireSign::Html,
        WrongWireSign::NoSuchPath,
        WrongWireSign::OtherShape,
        WrongWireSign::NotJson,
        WrongWireSign::Redirect,
    ];
    let stages = [ConnectStage::Name, ConnectStage::Connect, ConnectStage::Tls, ConnectStage::Closed];
    let mut kinds = vec![
        ProviderErrorKind::PromptTooLong { window_tokens: Some(8_192), prompt_tokens: Some(9_000) },
        ProviderErrorKind::PromptTooLong { window_tokens: Some(8_192), prompt_tokens: None },
        ProviderErrorKind::PromptTooLong { window_tokens: None, prompt_tokens: Some(9_000) },
        ProviderErrorKind::PromptTooLong { window_tokens: None, prompt_tokens: None },
        ProviderErrorKind::OutputCapTooLarge {
            largest_cap_tokens: Some(10),
            window_tokens: None,
            prompt_tokens: None,
        },
        ProviderErrorKind::PayloadTooLarge { limit_bytes: Some(5), sent_bytes: Some(6) },
        ProviderErrorKind::OverAllowance { allowed_tokens: Some(30_000), asked_tokens: None },
        ProviderErrorKind::RateLimit,
        ProviderErrorKind::Quota { affordable_tokens: None },
        ProviderErrorKind::Auth,
        ProviderErrorKind::Forbidden,
        ProviderErrorKind::UnknownModel,
        ProviderErrorKind::Overload,
        ProviderErrorKind::Timeout,
        ProviderErrorKind::ContentPolicy,
        ProviderErrorKind::Interrupted,
        ProviderErrorKind::ServerFault,
        ProviderErrorKind::Unknown,
    ];
    kinds.extend(complaints.map(|complaint| ProviderErrorKind::MalformedRequest { complaint }));
    kinds.extend(images.map(|complaint| ProviderErrorKind::ImageRefused { complaint }));
    kinds.extend(signs.map(|sign| ProviderErrorKind::WrongWire { sign }));
    kinds.extend(stages.map(|stage| ProviderErrorKind::Unreachable { stage }));
    kinds
}

#[test]
fn every_kind_is_stored_and_read_back() {
    let mut texts = std::collections::HashSet::new();
    for kind in every_kind() {
        let mut trouble = ProviderError::of(kind);
        trouble.retry_after = Some(Duration::from_millis(1_500));
        let json = serde_json::to_string(&trouble).unwrap();
        assert_eq!(serde_json::from_str::<ProviderError>(&json).unwrap(), trouble, "{json}");
        assert!(json.contains(trouble.kind.name()), "{json} does not name {}", trouble.kind.name());
        assert!(texts.insert(trouble.to_string()), "{trouble} is said of two kinds");
    }
}

#[test]
fn only_what_may_pass_is_tried_again() {
    for kind in every_kind() {
        let passes = matches!(
            kind,
            ProviderErrorKind::RateLimit
                | ProviderErrorKind::Overload
                | ProviderErrorKind::Timeout
                | ProviderErrorKind::Interrupted
                | ProviderErrorKind::ServerFault
                | ProviderErrorKind::Unknown
                | ProviderErrorKind::Unreachable { stage: ConnectStage::Connect | ConnectStage::Closed }
        );
        let trouble = ProviderError::of(kind);
        let expected = if passes { Retry::Backoff } else { Retry::No };
        assert_eq!(trouble.retry(), expected, "{trouble}");
    }
    let odd = ProviderError { status: Some(400), ..ProviderError::of(ProviderErrorKind::Unknown) };
    assert_eq!(odd.retry(), Retry::No);
    assert_eq!(ProviderError { should_retry: Some(true), ..odd }.retry(), Retry::Backoff);
}
