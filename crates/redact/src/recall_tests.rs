//! Tests of how many seeded secrets are found: every format of the table and every way to write a secret, in realistic contexts.

use crate::Redactor;
use crate::rules;
use crate::samples_tests::{Dice, Seeded, expand};

/// Contexts of a key with a format of its own.
const SURROUNDINGS: &[&str] = &[
    "{}",
    "key: {}\n",
    "I pasted {} into the dashboard, please rotate it.",
    "    client = Client(\"{}\")\n",
    "export SOMETHING='{}'\n",
    "{\"value\":\"{}\"}",
    "{\\\"value\\\":\\\"{}\\\",\\\"n\\\":1}",
    "   12→const x = `{}`;\n   13→\n",
    "+{}\n-old\n",
    "| staging | {} | yes |",
    "curl https://api.example.com/v1?x={}&y=2",
    "first line\\n{}\\nlast line",
    "使用{}登录",
    "\u{1b}[32m{}\u{1b}[0m",
];

/// Ways to write a secret without a format of its own.
const CARRIERS: &[&str] = &[
    "DB_PASSWORD=<n:14>",
    "export PGPASSWORD='<n:12>'",
    "ENV APP_SECRET=<n:24>",
    "  password: <n:12>\n",
    "password = \"<n:10>\"",
    "\"password\": \"<n:12>\"",
    "{\\\"password\\\": \\\"<n:12>\\\"}",
    "\"client_secret\": \"<n:32>\",",
    "'api_key': '<h:32>'",
    "apiKey: \"<n:24>\",",
    "secret_key_base: <h:128>",
    "SECRET_KEY = 'django-insecure-<l:50>'",
    "spring.datasource.password=<n:12>",
    "var token string = \"<n:32>\"",
    "const authToken: string = '<n:40>';",
    "let access_token = \"<w:64>\";",
    "token := \"<n:32>\"",
    "'refresh_token' => '<w:48>',",
    "X-API-Key: <n:32>",
    "-H \"X-Auth-Token: <h:40>\"",
    "PRIVATE-TOKEN: <n:26>",
    "Authorization: Bearer <w:48>",
    "authorization: token <h:40>",
    "\"Authorization\": \"Bearer <n:32>\"",
    "headers[\"Authorization\"] = \"Bearer <n:32>\"",
    ".header(\"Authorization\", \"ApiKey <n:32>\")",
    "Authorization: Digest username=\"ana\", nonce=\"<h:32>\", response=\"<h:32>\"",
    "Authorization: AWS4-HMAC-SHA256 Credential=<U:20>/20250101/us-east-1/s3/aws4_request, Signature=<h:64>",
    "Proxy-Authorization: Splunk <u>",
    "Cookie: theme=dark; sessionid=<l:32>; lang=en",
    "Set-Cookie: sid=<w:40>; Path=/; HttpOnly",
    "postgres://app:<n:14>@db.internal:5432/orders",
    "postgresql+asyncpg://app:<n:8>@<n:8>@db/orders",
    "mysql://root:<n:6>/<n:8>@127.0.0.1:3306/shop",
    "mongodb+srv://svc:<n:16>@cluster0.mongodb.net/?retryWrites=true",
    "redis://:<n:16>@cache:6379/0",
    "amqp://guest:<n:12>@rabbit//",
    "https://deploy:<n:20>@git.example.com/team/repo.git",
    "https://<h:40>@github.example.com/team/repo.git",
    "https://api.example.com/v1/items?access_token=<n:32>&page=2",
    "https://api.example.com/cb?code=<w:40>&state=ok",
    "https://acct.blob.core.windows.net/c/b?sv=2021-06-08&sig=<b:43>%3D",
    "https://s3.amazonaws.com/b/k?X-Amz-Signature=<h:64>",
    "Server=db;Database=shop;User Id=app;Password=<n:14>;Encrypt=true",
    "psql --password <n:14> -h db",
    "deploy --token=<n:32> --region eu",
    "tool --api-key <n:32>",
    "tool --client-secret '<n:32>'",
    "<password><n:14></password>",
    "<add key=\"ApiKey\" value=\"<n:32>\" />",
    "- name: DB_PASSWORD\n  value: <n:14>\n",
    "{\"name\": \"API_TOKEN\", \"value\": \"<n:32>\"}",
    "set(\"password\", \"<n:14>\")",
    "ALTER USER app WITH PASSWORD '<n:14>';",
    "//registry.npmjs.org/:_authToken=<u>0<n:8>",
    "The password is <n:14> for now.",
    "my api key is <n:32> btw",
    "use this token: <n:40>",
    "API key: <n:32>",
    "access key `<n:40>`",
    "密码：<n:12>",
    "密码是<n:12>",
    "пароль: <n:12>",
    "Passwort: <n:12>",
    "mot de passe : <n:12>",
    "contraseña: <n:12>",
    "パスワードは <n:12> です",
    "비밀번호: <n:12>",
    "parameters: -pass pass:<n:12>",
    "-----BEGIN RSA PRIVATE KEY-----\n<b:64>\n<b:64>\n<b:64>\n<b:40>==\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\n<b:70>\\n<b:70>\\n<b:30>\\n-----END OPENSSH PRIVATE KEY-----\\n",
    "     1→-----BEGIN EC PRIVATE KEY-----\n     2→<b:64>\n     3→<b:64>\n     4→<b:24>=\n     5→-----END EC PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\n<b:64>\n<b:64>\n<b:20>",
    "<b:64>\n<b:64>\n<b:20>\n-----END PRIVATE KEY-----",
    "key = \"-----BEGIN PRIVATE KEY-----\\n\" +\n  \"<b:64>\\n\" +\n  \"<b:64>\\n\" +\n  \"-----END PRIVATE KEY-----\"",
];

