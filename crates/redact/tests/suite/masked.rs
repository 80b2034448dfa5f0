//! What is masked, exactly how much of it, and what stays around it.

use throughline_redact::Redactor;

fn assert_masked(cases: &[(&str, &str)]) {
    let redactor = Redactor::new();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(text, expected)| {
            let redacted = redactor.redact(text);
            (redacted != *expected).then(|| format!("{text:?}\n     is {redacted:?}\n not   {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn assignments_keep_name_quotes_and_what_follows() {
    assert_masked(&[
        ("DB_PASSWORD=hunter2", "DB_PASSWORD=[redacted:password]"),
        ("export DB_PASSWORD=hunter2 && run", "export DB_PASSWORD=[redacted:password] && run"),
        ("PASSWORD='p4ss w0rd!'", "PASSWORD='[redacted:password]'"),
        ("passphrase = \"correct horse battery staple\"", "passphrase = \"[redacted:password]\""),
        ("DB_PASSWORD=ab,cd;ef&gh1", "DB_PASSWORD=[redacted:password]"),
        ("password = \"S3cure!pass\"  # prod", "password = \"[redacted:password]\"  # prod"),
        ("password: hunter2", "password: [redacted:password]"),
        ("password=hunter2", "password=[redacted:password]"),
        ("password=foo", "password=[redacted:password]"),
        ("then set password=foo and go", "then set password=foo and go"),
        ("then set password=hunter2 and go", "then set password=[redacted:password] and go"),
        ("POSTGRES_PASSWORD: postgres", "POSTGRES_PASSWORD: [redacted:password]"),
        ("POSTGRES_PASSWORD=mysecretpassword", "POSTGRES_PASSWORD=[redacted:password]"),
        ("password = \"supersecret\"", "password = \"[redacted:password]\""),
        ("password = \"Example-2024!\"", "password = \"[redacted:password]\""),
        ("password: secret123", "password: [redacted:password]"),
        ("\"NewPassword\": \"]35d/{pB9Fo9wJ\"", "\"NewPassword\": \"[redacted:password]\""),
        ("\"password\": \"hunter2\",", "\"password\": \"[redacted:password]\","),
        ("{\\\"password\\\":\\\"hunter2\\\"}", "{\\\"password\\\":\\\"[redacted:password]\\\"}"),
        ("\"password\": \"a\\\"b1c\", \"n\": 1", "\"password\": \"[redacted:password]\", \"n\": 1"),
        ("password='it\"s1'", "password='[redacted:password]'"),
        ("password: str = \"hunter2\"", "password: str = \"[redacted:password]\""),
        ("const password: string = 'hunter2';", "const password: string = '[redacted:password]';"),
        ("var password string = \"hunter2\"", "var password string = \"[redacted:password]\""),
        ("password := \"hunter2\"", "password := \"[redacted:password]\""),
        ("'password' => 'hunter2',", "'password' => '[redacted:password]',"),
        ("password == \"hunter2\"", "password == \"[redacted:password]\""),
        ("config[\"password\"] = \"hunter2\"", "config[\"password\"] = \"[redacted:password]\""),
        ("<password>hunter2</password>", "<password>[redacted:password]</password>"),
        ("Password=hunter2;Encrypt=true", "Password=[redacted:password];Encrypt=true"),
        ("Server=x;Password=hunter2;Encrypt=true", "Server=x;Password=[redacted:password];Encrypt=true"),
        ("- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [redacted:password]\n"),
        ("set(\"password\", \"hunter2\")", "set(\"password\", \"[redacted:password]\")"),
        ("WITH PASSWORD 'hunter2';", "WITH PASSWORD '[redacted:password]';"),
        ("--password hunter2 --verbose", "--password [redacted:password] --verbose"),
        ("--password=hunter2 --verbose", "--password=[redacted:password] --verbose"),
        ("密码：Xk9$mQ2z，请保密", "密码：[redacted:password]，请保密"),
        ("The password is hunter2, keep it.", "The password is [redacted:password], keep it."),
        ("line\\nDB_PASSWORD=hunter2\\nnext", "line\\nDB_PASSWORD=[redacted:password]\\nnext"),
    ]);
}

#[test]
fn named_keys_say_whose_they_are() {
    assert_masked(&[
        ("DD_API_KEY=0123456789abcdef0123456789abcdee", "DD_API_KEY=[redacted:datadog_key]"),
        ("HEROKU_API_KEY=01234567-89ab-cdef-0123-456789abcdef", "HEROKU_API_KEY=[redacted:heroku_key]"),
        ("AZURE_CLIENT_SECRET=aB3dE6gH9jK2mN5pQ8sT", "AZURE_CLIENT_SECRET=[redacted:secret]"),
        ("api_token: \"q7Rk2Vw9Xz4Bn6Mt\"", "api_token: \"[redacted:token]\""),
        ("AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_ACCESS_KEY_ID=[redacted:aws_access_key]"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = [redacted:aws_secret_key]",
        ),
        ("key=sk-abcdefghijklmnopqrstuvwxyz012345", "key=[redacted:api_key]"),
    ]);
}

#[test]
fn headers_keep_their_scheme() {
    assert_masked(&[
        ("Authorization: Bearer q7Rk2Vw9Xz4Bn6Mt", "Authorization: Bearer [redacted:bearer_token]"),
        ("Authorization: Bearer secret123", "Authorization: Bearer [redacted:bearer_token]"),
        ("authorization: token q7Rk2Vw9Xz4Bn6Mt", "authorization: token [redacted:authorization]"),
        ("Authorization: Basic YWxpY2U6aHVudGVyMg==", "Authorization: Basic [redacted:basic_auth]"),
        (
            "curl -H 'Authorization: ApiKey q7Rk2Vw9Xz4B' x",
            "curl -H 'Authorization: ApiKey [redacted:authorization]' x",
        ),
        (
            "\"Authorization\": \"Bearer q7Rk2Vw9Xz4Bn6Mt\"",
            "\"Authorization\": \"Bearer [redacted:bearer_token]\"",
        ),
        ("Authorization: q7Rk2Vw9Xz4Bn6MtLp3Y", "Authorization: [redacted:authorization]"),
        (
            "Authorization: Digest username=\"ana\", uri=\"/x\", response=\"6629fae49393a05397450978507c4ef1\"",
            "Authorization: Digest username=\"ana\", uri=\"/x\", response=\"[redacted:authorization]\"",
        ),
        ("then send Bearer q7Rk2Vw9Xz4Bn6MtLp3Y.", "then send Bearer [redacted:bearer_token]."),
        ("X-Api-Key: q7Rk2Vw9Xz4Bn6Mt", "X-Api-Key: [redacted:secret]"),
        ("-H \"x-api-key: q7Rk2Vw9Xz4Bn6Mt\"", "-H \"x-api-key: [redacted:secret]\""),
        (
            "Cookie: theme=dark; sessionid=38afes7a8f2b; lang=en",
            "Cookie: theme=dark; sessionid=[redacted:cookie]; lang=en",
        ),
        (
            "Set-Cookie: sid=s3Kq9zL0pW2x; Path=/; HttpOnly",
            "Set-Cookie: sid=[redacted:cookie]; Path=/; HttpOnly",
        ),
    ]);
}

#[test]
fn urls_lose_the_whole_password_and_nothing_else() {
    assert_masked(&[
        ("postgres://app:hunter2@db:5432/orders", "postgres://app:[redacted:url_password]@db:5432/orders"),
        ("postgres://app:p@ss@db:5432/orders", "postgres://app:[redacted:url_password]@db:5432/orders"),
        ("postgres://app:p@ss/w#rd@db:5432/orders", "postgres://app:[redacted:url_password]@db:5432/orders"),
        (
            "postgres://app:p@1@2@db.example.com/orders",
            "postgres://app:[redacted:url_password]@db.example.com/orders",
        ),
        ("postgresql+psycopg2://a:p%40ss@h/db", "postgresql+psycopg2://a:[redacted:url_password]@h/db"),
        ("redis://:s3cret9@cache:6379/0", "redis://:[redacted:url_password]@cache:6379/0"),
        ("mongodb://u:pw12@h1:27017,h2:27017/db", "mongodb://u:[redacted:url_password]@h1:27017,h2:27017/db"),
        ("(https://bob:hunter2@example.com/a).", "(https://bob:[redacted:url_password]@example.com/a)."),
        (
            "https://bob:hunter2@npm.example.com/@scope/pkg",
            "https://bob:[redacted:url_password]@npm.example.com/@scope/pkg",
        ),
        (
            "https://bob:hun@ter2@npm.example.com/@scope/pkg",
            "https://bob:[redacted:url_password]@npm.example.com/@scope/pkg",
        ),
        ("\"postgres://app:hunter2@db/orders\"", "\"postgres://app:[redacted:url_password]@db/orders\""),
        (
            "https://e9f1a2b3c4d5e6f70819@sentry.example.com/2",
            "https://[redacted:url_token]@sentry.example.com/2",
        ),
        (
            "https://x.test/cb?code=q7Rk2Vw9Xz4Bn6MtLp3Y&state=1",
            "https://x.test/cb?code=[redacted:url_parameter]&state=1",
        ),
        (
            "https://x.test/a?access_token=q7Rk2Vw9Xz4Bn6Mt&p=2",
            "https://x.test/a?access_token=[redacted:token]&p=2",
        ),
        ("https://x.test/a?password=hunter2#top", "https://x.test/a?password=[redacted:password]"),
    ]);
}

#[test]
fn private_keys_go_as_a_block() {
    let body = "MIIEpAIBAAKCAQEA7bq98fV1Yz0mXk3pQ2vR8sT4uW6xY9zA1bC3dE5fG7hI9jK1";
    let rsa = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n{body}\nq8==\n-----END RSA PRIVATE KEY-----");
    let one_line = rsa.replace('\n', "\\n");
    let numbered: String =
        rsa.lines().enumerate().map(|(index, line)| format!("{:6}→{line}\n", index + 1)).collect();
    let cut_end = format!("cat key.pem\n-----BEGIN PRIVATE KEY-----\n{body}\n{}", &body[..30]);
    let cut_start = format!("{}\n{body}\nq8==\n-----END PRIVATE KEY-----\ndone", &body[..30]);
    let encrypted = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n{body}\n-----END RSA PRIVATE KEY-----"
    );
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----\n"
    );
    assert_masked(&[
        (&format!("a\n{rsa}\nb"), "a\n[redacted:private_key]\nb"),
        (
            &format!("{{\"private_key\": \"{one_line}\\n\"}}"),
            "{\"private_key\": \"[redacted:private_key]\\n\"}",
        ),
        (&numbered, "     1→[redacted:private_key]\n"),
        (&cut_end, "cat key.pem\n[redacted:private_key]"),
        (&cut_start, "[redacted:private_key]\ndone"),
        (&encrypted, "[redacted:private_key]"),
        (&pgp, "[redacted:private_key]\n"),
        (&format!("{rsa}\n{rsa}"), "[redacted:private_key]\n[redacted:private_key]"),
    ]);
}

#[test]
fn command_lines() {
    assert_masked(&[
        ("curl -u admin:hunter2 https://x.test", "curl -u admin:[redacted:password] https://x.test"),
        (
            "curl --user 'admin:hunter2' https://x.test",
            "curl --user 'admin:[redacted:password]' https://x.test",
        ),
        ("mysql -u root -phunter2 shop", "mysql -u root -p[redacted:password] shop"),
        ("sshpass -p hunter2 ssh me@host", "sshpass -p [redacted:password] ssh me@host"),
        ("docker login -u me -p hunter2 reg.test", "docker login -u me -p [redacted:password] reg.test"),
        ("redis-cli -h h -a hunter2 ping", "redis-cli -h h -a [redacted:password] ping"),
        (
            "machine h.test login me password hunter2\n",
            "machine h.test login me password [redacted:password]\n",
        ),
        ("requests.get(u, auth=('me', 'hunter2'))", "requests.get(u, auth=('me', '[redacted:password]'))"),
        ("PGPASSWORD=hunter2 psql -h db", "PGPASSWORD=[redacted:password] psql -h db"),
        ("mkdir -p src/main && ls -a hunter2", "mkdir -p src/main && ls -a hunter2"),
    ]);
}

#[test]
fn a_key_is_found_behind_escapes_colours_and_in_a_diff() {
    let key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let masked = "[redacted:github_token]";
    let cases: Vec<(String, String)> = [
        "\\n{}\\n",
        "\\u0022{}\\u0022",
        "x%3D{}%26",
        "\u{1b}[31m{}\u{1b}[0m",
        "\n-{}\n+{}\n",
        "使用{}登录",
        "/{}/",
        "({})",
        "`{}`",
    ]
    .iter()
    .map(|shape| (shape.replace("{}", key), shape.replace("{}", masked)))
    .collect();
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(text, expected)| (text.as_str(), expected.as_str())).collect();
    assert_masked(&cases);
}

