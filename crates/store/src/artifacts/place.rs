//! The place of large texts outside the record: a folder or a bucket, parsed from an address.
//!
//! Everything except credentials is in the address, as in `s3://bucket/prefix?region=eu-central-1`; credentials come from the environment,
//! which is passed in. Not for: reading or writing.

use std::path::PathBuf;

use crate::error::{Result, StoreError};

/// Services, with the settings that an address may have after `?`.
const SERVICES: &[(&str, &[&str])] = &[
    (
        "s3",
        &[
            "allow_http",
            "checksum_algorithm",
            "endpoint",
            "region",
            "request_payer",
            "server_side_encryption",
            "skip_signature",
            "sse_bucket_key_enabled",
            "sse_kms_key_id",
            "unsigned_payload",
            "virtual_hosted_style_request",
        ],
    ),
    ("gs", &["allow_http", "base_url", "skip_signature"]),
    ("az", &["account_name", "allow_http", "endpoint", "skip_signature", "use_emulator"]),
];
/// The prefixes of the environment variables of the services.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// A place for large texts outside the record.
#[derive(Clone, PartialEq, Eq)]
pub struct ArtifactPlace {
    pub(crate) kind: PlaceKind,
    shown: String,
}

/// The kind of a place.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    Folder(PathBuf),
    Bucket(BucketAddress),
}

/// A bucket with the options for its service.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BucketAddress {
    /// `s3`, `gs` or `az`.
    pub(crate) service: &'static str,
    /// The address without settings.
    pub(crate) url: String,
    /// The path after the bucket, without slashes at its ends.
    pub(crate) prefix: String,
    /// Options from the environment, then from the address. May contain credentials.
    pub(crate) options: Vec<(String, String)>,
}

impl std::fmt::Debug for ArtifactPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArtifactPlace").field("place", &self.shown).finish_non_exhaustive()
    }
}

impl ArtifactPlace {
    /// Parses an address: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///FOLDER`. Of the environment
    /// variables, those defined by the services are used.
    pub fn parse(address: &str, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let refused = |problem: String| Err(StoreError::BadArtifactPlace { problem });
        let Some((scheme, rest)) = address.trim().split_once("://") else {
            return refused(format!("`{}` has no scheme", without_settings(address)));
        };
        if scheme == "file" {
            return match rest.starts_with('/') {
                true => Ok(Self { kind: PlaceKind::Folder(rest.into()), shown: format!("file://{rest}") }),
                false => {
                    refused("a folder is named by its whole path, as in file:///srv/artifacts".to_owned())
                }
            };
        }
        let Some((service, allowed)) = SERVICES.iter().find(|(service, _)| *service == scheme) else {
            let is_name = scheme.len() <= 12 && scheme.bytes().all(|byte| byte.is_ascii_lowercase());
            return refused(match is_name {
                true => format!("`{scheme}` is no service for large texts"),
                false => "it begins with no service for large texts".to_owned(),
            });
        };
        if !cfg!(feature = "s3") {
            return refused(format!(
                "`{scheme}://` needs the Cargo feature `s3`, which this program was built without; released packages have it"
            ));
        }
        let (path, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.contains('@') {
            return refused("credentials are taken from the environment, never from the address".to_owned());
        }
        let is_plain = |text: &str, more: &[u8]| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
        };
        if bucket.is_empty() || !is_plain(bucket, b"-._") {
            return refused(format!("`{scheme}://` is followed by the name of a bucket"));
        }
        if !is_plain(prefix, b"-._/=+") || prefix.split('/').any(|part| matches!(part, "." | "..")) {
            return refused(
                "the prefix has letters, digits, `-`, `.`, `_`, `=`, `+` and `/` only".to_owned(),
            );
        }
        let mut options: Vec<(String, String)> = environment
            .into_iter()
            .filter(|(name, _)| VARIABLES.iter().any(|start| name.starts_with(start)))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            if !allowed.contains(&name) {
                // A text that is not a name may be a pasted key.
                let is_name = name.len() <= 40
                    && !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                let shown = if is_name { format!("`{name}`") } else { "what follows `?`".to_owned() };
                return refused(format!(
                    "{shown} is no setting of an address; those of {scheme}:// are {}. Credentials are taken from the environment",
                    allowed.join(", ")
                ));
            }
            options.push((name.to_owned(), decoded(value)));
        }
        // An endpoint with `http` is used without TLS.
        let is_plain_http = |(name, value): &(String, String)| {
            (name.contains("endpoint") || name.ends_with("base_url")) && value.starts_with("http://")
        };
        if options.iter().any(is_plain_http) && options.iter().all(|(name, _)| !name.ends_with("allow_http"))
        {
            options.push(("allow_http".to_owned(), "true".to_owned()));
        }
        let url = match prefix.is_empty() {
            true => format!("{scheme}://{bucket}"),
            false => format!("{scheme}://{bucket}/{prefix}"),
        };
        let address = BucketAddress { service, url: url.clone(), prefix: prefix.to_owned(), options };
        Ok(Self { kind: PlaceKind::Bucket(address), shown: url })
    }

    /// Returns the address for users: without settings and credentials.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// Returns an address for an error message: text after `?` or before `@` may be secret.
fn without_settings(address: &str) -> &str {
    let end = address.find('?').unwrap_or(address.len());
    let start = address.rfind('@').map_or(0, |at| at + 1).min(end);
    &address[start..end]
}

/// Decodes percent-encoding, such as `%3A`.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, after) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
