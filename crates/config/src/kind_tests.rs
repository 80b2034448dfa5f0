//! Tests of what each kind of value accepts and refuses, with its messages.

use super::*;

fn read(form: ValueForm, text: &str) -> Result<Datum, Mismatch> {
    ValueKind { form, optional: false }.read(Raw::typed(text))
}

fn refusal(form: ValueForm, text: &str) -> String {
    let Mismatch { shown, allowed, hint } = read(form, text).unwrap_err();
    format!("is {shown}, but must be {allowed}{}", hint.map(|hint| format!("; {hint}")).unwrap_or_default())
}

const RATIO: ValueForm = ValueForm::Number { min: 0.05, max: 0.95 };
const COUNT: ValueForm = ValueForm::Whole { min: 0, max: 10_000 };

#[test]
fn switches_take_the_words_people_write_and_nothing_else() {
    for on in ["true", "True", "TRUE", "yes", "on", "1", " yes "] {
        assert_eq!(read(ValueForm::Switch, on), Ok(Datum::Switch(true)), "{on}");
    }
    for off in ["false", "No", "off", "0"] {
        assert_eq!(read(ValueForm::Switch, off), Ok(Datum::Switch(false)), "{off}");
    }
    for neither in ["", "maybe", "2", "tru", "enabled", "null"] {
        assert!(read(ValueForm::Switch, neither).is_err(), "{neither}");
    }
    assert_eq!(refusal(ValueForm::Switch, "maybe"), "is \"maybe\", but must be true or false");
}

#[test]
fn numbers_are_decimal_finite_and_in_range() {
    for (text, number) in
        [("0.5", 0.5), (".5", 0.5), ("5e-1", 0.5), ("0.05", 0.05), ("0.95", 0.95), ("+0.1", 0.1)]
    {
        assert_eq!(read(RATIO, text), Ok(Datum::Number(number)), "{text}");
    }
    for text in
        ["inf", "nan", ".inf", "infinity", "0x1", "half", "0,5", "1e999", "-", "e", "_1", "0_.5", "50%"]
    {
        assert!(read(RATIO, text).is_err(), "{text}");
    }
    assert_eq!(refusal(RATIO, "1.7"), "is 1.7, but must be between 0.05 and 0.95");
    assert_eq!(refusal(RATIO, "-0.1"), "is -0.1, but must be between 0.05 and 0.95");
    assert_eq!(refusal(RATIO, "half"), "is \"half\", but must be a number between 0.05 and 0.95");
    assert_eq!(refusal(RATIO, "50"), "is 50, but must be between 0.05 and 0.95; write 0.5 for 50 %");
    assert_eq!(
        refusal(RATIO, "50%"),
        "is \"50%\", but must be a number between 0.05 and 0.95; write 0.5 for 50 %"
    );
    assert_eq!(refusal(RATIO, "null"), "is empty, but must be a number between 0.05 and 0.95");
}

#[test]
fn whole_numbers_may_be_grouped_but_not_broken() {
    for (text, number) in [
        ("20", 20),
        ("0", 0),
        ("10_000", 10_000),
        ("1e3", 1000),
        ("20.0", 20),
        ("+3", 3),
        ("2k", 2000),
        ("1.1K", 1100),
    ] {
        assert_eq!(read(COUNT, text), Ok(Datum::Whole(number)), "{text}");
    }
    assert_eq!(refusal(COUNT, "20.5"), "is 20.5, but must be a whole number between 0 and 10000");
    assert_eq!(refusal(COUNT, "20k"), "is \"20k\", but must be between 0 and 10000");
    assert!(read(COUNT, "k").is_err() && read(COUNT, "2kk").is_err() && read(COUNT, "2 k").is_err());
    let tokens = ValueForm::Whole { min: 1, max: 100_000_000 };
    assert_eq!(read(tokens, "1.05m"), Ok(Datum::Whole(1_050_000)));
    assert!(read(tokens, "1.00000001m").is_err());
    assert_eq!(refusal(COUNT, "-1"), "is -1, but must be between 0 and 10000");
    assert_eq!(refusal(COUNT, "10001"), "is 10001, but must be between 0 and 10000");
    assert_eq!(refusal(COUNT, "twenty"), "is \"twenty\", but must be a whole number between 0 and 10000");
    assert_eq!(
        refusal(COUNT, "99999999999999999999"),
        "is 99999999999999999999, but must be between 0 and 10000"
    );
}

#[test]
fn an_optional_value_may_be_null_and_says_so() {
    let kind = ValueKind { form: COUNT, optional: true };
    assert_eq!(kind.read(Raw::typed("null")), Ok(Datum::Absent));
    assert_eq!(kind.read(Raw::typed("")), Ok(Datum::Absent));
    assert_eq!(kind.read(Raw::typed("70000")).unwrap_err().allowed, "between 0 and 10000, or null");
    assert_eq!(kind.to_string(), "a whole number between 0 and 10000, or null");
}

#[test]
fn a_choice_names_its_words() {
    let ttl = ValueForm::Choice(&["5m", "1h"]);
    assert_eq!(read(ttl, "1h"), Ok(Datum::Text("1h".to_owned())));
    assert_eq!(refusal(ttl, "2h"), "is \"2h\", but must be 5m or 1h");
}