#[test]
fn findings_name_the_kind_of_each_secret() {
    let text = "A_PASSWORD=hunter2\nB_PASSWORD=hunter3\nghp_16C7e42F292c6912E7710c838347Ae178B4a\n";
    let redaction = Redactor::new().redact_with_findings(text);
    let kinds: Vec<&str> = redaction.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["password", "password", "github_token"]);
    assert_eq!(
        redaction.text,
        "A_PASSWORD=[redacted:password]\nB_PASSWORD=[redacted:password]\n[redacted:github_token]\n"
    );
    let rules: Vec<_> =
        redaction.findings.iter().map(|finding| (&text[finding.range.clone()], finding.rule)).collect();
    assert_eq!(
        rules,
        [
            ("hunter2", "named_password"),
            ("hunter3", "named_password"),
            ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "github_token")
        ]
    );
}

#[test]
fn values_the_caller_names_are_masked_wherever_they_stand() {
    let redactor = Redactor::with_known_secrets(["correct horse", "tiny"]);
    assert_eq!(redactor.redact("say correct horse, tiny"), "say [redacted:known_secret], tiny");
    assert_eq!(redactor.redact("say Correct Horse"), "say Correct Horse");
}

#[test]
fn a_clone_shares_what_was_built() {
    let redactor = Redactor::new();
    let clone = redactor.clone();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let redactor = redactor.clone();
            std::thread::spawn(move || redactor.redact("DB_PASSWORD=hunter2").into_owned())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), clone.redact("DB_PASSWORD=hunter2"));
    }
}
