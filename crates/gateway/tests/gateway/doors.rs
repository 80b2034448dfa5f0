//! Who may come in.

use serde_json::Value;
use throughline_testkit::{Reply, Script};

use crate::stage::Stage;

#[tokio::test]
async fn pages_of_elsewhere_and_names_that_only_lead_here_are_refused() {
    let stage = Stage::new(None, Script::answering(|_| Reply::text("hello"))).await;
    let ask = |headers: &[(&str, &str)], path: &str| {
        let request = headers
            .iter()
            .fold(stage.http.get(stage.at(path)), |request, (name, value)| request.header(*name, *value));
        async move { request.send().await.unwrap() }
    };
    assert_eq!(ask(&[], "/api/sessions").await.status(), 200);
    assert_eq!(ask(&[("origin", "http://localhost:3000")], "/api/sessions").await.status(), 200);
    for headers in [[("origin", "https://evil.example")], [("origin", "null")], [("host", "evil.example")]] {
        let refused = ask(&headers, "/api/sessions").await;
        assert_eq!(refused.status(), 403, "{headers:?}");
        let body: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
        assert_eq!(body["error"]["code"], "forbidden");
        // On a wire the same is said in the form of that wire.
        let refused = ask(&headers, "/v1/models").await;
        assert_eq!(refused.status(), 403);
        let body: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
        assert_eq!(body["error"]["type"], "permission_error");
    }
    assert!(stage.upstream.calls().is_empty());
}