/// Returns every format in three contexts and every carrier three times.
fn seeded_secrets(seed: u64) -> Vec<Seeded> {
    let mut dice = Dice::new(seed);
    let mut seeded = Vec::new();
    for rule in rules::load() {
        for _ in 0..3 {
            let sample = expand(rule.sample, &mut dice);
            // A sample with its own context is used alone.
            let stands_alone = !rule.names.is_empty() || rule.sample.contains([' ', '=', '"', '/']);
            let text =
                if stands_alone { sample.text } else { dice.pick(SURROUNDINGS).replace("{}", &sample.text) };
            seeded.push(Seeded { text, secret_parts: sample.secret_parts });
        }
    }
    for carrier in CARRIERS {
        for _ in 0..3 {
            // Tags would be taken for holes: `<password>` has neither a class nor a count.
            let shape = carrier
                .replace("<password>", "\u{1}")
                .replace("</password>", "\u{2}")
                .replace("<add ", "\u{3}");
            let mut filled = expand(&shape, &mut dice);
            filled.text = filled
                .text
                .replace('\u{1}', "<password>")
                .replace('\u{2}', "</password>")
                .replace('\u{3}', "<add ");
            seeded.push(filled);
        }
    }
    seeded
}

#[test]
fn at_least_99_of_100_seeded_secrets_are_found() {
    let redactor = Redactor::new();
    let (mut total, mut missed) = (0, Vec::new());
    for seed in 1..=4 {
        let seeded = seeded_secrets(seed);
        assert!(seeded.len() >= 500, "only {} secrets", seeded.len());
        total += seeded.len();
        missed.extend(seeded.into_iter().filter(|secret| secret.leaks_into(&redactor.redact(&secret.text))));
    }
    let recall = 1.0 - missed.len() as f64 / total as f64;
    let list: Vec<_> = missed
        .iter()
        .map(|secret| format!("{:?} -> {:?}", secret.text, redactor.redact(&secret.text)))
        .collect();
    println!("recall {:.2} % of {total} seeded secrets; missed:\n{}", recall * 100.0, list.join("\n"));
    assert!(recall >= 0.99, "recall {recall:.4} of {total}:\n{}", list.join("\n"));
}

#[test]
fn a_seeded_secret_between_ordinary_lines_is_all_that_changes() {
    let redactor = Redactor::new();
    for secret in seeded_secrets(9) {
        let text = format!("fn main() {{\n    run(1);\n}}\n\n{}\n\nThe end of it.\n", secret.text);
        let redacted = redactor.redact(&text);
        assert!(redacted.starts_with("fn main() {\n    run(1);\n}\n\n"), "{redacted}");
        assert!(redacted.ends_with("\n\nThe end of it.\n"), "{redacted}");
    }
}

/// Prints the seeded texts, one JSON string per line, for a comparison with other scanners.
#[test]
#[ignore = "prints a corpus; run with --nocapture when comparing with another scanner"]
fn print_seeded_secrets() {
    for secret in seeded_secrets(1) {
        println!("{}", serde_json::to_string(&(secret.text, secret.secret_parts)).unwrap());
    }
}
