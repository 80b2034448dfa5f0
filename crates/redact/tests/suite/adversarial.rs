//! Texts made to be slow or confusing: searched in linear time, nothing found where nothing is.
//!
//! No clock is read here; a quadratic search would take minutes over these, and the speed example prints times.

use throughline_redact::Redactor;

const BYTES: usize = 300_000;

#[test]
fn repetition_is_searched_in_linear_time() {
    let redactor = Redactor::new();
    for unit in [
        "a",
        "=",
        ":",
        "\"",
        "'",
        "\\",
        "-",
        "@",
        "/",
        "\n",
        "é",
        "密",
        "key=",
        "key: ",
        "password=",
        "PASSWORD=a;",
        "password:",
        "\"password\":\"",
        "\"password\": ",
        "token ",
        "token is ",
        "://",
        "://a:b@",
        "https://a@",
        "sk-",
        ".sk-aaaaaaaaaaaaaaaaaaaa",
        ".xoxb-xxxxxxxxxxxx",
        "eyJ",
        "eyJ.",
        " eyJaaaaaaaaaaaaaaaaaaaa",
        "Authorization: ",
        "authorization: digest a=",
        "Bearer ",
        "Basic ",
        "Cookie: a=b; ",
        "-----BEGIN PRIVATE KEY-----",
        "----BEGIN PRIVATE KEY",
        "-----END PRIVATE KEY-----",
        "curl -u ",
        " -p",
        "machine a login b ",
        "密码",
        "密码：",
        "[redacted:",
        "[redacted:a]",
        "$2b$",
        ":AA",
        "-us",
        "T3BlbkFJ",
    ] {
        let text = unit.repeat(BYTES / unit.len());
        assert_eq!(redactor.find(&text), [], "of {unit:?}");
    }
}

#[test]
fn random_bytes_in_base64_are_left_alone() {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 1u64;
    let blob: String = (0..1_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(alphabet[(state >> 58) as usize])
        })
        .collect();
    let redactor = Redactor::new();
    assert_eq!(redactor.find(&blob), []);
    let wrapped: Vec<&str> =
        (0..blob.len()).step_by(76).map(|at| &blob[at..(at + 76).min(blob.len())]).collect();
    assert_eq!(redactor.find(&wrapped.join("\n")), []);
}

#[test]
fn a_secret_is_found_at_the_end_of_a_long_text() {
    let text = format!("{}\nDB_PASSWORD=hunter2", "nothing to see here\n".repeat(50_000));
    let findings = Redactor::new().find(&text);
    assert_eq!(findings.len(), 1);
    assert_eq!(&text[findings[0].range.clone()], "hunter2");
}

#[test]
fn many_secrets_are_all_found() {
    let text = "DB_PASSWORD=hunter2\n".repeat(20_000);
    assert_eq!(Redactor::new().find(&text).len(), 20_000);
}
