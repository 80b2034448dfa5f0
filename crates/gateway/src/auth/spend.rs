//! Spend limits: whether the cost of a call matters, and the error when a limit does not allow it.

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
            Self::Limited => Err(no_money(
                "the token has a limit on what calls cost, and this one would pass without being counted"
                    .to_owned(),
            )),
        }
    }
}

/// A refusal because of money.
pub(crate) fn no_money(message: String) -> GatewayError {
    GatewayError { status: StatusCode::PAYMENT_REQUIRED, kind: "billing_error", message }
}
