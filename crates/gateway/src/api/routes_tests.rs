//! The route table.

use super::*;

fn found(method: &str, path: &str) -> Result<RouteMatch, ApiError> {
    find(&Method::from_bytes(method.as_bytes()).unwrap(), path)
}

#[test]
fn paths_lead_where_they_say() {
    let last = |route| Ok(RouteMatch::Route(route, "last".to_owned()));
    assert_eq!(found("GET", "/api/sessions"), Ok(RouteMatch::Route(Route::Sessions, String::new())));
    assert_eq!(found("GET", "/api/sessions/last"), last(Route::Session));
    assert_eq!(found("HEAD", "/api/sessions/last/view"), last(Route::View));
    assert_eq!(found("POST", "/api/sessions/last/undo"), last(Route::Undo));
    assert_eq!(
        found("POST", "/api/conversations/chat%2F1%20%C3%A9/messages"),
        Ok(RouteMatch::Route(Route::Message, "chat/1 é".to_owned()))
    );
}

#[test]
fn what_is_not_there_is_distinguished_from_what_is_asked_for_otherwise() {
    assert_eq!(found("DELETE", "/api/sessions"), Ok(RouteMatch::OtherMethods("GET".to_owned())));
    assert_eq!(found("HEAD", "/api/events"), Ok(RouteMatch::OtherMethods("GET".to_owned())));
    for path in ["/api", "/api/", "/api/sessions/", "/api/sessions//view", "/api/nothing", "/api/search/x"] {
        assert!(found("GET", path).is_err(), "{path}");
    }
    for name in ["%", "%4", "%zz", "%ff", "%00", &"x".repeat(600)] {
        assert!(found("GET", &format!("/api/sessions/{name}")).is_err(), "{name}");
    }
}
