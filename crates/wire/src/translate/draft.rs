//! A request under construction in another wire format, and the errors of translation.

use throughline_transcript::WireFormat;

use crate::request::Request;

/// The output limit if the request states none and the wire format requires one.
pub(super) const USUAL_OUTPUT_TOKENS: u64 = 8_192;

/// Why a request cannot be translated to another wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// This direction is not supported.
    #[error("requests in the {from} wire format cannot be translated to {to}")]
    NoWay {
        /// The wire format of the request.
        from: WireFormat,
        /// The wire format to translate to.
        to: WireFormat,
    },
    /// The other wire format has no equivalent, and omitting it would change the result.
    #[error("the {to} wire format has no counterpart of {what}")]
    NoPlace {
        /// The member that cannot be translated.
        what: String,
        /// The target wire format.
        to: WireFormat,
    },
}

/// A request under construction.
pub(super) struct RequestDraft {
    pub(super) members: Vec<(&'static str, String)>,
    pub(super) left_out: Vec<String>,
    pub(super) to: WireFormat,
}

impl RequestDraft {
    pub(super) fn raw(&mut self, name: &'static str, json: impl Into<String>) {
        self.members.push((name, json.into()));
    }

    /// Copies members that have the same meaning in both wire formats.
    pub(super) fn carry(&mut self, request: &Request, names: &[(&str, &'static str)]) {
        for (from, to) in names {
            if let Some(value) = request.member(from).filter(|value| value.0 != "null") {
                self.raw(to, value.0);
            }
        }
    }

    pub(super) fn leave_out(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.left_out.contains(&what) {
            self.left_out.push(what);
        }
    }

    pub(super) fn no_place(&self, what: impl Into<String>) -> TranslationError {
        TranslationError::NoPlace { what: what.into(), to: self.to }
    }

    /// Notes members that are not among the known ones.
    pub(super) fn leave_out_others(&mut self, request: &Request, known: &[&str]) {
        for (name, value) in request.members() {
            if !known.contains(&name) && value.0 != "null" {
                self.leave_out(format!("`{name}`"));
            }
        }
    }
}
