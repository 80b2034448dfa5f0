//! Who may come in, and in whose name they are served.
//!
//! A gateway without tokens serves the programs of its own machine. A browser runs programs of others there: a page may
//! send requests to loopback, or have a name of its own resolved to it. What comes from a page of elsewhere is therefore
//! refused, and so is what was meant for another host.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;

use crate::gateway::{House, Inner};
use crate::refused::Refused;

/// Lets a request in, in the name of whoever it belongs to.
pub(crate) fn admit(house: &House, head: &Parts) -> Result<Arc<Inner>, Refused> {
    from_here(head)?;
    Ok(house.tenant(&house.setup.owner))
}

/// Refuses what a page of elsewhere sends, and what was meant for another host.
fn from_here(head: &Parts) -> Result<(), Refused> {
    let refuse = |what: &str| {
        Err(Refused {
            status: StatusCode::FORBIDDEN,
            kind: "permission_error",
            message: format!(
                "{what}: without tokens the gateway serves programs of its own machine only; `throughline token new` makes a token"
            ),
        })
    };
    let named = head.uri.host().or_else(|| text(&head.headers, HOST.as_str()));
    if named.is_some_and(|host| !is_this_machine(host)) {
        return refuse("the request names another host");
    }
    match text(&head.headers, ORIGIN.as_str()) {
        Some(origin) if !is_local_origin(origin) => refuse("the request comes from a page of elsewhere"),
        _ => Ok(()),
    }
}

/// The only value of a header. One that is there twice or is no text counts as one nobody knows.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => Some(first.to_str().unwrap_or("?")),
        Some(_) => Some("?"),
    }
}

fn is_local_origin(origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && is_this_machine(host)
}

/// Whether a host, with or without a port, is this machine whatever anyone's name server says.
fn is_this_machine(host: &str) -> bool {
    let host = host.trim();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
