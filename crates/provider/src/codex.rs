//! The requirements of the Codex subscription backend beyond the Responses format: nothing is stored, no output limit is sent, and a header
//! names the account of the access token.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use throughline_transcript::RawJson;

use crate::json_edit::{inserted, without_member};

/// The header that names the account.
pub(crate) const ACCOUNT_HEADER: &str = "chatgpt-account-id";
/// The claims of an access token that are about the account.
const CLAIMS: &str = "https://api.openai.com/auth";
/// Access tokens have a few kilobytes. Anything longer is not one.
const LONGEST_TOKEN: usize = 64 * 1024;

/// Returns the account of an access token according to its claims; `None` for a key that is not such a token. The backend checks the
/// signature.
pub(crate) fn account_of(token: &str) -> Option<String> {
    if token.len() > LONGEST_TOKEN {
        return None;
    }
    let payload = token.split('.').nth(1).filter(|_| token.split('.').count() == 3)?;
    let claims = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    let account = claims.get(CLAIMS)?.get("chatgpt_account_id")?.as_str()?;
    let sendable = !account.is_empty() && account.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    sendable.then(|| account.to_owned())
}

/// Returns the body in the form that the backend accepts. A body that is not a JSON object is returned unchanged.
pub(crate) fn body_for(body: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(body);
    for name in ["max_output_tokens", "store"] {
        let is_right = name == "store" && RawJson(&out).get(name).is_some_and(|value| value.0 == "false");
        if !is_right {
            let changed = match without_member(&out, name, [RawJson(&out)]) {
                Cow::Borrowed(_) => None,
                Cow::Owned(changed) => Some(changed),
            };
            out = changed.map_or(out, Cow::Owned);
        }
    }
    if RawJson(&out).get("store").is_some() {
        return out;
    }
    match out.find('{') {
        Some(at) if out.trim_start().starts_with('{') => {
            let is_empty = out.get(at + 1..).is_some_and(|rest| rest.trim_start().starts_with('}'));
            let member = if is_empty { "\"store\":false" } else { "\"store\":false," };
            Cow::Owned(inserted(&out, at + 1, member))
        }
        _ => out,
    }
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
