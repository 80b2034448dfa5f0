//! Checks of request paths: dot segments, the paths of the API, and the prefix that names the run of a client.

use hyper::Uri;
use hyper::http::uri::PathAndQuery;

/// The prefix of the paths of a client that `throughline run` started; the name of the run follows.
const RUN_PREFIX: &str = "/run/";
/// The longest name of a run, in characters. A longer one is not read as a name.
const MAX_RUN_CHARS: usize = 64;

/// Removes the run prefix from a path and returns the name of the run: `/run/NAME/v1/messages` becomes `/v1/messages`.
pub(crate) fn take_run(uri: &mut Uri) -> Option<String> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(RUN_PREFIX)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let is_name = (1..=MAX_RUN_CHARS).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_name {
        return None;
    }
    let name = name.to_owned();
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(rest).ok()?);
    *uri = Uri::from_parts(parts).ok()?;
    Some(name)
}

/// The path where a browser exchanges a token for a cookie.
pub(crate) const LOGIN_PATH: &str = "/api/login";

/// Whether a path belongs to the gateway's own API.
pub(crate) fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether a path contains `.` or `..` segments, in any spelling that an upstream may decode. A request that is passed on below `/v1`
/// must stay below it.
pub(crate) fn has_dot_segments(path: &str) -> bool {
    let plain = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    plain.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."))
        // An escaped percent sign may hide such a segment.
        || plain.contains("%25")
}

#[cfg(test)]
mod tests {
    //! Dot segments in every spelling, and the run prefix.

    use super::{has_dot_segments, take_run};

    #[test]
    fn the_name_of_a_run_is_taken_off_the_path() {
        let taken = |path: &str| {
            let mut uri = path.parse().unwrap();
            let run = take_run(&mut uri);
            (run, uri.to_string())
        };
        let cases = [
            ("/run/a1/v1/messages?beta=true", Some("a1"), "/v1/messages?beta=true"),
            ("/run/a1/v1/../x", Some("a1"), "/v1/../x"),
            ("/run/a1", Some("a1"), "/"),
            ("/run/a1?x=1", Some("a1"), "/?x=1"),
            ("http://127.0.0.1:1/run/a1/v1/models", Some("a1"), "http://127.0.0.1:1/v1/models"),
            ("/run//v1/messages", None, "/run//v1/messages"),
            ("/run/a-b/v1/messages", Some("a-b"), "/v1/messages"),
            ("/run/a.b/v1/messages", None, "/run/a.b/v1/messages"),
            ("/v1/run/a1", None, "/v1/run/a1"),
            ("/v1/messages", None, "/v1/messages"),
        ];
        for (path, run, rest) in cases {
            assert_eq!(taken(path), (run.map(str::to_owned), rest.to_owned()), "{path}");
        }
    }

    #[test]
    fn ways_out_are_seen_in_every_spelling() {
        for crooked in [
            "/v1/../admin",
            "/v1/%2e%2e/admin",
            "/v1/%2E./admin",
            "/v1/x/..%2f..%2fadmin",
            "/v1/files/..\\..\\x",
            "/v1/files/%5c..%5cx",
            "/v1/./chat/completions",
            "/v1/%252e%252e/admin",
            "/v1/..",
        ] {
            assert!(has_dot_segments(crooked), "{crooked}");
        }
        for straight in
            ["/", "/v1/models", "/v1/models/gpt-4.1", "/v1/files/a..b", "/v1/.well-known/x", "/v1/a%20b"]
        {
            assert!(!has_dot_segments(straight), "{straight}");
        }
    }
}
