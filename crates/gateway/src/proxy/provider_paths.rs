//! The provider paths that the holder of an access token may use under the operator's key, besides the managed ones.
//!
//! The list contains only what SDKs and agents need: paths without state at the provider, and objects that the token's owner created
//! (`{id}`). It has no paths that list, read, change or delete objects of other owners, or that concern the organisation.
//! `gateway.tenant_paths` adds to the list.
//!
//! Not for: the owners of objects (`provider_objects`). Without tokens, or without an operator's key for the upstream, every path is
//! allowed.

use hyper::Method;

use crate::error::GatewayError;

/// The setting that adds to the list.
const SETTING: &str = "gateway.tenant_paths";
/// The longest part of a path in an error message, in characters.
const SHOWN_CHARS: usize = 120;

/// The price of a request for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathPrice {
    /// Free, by the price lists of the providers.
    Free,
    /// Charged, but not counted by the gateway.
    Uncounted,
}

/// A path that tenants may use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathRule {
    method: Method,
    segments: Vec<PathSegment>,
    price: PathPrice,
    answer: AnswerNames,
}

/// Whether the response contains ids of newly created objects. Responses with content that a tenant wrote itself never count: a tenant
/// could claim any object with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerNames {
    NewObjects,
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathSegment {
    /// This literal text.
    Text(String),
    /// Any single segment.
    Any,
    /// The id of an object that belongs to the client's owner.
    Owned,
    /// All further segments.
    Rest,
}

/// A requested path that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedPath {
    /// Ids of objects in it, which must belong to the client's owner.
    pub(crate) owned_ids: Vec<String>,
    pub(crate) price: PathPrice,
    pub(crate) answer: AnswerNames,
}

/// The paths that are allowed by default. Names of models may contain slashes.
const BUILT_IN: [(&str, PathPrice); 29] = [
    ("GET /v1/models", PathPrice::Free),
    ("GET /v1/models/**", PathPrice::Free),
    ("POST /v1/embeddings", PathPrice::Uncounted),
    ("POST /v1/completions", PathPrice::Uncounted),
    ("POST /v1/rerank", PathPrice::Uncounted),
    ("POST /v1/moderations", PathPrice::Free),
    ("POST /v1/responses/input_tokens", PathPrice::Free),
    ("GET /v1/responses/{id}", PathPrice::Free),
    ("DELETE /v1/responses/{id}", PathPrice::Free),
    ("GET /v1/responses/{id}/input_items", PathPrice::Free),
    ("POST /v1/responses/{id}/cancel", PathPrice::Free),
    ("POST /v1/conversations", PathPrice::Free),
    ("GET /v1/conversations/{id}", PathPrice::Free),
    ("POST /v1/conversations/{id}", PathPrice::Free),
    ("DELETE /v1/conversations/{id}", PathPrice::Free),
    ("GET /v1/conversations/{id}/items", PathPrice::Free),
    ("POST /v1/conversations/{id}/items", PathPrice::Free),
    ("GET /v1/conversations/{id}/items/*", PathPrice::Free),
    ("DELETE /v1/conversations/{id}/items/*", PathPrice::Free),
    ("POST /v1/files", PathPrice::Free),
    ("GET /v1/files/{id}", PathPrice::Free),
    ("GET /v1/files/{id}/content", PathPrice::Free),
    ("DELETE /v1/files/{id}", PathPrice::Free),
    ("POST /v1/batches", PathPrice::Uncounted),
    ("GET /v1/batches/{id}", PathPrice::Free),
    ("POST /v1/batches/{id}/cancel", PathPrice::Free),
    ("POST /v1/messages/batches", PathPrice::Uncounted),
    ("GET /v1/messages/batches/{id}", PathPrice::Free),
    ("GET /v1/messages/batches/{id}/results", PathPrice::Free),
];

/// The default paths whose responses contain ids of new objects. A batch names the files with its results once they exist.
const NAMING: [&str; 5] = [
    "POST /v1/conversations",
    "POST /v1/files",
    "POST /v1/batches",
    "GET /v1/batches/{id}",
    "POST /v1/messages/batches",
];

/// The allowed paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantPaths {
    rules: Vec<PathRule>,
}

impl Default for TenantPaths {
    fn default() -> Self {
        let built_in = BUILT_IN.iter().filter_map(|(text, price)| {
            let answer = if NAMING.contains(text) { AnswerNames::NewObjects } else { AnswerNames::Nothing };
            PathRule::parse(text, *price, answer).ok()
        });
        Self { rules: built_in.collect() }
    }
}

impl TenantPaths {
    /// Returns the default list with the entries of the setting: `METHOD /path`, separated by commas. `*` matches one segment, `**` at
    /// the end all further segments, `{id}` an object of the client's owner.
    pub fn with(more: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for entry in more.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let names =
                if entry.starts_with("POST ") { AnswerNames::NewObjects } else { AnswerNames::Nothing };
            all.rules.push(PathRule::parse(entry, PathPrice::Uncounted, names)?);
        }
        Ok(all)
    }

    /// Finds the rule for a path, or returns an error that names the path.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<AllowedPath, GatewayError> {
        let inbound = if *method == Method::HEAD { &Method::GET } else { method };
        let fits = self.rules.iter().filter(|rule| rule.method == *inbound);
        fits.filter_map(|rule| rule.fit(path)).next().ok_or_else(|| {
            let shown: String = path.chars().take(SHOWN_CHARS).collect();
            GatewayError {
                status: hyper::StatusCode::FORBIDDEN,
                kind: "permission_error",
                message: format!(
                    "{method} {shown} is not among the provider paths that access tokens may use here; \
                     the operator can add it to the setting {SETTING}"
                ),
            }
        })
    }
}

impl PathRule {
    fn parse(text: &str, price: PathPrice, answer: AnswerNames) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` {why}; an entry reads like `GET /v1/images/*`");
        let (method, path) = text.split_once(char::is_whitespace).ok_or_else(|| wrong("names no path"))?;
        let is_plain = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let method = Method::from_bytes(method.as_bytes()).ok().filter(|_| is_plain);
        let method = method.ok_or_else(|| wrong("begins with no method"))?;
        let path = path.trim().strip_prefix("/v1/").ok_or_else(|| wrong("is not below /v1/"))?;
        let segments: Vec<PathSegment> = path.split('/').map(PathSegment::parse).collect();
        let rests = segments.iter().filter(|segment| **segment == PathSegment::Rest).count();
        if rests > usize::from(segments.last() == Some(&PathSegment::Rest)) {
            return Err(wrong("has a `**` that is not at its end"));
        }
        Ok(Self { method, segments, price, answer })
    }

    fn fit(&self, path: &str) -> Option<AllowedPath> {
        let mut given = path.strip_prefix("/v1/")?.split('/');
        let allowed = |owned_ids| AllowedPath { owned_ids, price: self.price, answer: self.answer };
        let mut owned_ids = Vec::new();
        for segment in &self.segments {
            let text = given.next().filter(|text| !text.is_empty())?;
            match segment {
                PathSegment::Text(wanted) if wanted == text => {}
                PathSegment::Text(_) => return None,
                PathSegment::Any => {}
                PathSegment::Owned => owned_ids.push(text.to_owned()),
                PathSegment::Rest => return Some(allowed(owned_ids)),
            }
        }
        given.next().is_none().then(|| allowed(owned_ids))
    }
}

impl PathSegment {
    fn parse(text: &str) -> Self {
        match text {
            "*" => Self::Any,
            "**" => Self::Rest,
            "{id}" => Self::Owned,
            text => Self::Text(text.to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "provider_paths_tests.rs"]
mod tests;
