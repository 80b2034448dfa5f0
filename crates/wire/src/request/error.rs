//! Why a body is not a request, with the position.

use crate::json_value::{JsonFault, check_json};

/// Why a body cannot be decoded as a request, or a request cannot be changed as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Invalid UTF-8.
    #[error("not valid UTF-8: byte {offset} (line {line}) is not part of any character")]
    Utf8 {
        /// Offset of the first bad byte.
        offset: usize,
        /// Its line, counted from one.
        line: usize,
    },
    /// The body is empty.
    #[error("the body is empty")]
    Empty,
    /// The body is too large for its offsets.
    #[error("the body is {bytes} bytes; at most 4 GiB can be read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The JSON ends too early.
    #[error("the JSON ends too early, at line {line}, column {column}: {detail}")]
    Truncated {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// The parser's message.
        detail: String,
    },
    /// Invalid JSON, or nested too deeply.
    #[error("not valid JSON at line {line}, column {column}: {detail}")]
    Syntax {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// The parser's message.
        detail: String,
    },
    /// JSON, but not an object.
    #[error("a request is a JSON object, but this is {found}")]
    NotAnObject {
        /// The kind of JSON it is.
        found: &'static str,
    },
    /// A member is missing that every request of the wire format has.
    #[error("`{member}` is missing")]
    Missing {
        /// The member.
        member: &'static str,
    },
    /// A member has another type than the wire format defines.
    #[error("`{member}` should be {expected}, but it is {found}")]
    WrongType {
        /// The member.
        member: &'static str,
        /// The type the wire format requires.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// A member occurs twice: parsers disagree about which one counts.
    #[error("`{member}` is given twice")]
    Duplicate {
        /// The member.
        member: String,
    },
    /// An element of the list is not a message.
    #[error("`{member}[{index}]` is not a message: {detail}")]
    NotAMessage {
        /// The list.
        member: &'static str,
        /// Position, from zero.
        index: usize,
        /// What was found.
        detail: String,
    },
    /// A value to set is not JSON.
    #[error("the value for `{member}` is not valid JSON: {detail}")]
    InvalidValue {
        /// The member.
        member: String,
        /// The parser's message.
        detail: String,
    },
    /// The messages cannot be set as a member; they are passed when the body is written.
    #[error("`{member}` holds the messages, which are not set as a member")]
    HoldsMessages {
        /// The list.
        member: &'static str,
    },
}

impl RequestError {
    /// Converts an error of the parser, with its position.
    pub(crate) fn of_fault(fault: JsonFault) -> Self {
        let JsonFault { line, column, detail, is_cut } = fault;
        if is_cut { Self::Truncated { line, column, detail } } else { Self::Syntax { line, column, detail } }
    }

    /// Refuses a value that is not JSON.
    pub(crate) fn check_json(member: &str, json: &str) -> Result<(), Self> {
        check_json(json)
            .map_err(|fault| Self::InvalidValue { member: member.to_owned(), detail: fault.detail })
    }
}
