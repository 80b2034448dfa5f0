//! Errors of object storage, in words that say what to do. Responses of services are never shown, because they may contain keys.

use std::error::Error;

/// Error codes of services, with their meaning. The first one in a response is used.
const CODES: &[(&[&str], &str)] = &[
    (
        &["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"],
        "the bucket does not exist; create it",
    ),
    (
        &[
            "ExpiredToken",
            "TokenRefreshRequired",
            "Token expired",
            "invalid_grant",
            "ExpiredAuthenticationToken",
        ],
        "the credentials have expired; renew them",
    ),
    (
        &["RequestTimeTooSkewed"],
        "the clock of this machine differs from that of the service by more than it allows; set the clock",
    ),
    (
        &[
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "AuthenticationFailed",
            "Unauthenticated",
        ],
        "the credentials are not accepted; check the variables of the environment that hold them",
    ),
    (
        &[
            "AccessDenied",
            "AuthorizationPermissionMismatch",
            "AuthorizationFailure",
            "AllAccessDisabled",
            "PermissionDenied",
        ],
        "access is denied; the credentials need the rights to list, read, write and delete objects there",
    ),
    (&["EntityTooLarge"], "the text is larger than the service allows"),
    (&["QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity"], "the service has no space left"),
    (&["SlowDown", "TooManyRequests"], "the service is asked too often; try again later"),
];
/// A response with one of these means that the bucket is in another region or account.
const ELSEWHERE: [&str; 4] = [
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "redirect without LOCATION",
    "IllegalLocationConstraint",
];
/// Addresses where credentials are searched if the environment has none; on most machines nothing answers there.
const METADATA: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "latest/api/token"];

/// Whether an error means that the bucket does not exist.
pub(crate) fn is_no_bucket(error: &dyn Error) -> bool {
    let text = chain(error);
    CODES.first().is_some_and(|(codes, _)| codes.iter().any(|code| text.contains(code)))
}

/// Returns a description of the error for users.
pub(crate) fn problem_words(error: &dyn Error) -> String {
    let text = chain(error);
    if ELSEWHERE.iter().any(|code| text.contains(code)) {
        let region = between(&text, "<Region>", "</Region>").or_else(|| between(&text, "expecting '", "'"));
        return match region.filter(|region| is_word(region)) {
            Some(region) => {
                format!("the bucket is in the region {region}; add ?region={region} to the address")
            }
            None => "the bucket is in another region; add ?region=NAME to the address".to_owned(),
        };
    }
    if let Some((_, words)) = CODES.iter().find(|(codes, _)| codes.iter().any(|code| text.contains(code))) {
        return (*words).to_owned();
    }
    if METADATA.iter().any(|place| text.contains(place)) {
        return "no credentials were found; set the variables of the service, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            .to_owned();
    }
    if let Some(code) = between(&text, "<Code>", "</Code>").filter(|code| is_word(code)) {
        return format!("the service answered {code}");
    }
    if let Some(status) = between(&text, "status code: ", ":") {
        return format!("the service answered {}", status.chars().take(60).collect::<String>());
    }
    // The innermost error comes from the network or a setting.
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string().lines().next().unwrap_or_default().chars().take(200).collect()
}

/// Returns the messages of an error and its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push('\n');
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = &text[text.find(start)? + start.len()..];
    rest.get(..rest.find(end)?)
}

fn is_word(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
