//! What holds for every text: no panic, findings in order and on character boundaries, masking twice is masking once,
//! JSON stays JSON.

use std::borrow::Cow;
use std::sync::LazyLock;

use proptest::prelude::*;
use throughline_redact::Redactor;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// Pieces that secrets, and what surrounds them, are made of. Put together at random they reach the seams between the
/// detectors, which random characters never do.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "password",
        "PASSWORD",
        "secret",
        "api_key",
        "API_KEY",
        "token",
        "access_token",
        "apiKey",
        "passphrase",
        "auth",
        "key",
        "Authorization",
        "Bearer",
        "Basic",
        "Cookie",
        "Set-Cookie",
        "curl",
        " -u ",
        "mysql",
        " -p",
        "--password",
        "--token",
        "machine h login u password ",
        "IDENTIFIED BY ",
        "name",
        "value",
        "密码",
        "пароль",
        "パスワード",
        "mot de passe",
        "export ",
        "=",
        ":",
        " = ",
        ": ",
        ":=",
        "=>",
        "==",
        "?",
        "&",
        ";",
        ",",
        "|",
        "<",
        ">",
        "</",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "@",
        "/",
        "://",
        "postgres://u:",
        "https://",
        "@host/",
        "#",
        "$",
        "%",
        "%20",
        "%3D",
        "\"",
        "'",
        "`",
        "\\",
        "\\\"",
        "\\'",
        "\\n",
        "\\u0022",
        "\\\\",
        "\n",
        "\r\n",
        "\t",
        " ",
        "  ",
        "：",
        "＝",
        "。",
        "é",
        "字",
        "🔑",
        "\u{a0}",
        "\u{3000}",
        "...",
        "…",
        "-",
        "_",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\\n",
        "-----",
        "MIIEpAIBAAKCAQEA7bq98fV1Yz0mXk3pQ2vR8sT4uW6xY9zA1bC3dE5fG7hI9jK1",
        "hunter2",
        "S3cure!pass",
        "p@ss/w0rd",
        "is",
        "the",
        "sk-ant-api03-q7Rk2Vw9Xz4Bn6MtLp3Yq7Rk2Vw9Xz",
        "sk-q7Rk2Vw9Xz4Bn6MtLp3Y",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIAQ3EGRT2LKZ7WXN4P",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3.q7Rk2Vw9Xz4Bn6Mt",
        "q7Rk2Vw9Xz4Bn6MtLp3Y",
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "550e8400-e29b-41d4-a716-446655440000",
        "xoxb-123456789012-q7Rk2Vw9Xz",
        "YWxpY2U6aHVudGVyMg==",
        "MAX_TOKENS",
        "100",
        "sid=s3Kq9zL0pW2x",
        "[redacted:password]",
        "[redacted:url_password]",
        "[redacted:",
        "redacted",
        "[redacted:token]x",
        "$2b$12$abcdefghijklmnopqrstuuTEw8POU2MwwuYEM7WaKcjqZ948Hm7",
    ]);
    prop_oneof![8 => fixed.prop_map(str::to_owned), 1 => "[ -~]{1,12}", 1 => "[A-Za-z0-9]{4,40}", 1 => "\\PC{1,4}"]
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

fn check_findings(text: &str) -> Result<(), TestCaseError> {
    let findings = REDACTOR.find(text);
    let mut end = 0;
    for finding in &findings {
        prop_assert!(finding.range.start >= end, "overlap in {text:?}: {findings:?}");
        prop_assert!(!finding.range.is_empty());
        prop_assert!(text.is_char_boundary(finding.range.start) && text.is_char_boundary(finding.range.end));
        prop_assert!(finding.kind.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
        end = finding.range.end;
    }
    let redacted = REDACTOR.redact(text);
    prop_assert_eq!(matches!(redacted, Cow::Borrowed(_)), findings.is_empty());
    Ok(())
}

fn check_idempotent(text: &str) -> Result<(), TestCaseError> {
    let once = REDACTOR.redact(text).into_owned();
    let twice = REDACTOR.redact_with_findings(&once);
    prop_assert_eq!(&once, &twice.text, "of {:?}, the second time {:?}", text, twice.findings);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(4096), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}|(?s).{0,100}") {
        check_findings(&text)?;
        check_idempotent(&text)?;
    }

    #[test]
    fn soup_is_survived(text in soup()) {
        check_findings(&text)?;
    }

    #[test]
    fn masking_twice_is_masking_once(text in soup()) {
        check_idempotent(&text)?;
    }

    #[test]
    fn json_stays_json(strings in prop::collection::vec((soup(), soup()), 1..4)) {
        let object: serde_json::Map<String, serde_json::Value> =
            strings.into_iter().map(|(key, value)| (key, serde_json::Value::from(value))).collect();
        let fields = object.len();
        let nested = serde_json::json!({ "outer": serde_json::Value::Object(object), "n": 1 });
        let escaped = serde_json::Value::from(nested.to_string());
        for text in [nested.to_string(), escaped.to_string()] {
            let redacted = REDACTOR.redact(&text);
            let parsed = serde_json::from_str::<serde_json::Value>(&redacted);
            prop_assert!(parsed.is_ok(), "{text}\n-> {redacted}\n{parsed:?}");
        }
        let parsed: serde_json::Value = serde_json::from_str(&REDACTOR.redact(&nested.to_string())).unwrap_or_default();
        prop_assert!(parsed["outer"].as_object().is_some_and(|outer| outer.len() <= fields));
    }
}
