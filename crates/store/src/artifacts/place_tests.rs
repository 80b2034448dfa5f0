//! Tests of addresses of places for large texts.

use super::*;

fn parse(address: &str) -> Result<ArtifactPlace> {
    ArtifactPlace::parse(address, [("AWS_SECRET_ACCESS_KEY".to_owned(), "s3cret".to_owned())])
}

fn problem(address: &str) -> String {
    parse(address).unwrap_err().to_string()
}

#[test]
fn folder_is_named_by_its_whole_path() {
    let place = parse("file:///srv/large texts").unwrap();
    assert!(place.kind == PlaceKind::Folder("/srv/large texts".into()));
    assert_eq!(place.shown(), "file:///srv/large texts");
    assert!(problem("file://srv").contains("whole path"));
}

#[cfg(not(feature = "s3"))]
#[test]
fn missing_feature_is_named() {
    assert!(problem("s3://bucket").contains("Cargo feature `s3`"));
}

#[cfg(feature = "s3")]
#[test]
fn settings_follow_the_environment_and_are_not_shown() {
    let place = parse("s3://bucket/a/prefix/?region=eu-central-1&endpoint=http%3A%2F%2F127.0.0.1:9").unwrap();
    assert_eq!(place.shown(), "s3://bucket/a/prefix");
    let PlaceKind::Bucket(bucket) = &place.kind else { panic!("a bucket") };
    assert_eq!((bucket.service, bucket.prefix.as_str()), ("s3", "a/prefix"));
    let options: Vec<(&str, &str)> =
        bucket.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        options,
        [
            ("aws_secret_access_key", "s3cret"),
            ("region", "eu-central-1"),
            ("endpoint", "http://127.0.0.1:9"),
            ("allow_http", "true"),
        ]
    );
    assert!(!format!("{place:?}").contains("s3cret"));
}

#[cfg(feature = "s3")]
#[test]
fn bad_addresses_are_refused_without_what_may_be_secret() {
    for address in [
        "bucket/prefix?secret_access_key=hunter2",
        "ftp://bucket?secret_access_key=hunter2",
        "s3://",
        "s3://me:hunter2@bucket/prefix",
        "s3://bucket?secret_access_key=hunter2",
        "s3://bucket/../other",
        "s3://bucket/pre fix",
        "gs://bucket?region=here",
    ] {
        let problem = problem(address);
        assert!(!problem.contains("hunter2"), "{problem}");
        assert!(problem.starts_with("the place for large texts cannot be used: "), "{problem}");
    }
    assert!(
        problem("s3://bucket?secret_access_key=x").contains("Credentials are taken from the environment")
    );
}
