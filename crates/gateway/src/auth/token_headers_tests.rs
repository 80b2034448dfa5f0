//! Tokens in places where they are valid, and in places where they are not.

use proptest::prelude::*;

use super::*;

const TOKEN: &str = "tl_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parts(uri: &str, headers: &[(&str, String)]) -> Parts {
    let request = headers
        .iter()
        .fold(hyper::Request::builder().uri(uri), |request, (name, value)| request.header(*name, value));
    request.body(()).unwrap().into_parts().0
}

#[test]
fn a_token_elsewhere_is_removed_and_does_not_count() {
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("user:{TOKEN}"));
    for (name, value) in [
        ("authorization", format!("Basic {basic}")),
        ("authorization", format!("Token {TOKEN}")),
        ("x-goog-api-key", TOKEN.to_owned()),
        ("cookie", format!("a=1; session={TOKEN}; b=2")),
        ("x-anything", format!("tl%5F{}", &TOKEN[3..])),
    ] {
        let mut head = parts("/v1/models", &[(name, value.clone()), ("accept", "text/plain".to_owned())]);
        assert_eq!(take_tokens(&mut head).unwrap(), None, "{name}: {value}");
        assert!(!head.headers.contains_key(name), "{name}: {value}");
        assert!(head.headers.contains_key("accept"));
    }
    let mut head = parts(&format!("/v1/models?a=1&key=tl%5f{}&b=2", &TOKEN[3..]), &[]);
    assert_eq!(take_tokens(&mut head).unwrap(), None);
    assert_eq!(head.uri.to_string(), "/v1/models?a=1&b=2");
    let mut head = parts(&format!("/v1/models?key={TOKEN}"), &[]);
    take_tokens(&mut head).unwrap();
    assert_eq!(head.uri.to_string(), "/v1/models");
    assert!(take_tokens(&mut parts(&format!("/v1/models/{TOKEN}"), &[])).is_err());
}

#[test]
fn a_second_header_keeps_its_key_and_loses_its_token() {
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    let mut head = parts("/", &[bearer("sk-own"), bearer(TOKEN)]);
    assert_eq!(take_tokens(&mut head).unwrap().as_deref(), Some(TOKEN));
    let left: Vec<_> = head.headers.get_all("authorization").iter().collect();
    assert_eq!(left, ["Bearer sk-own"]);
}

proptest! {
    /// A token is removed completely from every place of a request, in every encoding.
    #[test]
    fn no_token_is_left(
        name in prop::sample::select(vec!["authorization", "x-api-key", "api-key", "cookie", "x-other", "via", TOKEN_HEADER]),
        wrap in prop::sample::select(vec!["", "Bearer ", "bearer  ", "Basic ", "a=", "key, "]),
        times in 1usize..4,
        (in_query, in_base64) in (any::<bool>(), any::<bool>()),
    ) {
        let value = match in_base64 {
            true => format!("{wrap}{}", base64::engine::general_purpose::STANDARD.encode(TOKEN)),
            false => format!("{wrap}{TOKEN}"),
        };
        let headers: Vec<_> = (0..times).map(|_| (name, value.clone())).collect();
        let uri = if in_query { format!("/v1/models?x=1&t={TOKEN}") } else { "/v1/models?x=1".to_owned() };
        let mut head = parts(&uri, &headers);
        let _ = take_tokens(&mut head).unwrap();
        let text = format!("{:?} {:?}", head.headers, head.uri);
        prop_assert!(!text.contains(&TOKEN[3..40]), "{text}");
        prop_assert!(!text.contains(&value), "{text}");
        prop_assert_eq!(head.uri.query(), Some("x=1"));
    }
}
