//! Tests of names that indicate a secret, and of its kind.

use super::*;

fn kind(name: &str) -> Option<SecretName> {
    classify(&NameWords::split(name))
}

#[test]
fn names_are_split_at_separators_and_humps() {
    let words = |name| NameWords::split(name).as_slice().join(" ");
    assert_eq!(words("DB_PASSWORD"), "DB PASSWORD");
    assert_eq!(words("dbPassword"), "db Password");
    assert_eq!(words("X-API-Key"), "X API Key");
    assert_eq!(words("APIKey2"), "API Key 2");
    assert_eq!(words("spring.datasource.password"), "spring datasource password");
    assert_eq!(words("--token"), "token");
    assert_eq!(words(""), "");
    let long = "a_".repeat(40) + "password";
    assert_eq!(NameWords::split(&long).as_slice().last(), Some(&"password"), "the last words count");
}

#[test]
fn secrets_by_name() {
    use SecretName::{Credential, Key, OnlyNamed, Passphrase, Password, Token};
    for (name, expected) in [
        ("password", Password),
        ("DB_PASSWORD", Password),
        ("PGPASSWORD", Password),
        ("userPassword2", Password),
        ("mysql_pwd", Password),
        ("SMTP_PASS", Password),
        ("ssh_key_passphrase", Passphrase),
        ("api_key", Key),
        ("apikey", Key),
        ("X-Api-Key", Key),
        ("SECRET_KEY_BASE", Key),
        ("client_secret", Key),
        ("AccountKey", Key),
        ("API_TOKEN_PROD", Token),
        ("accessToken", Token),
        ("_authToken", Token),
        ("GITHUB_PAT", Token),
        ("credentials", Credential),
        ("_auth", Credential),
        ("FAL_KEY", OnlyNamed),
    ] {
        assert_eq!(kind(name), Some(expected), "{name}");
    }
}

#[test]
fn other_names() {
    for name in [
        "MAX_TOKENS",
        "token_count",
        "password_min_length",
        "tokenizer",
        "tokens",
        "next_token",
        "pageToken",
        "eos_token",
        "is_password",
        "show_token",
        "public_key",
        "no_auth",
        "secretName",
        "token_url",
        "key_id",
        "aws_access_key_id",
        "author",
        "passed",
        "pass",
        "bypass",
        "render_pass",
        "compass",
        "keyboard",
        "authorized",
        "CancellationToken",
    ] {
        assert!(matches!(kind(name), None | Some(SecretName::OnlyNamed)), "{name} is {:?}", kind(name));
    }
}
