//! Spend limits: whether the cost of a request must be known, and the error for a request that a limit forbids.

use hyper::StatusCode;

use crate::error::GatewayError;

/// Whether it matters what calls cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpendPolicy {
    /// It does: what cannot be counted is refused.
    Limited,
    /// It does not.
    Unlimited,
}

impl SpendPolicy {
    /// Refuses what passes without being counted, where that matters.
    pub(crate) fn refuse_uncounted(self) -> Result<(), GatewayError> {
        match self {
            Self::Unlimited => Ok(()),
            Self::Limited => Err(spend_refused(
                "the token has a spend limit, and the cost of this request cannot be counted".to_owned(),
            )),
        }
    }
}

/// A refusal because of money.
pub(crate) fn spend_refused(message: String) -> GatewayError {
    GatewayError { status: StatusCode::PAYMENT_REQUIRED, kind: "billing_error", message }
}
