//! The web page under `/ui/`: files embedded in the program, with headers that forbid the page to load anything else.
//!
//! The page contains no data: it reads everything from the API under `/api`, where access is checked. Paths below `/ui/` without a file
//! are states of the page and return its document. Parts of the page are built from `web/`.

use std::io::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LINK, LOCATION, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use crate::error::GatewayError;
use crate::http::response_body::ResponseBody;

/// The path of the page.
pub(crate) const UI_PATH: &str = "/ui/";

/// Allows only files of this server: text of models cannot load, run or frame anything. Images may be part of a message (`data:`). With
/// trusted types, no string becomes markup in browsers that support them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
/// The page needs none of these.
const PERMISSIONS: &str =
    "camera=(), microphone=(), geolocation=(), payment=(), usb=(), clipboard-read=(), display-capture=()";

/// The files that the document needs first.
const DOCUMENT_PARTS: &str = "</ui/app.js>; rel=modulepreload, </ui/app.css>; rel=preload; as=style";

struct PageFile {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

// Four files that never change while the program runs do not justify a crate that embeds folders.
const FILES: [PageFile; 4] = [
    PageFile { name: "", kind: "text/html; charset=utf-8", bytes: include_bytes!("../ui/index.html") },
    PageFile {
        name: "app.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../ui/app.js"),
    },
    PageFile { name: "app.css", kind: "text/css; charset=utf-8", bytes: include_bytes!("../ui/app.css") },
    PageFile { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../ui/icon.svg") },
];

/// A compressed file with its entity tag.
struct SentFile {
    packed: Bytes,
    tag: HeaderValue,
}

/// Whether a path belongs to the page.
pub(crate) fn is_page(path: &str) -> bool {
    path == "/ui" || path.starts_with(UI_PATH)
}

/// Whether a request for `/` comes from a browser that navigates. Programs that check for a gateway accept any type.
pub(crate) fn wants_page(head: &Parts) -> bool {
    head.method == Method::GET
        && head.uri.path() == "/"
        && head
            .headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|accepted| accepted.contains("text/html"))
}

/// Redirects a browser to the page.
pub(crate) fn redirect() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(UI_PATH));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Answers a request for a part of the page.
pub(crate) fn answer(head: &Parts) -> Result<Response<ResponseBody>, GatewayError> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    let Some(name) = head.uri.path().strip_prefix(UI_PATH) else { return Ok(redirect()) };
    let at = FILES.iter().position(|file| file.name == name).or_else(|| {
        // A name with a file extension is a missing file, not a state of the page.
        let is_file = [".js", ".css", ".map", ".svg", ".png", ".ico"].iter().any(|end| name.ends_with(end));
        (!is_file).then_some(0)
    });
    let found = at.and_then(|at| FILES.get(at).zip(sent_files().get(at)));
    let (file, sent) = found
        .ok_or_else(|| GatewayError::not_found(format!("the page has no such file; it is at {UI_PATH}")))?;
    let mut response = Response::new(ResponseBody::empty());
    put_headers(response.headers_mut(), file, sent);
    if head.headers.get(IF_NONE_MATCH).is_some_and(|known| *known == sent.tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    let bytes = match accepts_gzip(&head.headers) {
        true => {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            sent.packed.clone()
        }
        false => Bytes::from_static(file.bytes),
    };
    if head.method == Method::GET {
        *response.body_mut() = ResponseBody::whole(bytes);
    }
    Ok(response)
}

fn put_headers(headers: &mut HeaderMap, file: &PageFile, sent: &SentFile) {
    let fixed: [(HeaderName, &'static str); 9] = [
        (CONTENT_TYPE, file.kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        // Browsers revalidate each time, and get no body while the file is unchanged.
        (CACHE_CONTROL, "no-cache"),
        (VARY, "accept-encoding"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(ETAG, sent.tag.clone());
    if file.name.is_empty() {
        // Lets the browser fetch these files while it parses the document.
        headers.insert(LINK, HeaderValue::from_static(DOCUMENT_PARTS));
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case("gzip"))
}

/// The compressed files, created once.
fn sent_files() -> &'static [SentFile] {
    static SENT: OnceLock<Vec<SentFile>> = OnceLock::new();
    SENT.get_or_init(|| {
        let pack = |file: &PageFile| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory does not fail; an empty body would show a defect at once.
            let packed = packer.write_all(file.bytes).and_then(|()| packer.finish()).unwrap_or_default();
            let hash = blake3::hash(file.bytes).to_hex();
            let tag = HeaderValue::from_str(&format!("\"{}\"", hash.get(..20).unwrap_or_default()));
            let tag = tag.unwrap_or_else(|_| HeaderValue::from_static("\"\""));
            SentFile { packed: Bytes::from(packed), tag }
        };
        FILES.iter().map(pack).collect()
    })
}

#[cfg(test)]
mod tests {
    //! The size of the page, and the content of its document.

    use super::*;

    /// The most compressed bytes of all files of the page.
    const MOST_PACKED_BYTES: usize = 150 * 1024;

    #[test]
    fn the_page_is_small() {
        let bytes: usize = sent_files().iter().map(|file| file.packed.len()).sum();
        assert!((1_000..=MOST_PACKED_BYTES).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn the_document_has_no_inline_script_or_style() {
        let document = std::str::from_utf8(FILES[0].bytes).unwrap();
        assert!(document.contains("<script type=\"module\" src=\"/ui/app.js\"></script>"));
        assert_eq!(document.matches("<script").count(), 1);
        assert!(!document.contains("<style") && !document.contains(" style=") && !document.contains(" on"));
    }
}
