//! Paths that lead somewhere else than they say.

/// Whether a path goes up or stands still somewhere, in any spelling that whoever reads it next may understand: what is
/// passed on below `/v1` must stay there.
pub(crate) fn has_dot_segments(path: &str) -> bool {
    let plain = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    plain.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."))
        // A percent sign that was itself escaped may hide the same again.
        || plain.contains("%25")
}

#[cfg(test)]
mod tests {
    //! Straight and crooked paths.

    use super::has_dot_segments;

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
