//! Paths on the list, and paths that are not.

use super::*;

fn verdict(paths: &TenantPaths, text: &str) -> Option<AllowedPath> {
    let (method, path) = text.split_once(' ').unwrap();
    paths.find(&Method::from_bytes(method.as_bytes()).unwrap(), path).ok()
}

#[test]
fn what_clients_need_is_allowed() {
    let paths = TenantPaths::default();
    assert_eq!(paths.rules.len(), BUILT_IN.len(), "every entry can be read");
    for text in ["GET /v1/models", "HEAD /v1/models", "GET /v1/models/meta/llama-3", "POST /v1/embeddings"] {
        assert_eq!(verdict(&paths, text).unwrap().owned_ids, Vec::<String>::new(), "{text}");
    }
    let found = verdict(&paths, "GET /v1/responses/resp_1/input_items").unwrap();
    assert_eq!((found.owned_ids, found.price), (vec!["resp_1".to_owned()], PathPrice::Free));
    assert_eq!(verdict(&paths, "POST /v1/batches").unwrap().price, PathPrice::Uncounted);
    assert_eq!(verdict(&paths, "POST /v1/files").unwrap().answer, AnswerNames::NewObjects);
    assert_eq!(verdict(&paths, "GET /v1/files/file_1/content").unwrap().answer, AnswerNames::Nothing);
    assert!(NAMING.iter().all(|naming| BUILT_IN.iter().any(|(text, _)| text == naming)));
}

#[test]
fn what_is_about_others_or_the_organisation_is_refused_by_name() {
    let paths = TenantPaths::default();
    for text in [
        "GET /v1/files",
        "GET /v1/batches",
        "GET /v1/responses",
        "GET /v1/conversations",
        "GET /v1/messages/batches",
        "GET /v1/chat/completions",
        "GET /v1/organization/usage/completions",
        "POST /v1/organization/invites",
        "DELETE /v1/models/ft:gpt",
        "GET /v1/files/",
        "GET /v1/fine_tuning/jobs",
        "PATCH /v1/files/file_1",
        "GET /v1",
    ] {
        assert_eq!(verdict(&paths, text), None, "{text}");
    }
    let refused = paths.find(&Method::GET, "/v1/files").unwrap_err();
    assert!(refused.message.contains("GET /v1/files is not"), "{refused:?}");
    assert!(refused.message.contains("gateway.tenant_paths"), "{refused:?}");
}

#[test]
fn a_setting_widens_the_list_and_mistakes_in_it_are_named() {
    let paths = TenantPaths::with("GET /v1/files, POST /v1/images/*,GET /v1/threads/{id}/**").unwrap();
    assert!(verdict(&paths, "GET /v1/files").is_some());
    assert!(verdict(&paths, "POST /v1/images/generations").is_some());
    assert_eq!(verdict(&paths, "POST /v1/images/generations/x"), None);
    assert_eq!(verdict(&paths, "GET /v1/threads/thread_1/runs/1").unwrap().owned_ids, ["thread_1"]);
    assert_eq!(TenantPaths::with(" , ").unwrap(), TenantPaths::default());
    for wrong in ["/v1/files", "get /v1/files", "GET /files", "GET /v1/**/x"] {
        assert!(TenantPaths::with(wrong).unwrap_err().contains(wrong), "{wrong}");
    }
}