#[test]
fn addresses_need_a_scheme_and_a_host() {
    for good in ["", "http://localhost:8089/v1", "https://example.com"] {
        assert_eq!(read(ValueForm::Address, good), Ok(Datum::Text(good.to_owned())));
    }
    for bad in ["localhost:8089", "ftp://example.com", "https://", "http:///v1", "https://a b"] {
        assert!(read(ValueForm::Address, bad).is_err(), "{bad}");
    }
    assert_eq!(
        refusal(ValueForm::Address, "ftp://me:hunter2@example.com/x"),
        "is \"ftp://me:****@example.com/x\", but must be an http:// or https:// address, or empty"
    );
}

#[test]
fn addresses_of_databases_are_shown_without_passwords() {
    let url = "postgres://me:hunter2@db:5433,db2/record?sslmode=require&password=hunter2";
    let read_url = read(ValueForm::Database, url).unwrap();
    assert_eq!(read_url, Datum::Text(url.to_owned()));
    let cases = [
        (url, "postgres://me:****@db:5433,db2/record?sslmode=require&password=****"),
        ("postgres://me:hunter2/@?x@db/record", "postgres://me:****@db/record"),
        ("postgresql://me@db/record", "postgresql://me@db/record"),
        ("postgres://db/record?user=me&sslpassword=hunter2", "postgres://db/record?user=me&sslpassword=****"),
    ];
    for (url, shown) in cases {
        assert_eq!(Datum::Text(url.to_owned()).to_string(), shown);
    }
    for bad in ["mysql://me:hunter2@db/record", "postgres://", "/var/lib/record.db", "postgres://a b"] {
        let refusal = refusal(ValueForm::Database, bad);
        assert!(refusal.ends_with("but must be a postgres:// address, or empty"), "{refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}

#[test]
fn addresses_of_buckets_are_shown_without_credentials() {
    let cases = [
        (
            "s3://AKIAEXAMPLE:hunter2@bucket/prefix?region=eu-central-1",
            "s3://****@bucket/prefix?region=eu-central-1",
        ),
        ("s3://AKIAEXAMPLE:hun/ter2?@bucket", "s3://****@bucket"),
        ("az://hunter2@container", "az://****@container"),
        (
            "s3://bucket/a?aws_access_key_id=hunter2&aws_secret_access_key=hunter2&sse_kms_key_id=key-1",
            "s3://bucket/a?aws_access_key_id=****&aws_secret_access_key=****&sse_kms_key_id=key-1",
        ),
        (
            "az://c?sig=hunter2&account_key=hunter2&skip_signature=true",
            "az://c?sig=****&account_key=****&skip_signature=true",
        ),
        ("s3://b?endpoint=http%3A%2F%2Fme%3Ahunter2%40host", "s3://b?endpoint=****"),
        ("s3://bucket/prefix?X-Amz-Security-Token=hunter2", "s3://bucket/prefix?X-Amz-Security-Token=****"),
        ("me:hunter2@db/record", "me:****@db/record"),
        ("host=db user=me password=hunter2", "host=db user=me password=****"),
        ("a text about me@example.com: nothing secret", "a text about me@example.com: nothing secret"),
        ("gs://bucket/prefix", "gs://bucket/prefix"),
    ];
    for (text, shown) in cases {
        assert_eq!(Datum::Text(text.to_owned()).to_string(), shown);
    }
    let refusal = refusal(ValueForm::Database, "host=db password=hunter2");
    assert!(!refusal.contains("hunter2"), "{refusal}");
}

#[test]
fn names_and_variables_have_a_shape() {
    assert!(read(ValueForm::Name, "lcm-2.x_1").is_ok());
    for bad in ["", "two words", "../up", "ümlaut"] {
        assert!(read(ValueForm::Name, bad).is_err(), "{bad}");
    }
    assert!(read(ValueForm::Variable, "OPENAI_API_KEY").is_ok());
    assert!(read(ValueForm::Variable, "2_KEYS").is_err());
}

#[test]
fn secrets_never_stand_in_a_message() {
    let pasted = "sk-live-0123456789abcdef";
    assert!(!refusal(ValueForm::Variable, pasted).contains("0123"));
    assert!(!refusal(ValueForm::Secret, &format!("{pasted}\u{7}")).contains("0123"));
    let secret = read(ValueForm::Secret, pasted).unwrap();
    assert_eq!(secret.to_string(), "****cdef");
    assert_eq!(format!("{secret:?}"), "Secret(Secret(****cdef))");
    assert_eq!(Secret::new("short").to_string(), "****");
}

#[test]
fn shown_values_stay_short_and_on_one_line() {
    let shown = read(ValueForm::Switch, &format!("a\nb{}", "x".repeat(500))).unwrap_err().shown;
    assert!(shown.starts_with("\"a\\nbxxx") && shown.ends_with("…\""), "{shown}");
    assert!(shown.chars().count() < 70);
}

#[test]
fn text_is_one_line_of_bounded_length() {
    assert_eq!(read(ValueForm::Text, " gpt-5 "), Ok(Datum::Text("gpt-5".to_owned())));
    assert!(read(ValueForm::Text, "a\nb").is_err());
    assert!(read(ValueForm::Text, &"x".repeat(MAX_TEXT_CHARS)).is_ok());
    assert!(read(ValueForm::Text, &"x".repeat(MAX_TEXT_CHARS + 1)).is_err());
}
