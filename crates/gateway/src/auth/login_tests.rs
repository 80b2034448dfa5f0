//! Cookies and codes: which are valid, and which browser requests come from the gateway's own page.

use hyper::Request;

use super::*;

fn key() -> SealKey {
    SealKey::from_bytes([3; SealKey::BYTES])
}

fn head(method: &str, headers: &[(&str, &str)]) -> Parts {
    let request =
        headers.iter().fold(Request::builder().method(method).uri("/api/me"), |request, (name, value)| {
            request.header(*name, *value)
        });
    request.body(()).unwrap().into_parts().0
}

#[test]
fn a_cookie_opens_until_it_expires_and_only_with_its_key() {
    let headers = head("GET", &[("host", "127.0.0.1:8790")]).headers;
    let set = set_cookie(&headers, &key(), Some("tl_secret"), 1_000, true).unwrap();
    let text = set.to_str().unwrap();
    assert!(text.starts_with("throughline_8790=") && text.ends_with("; Secure"), "{text}");
    assert!(text.contains("HttpOnly") && text.contains("SameSite=Strict") && text.contains("Path=/api"));
    assert!(!text.contains("secret"));
    let value = text.split(['=', ';']).nth(1).unwrap();
    assert_eq!(token_in(value, &key(), 1_001), Some("tl_secret".to_owned()));
    assert_eq!(token_in(value, &key(), 1_000 + COOKIE_SECS * 1_000), None);
    assert_eq!(token_in(value, &SealKey::from_bytes([4; SealKey::BYTES]), 1_001), None);
    let mut changed = value.to_owned();
    changed.replace_range(30..31, if &value[30..31] == "A" { "B" } else { "A" });
    assert_eq!(token_in(&changed, &key(), 1_001), None);
    for other in ["", "tl_secret", "throughline1.00.AA"] {
        assert_eq!(token_in(other, &key(), 1_001), None);
    }
}

#[test]
fn the_cookie_is_taken_out_and_others_stay() {
    let mut headers =
        head("GET", &[("host", "h:1"), ("cookie", "a=1; throughline_1=x; throughline_2=y; b=2")]).headers;
    assert_eq!(take_cookie(&mut headers), Some("x".to_owned()));
    assert_eq!(headers.get("cookie").unwrap(), "a=1; b=2");
    let mut headers = head("GET", &[("host", "h:1"), ("cookie", "throughline_1=x")]).headers;
    assert_eq!(take_cookie(&mut headers), Some("x".to_owned()));
    assert!(headers.get("cookie").is_none());
}

#[test]
fn a_code_counts_once() {
    let codes = LoginCodes::default();
    let code = codes.issue("tl_token").unwrap();
    assert_eq!(codes.take("tl_other"), None);
    assert_eq!(codes.take(&code), Some("tl_token".to_owned()));
    assert_eq!(codes.take(&code), None);
}

#[test]
fn only_the_own_page_changes_anything_from_a_browser() {
    let is_let_in = |method: &str, by_cookie: bool, headers: &[(&str, &str)]| {
        let headers: Vec<_> = [("host", "127.0.0.1:8790")].iter().chain(headers).copied().collect();
        check_page_request(&head(method, &headers), by_cookie).is_ok()
    };
    let (own, other) = (("origin", "http://127.0.0.1:8790"), ("origin", "http://127.0.0.1:3000"));
    let (page, same) = ((PAGE_HEADER, "1"), ("sec-fetch-site", "same-origin"));
    // Programs other than browsers send neither header.
    assert!(is_let_in("POST", false, &[]) && is_let_in("DELETE", false, &[]));
    assert!(is_let_in("GET", false, &[other]), "its browser keeps the answer from it");
    assert!(is_let_in("POST", false, &[own, same, page]));
    for headers in [
        &[own, same][..],
        &[other, page],
        &[("sec-fetch-site", "same-site"), page],
        &[("origin", "null"), page],
    ] {
        assert!(!is_let_in("POST", false, headers), "{headers:?}");
    }
    // Browsers send a cookie with the requests of any page.
    assert!(is_let_in("GET", true, &[same]) && is_let_in("GET", true, &[]));
    assert!(!is_let_in("GET", true, &[("sec-fetch-site", "same-site")]) && !is_let_in("GET", true, &[other]));
    assert!(!is_let_in("POST", true, &[]) && is_let_in("POST", true, &[own, same, page]));
}
