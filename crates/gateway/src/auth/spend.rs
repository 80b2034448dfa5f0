//! Spend limits: whether the cost of a request must be known, and the error for a request that a limit forbids.

use hyper::StatusCode;

use crate::error::GatewayError;

/// Whether the cost of calls must be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpendPolicy {
    /// A limit on money applies: calls whose cost cannot be recorded are refused.
    Limited,
    /// No limit on money applies.
    Unlimited,
}

impl SpendPolicy {
    /// Refuses a request whose cost would not be recorded, if a limit on money applies.
    pub(crate) fn refuse_uncounted(self) -> Result<(), GatewayError> {
        match self {
            Self::Unlimited => Ok(()),
            Self::Limited => Err(spend_refused(
                "the token has a spend limit, and the cost of this request cannot be counted".to_owned(),
            )),
        }
    }
}

/// The error for a request that a limit on money forbids.
pub(crate) fn spend_refused(message: String) -> GatewayError {
    GatewayError { status: StatusCode::PAYMENT_REQUIRED, kind: "billing_error", message }
}
