//! Creating and listing access tokens.

use super::*;

fn arguments(name: &str) -> NewArgs {
    NewArgs {
        name: name.to_owned(),
        owner: None,
        operator: false,
        per_minute: Some(60),
        concurrent: None,
        usd_per_day: Some(5_000_000),
        usd_per_month: None,
        max_body: None,
        json: false,
    }
}

#[test]
fn tokens_are_made_kept_as_hashes_and_revoked() {
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().to_owned());
    new(&arguments("ci"), &app).unwrap();
    new(&arguments("laptop"), &app).unwrap();
    assert_eq!(new(&arguments("ci"), &app).unwrap_err().exit(), Exit::BadInput);
    assert_eq!(new(&arguments("no name"), &app).unwrap_err().exit(), Exit::BadInput);
    let kept = std::fs::read_to_string(home.path().join("tokens.json")).unwrap();
    assert!(!kept.contains("tl_"));
    let book = crate::access_token_file::read(&app).unwrap();
    assert_eq!(book.entries().len(), 2);
    assert_eq!(limit_words(&book.entries()[0].limits), "60 a minute, $5.00 a day");
    revoke(&RevokeArgs { name: "ci".to_owned() }, &app).unwrap();
    assert_eq!(revoke(&RevokeArgs { name: "ci".to_owned() }, &app).unwrap_err().exit(), Exit::BadInput);
    assert_eq!(crate::access_token_file::read(&app).unwrap().entries().len(), 1);
}

#[cfg(unix)]
#[test]
fn the_list_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().to_owned());
    new(&arguments("ci"), &app).unwrap();
    let mode = std::fs::metadata(home.path().join("tokens.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[test]
fn unreadable_token_list_grants_no_access() {
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().to_owned());
    std::fs::write(home.path().join("tokens.json"), "{").unwrap();
    assert_eq!(crate::access_token_file::read(&app).unwrap_err().exit(), Exit::BadConfig);
    assert!(new(&arguments("ci"), &app).is_err());
}

#[test]
fn dollars_are_read_as_they_are_typed() {
    assert_eq!(parse_dollars("5"), Ok(5_000_000));
    assert_eq!(parse_dollars("$0.50"), Ok(500_000));
    for typed in ["", "-1", "1e9", "five", "99999999"] {
        assert!(parse_dollars(typed).is_err(), "{typed}");
    }
}
