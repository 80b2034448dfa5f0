//! The source of prices for a model's calls: a price list and a seller.

use throughline_store::Millis;
use throughline_tokens::{Catalogue, Cost, PricedCall, Usage};

/// The source of a model's prices.
#[derive(Clone, Debug, Default)]
pub struct PriceSource {
    /// The price list, overridden by the user's own prices.
    pub catalogue: Catalogue,
    /// The seller of the model. If empty, because it is not known, the list price of the model's maker applies.
    pub seller: String,
}

impl PriceSource {
    /// Returns the list prices of a seller.
    #[must_use]
    pub fn of_seller(seller: impl Into<String>) -> Self {
        Self { catalogue: Catalogue::shipped(), seller: seller.into() }
    }

    /// Returns the cost of a call.
    #[must_use]
    pub fn cost(&self, model: &str, at_ms: Millis, usage: Usage, cache_write_1h: u64) -> Cost {
        let provider = self.seller.as_str();
        self.catalogue.cost(&PricedCall { model, provider, at_ms, usage, cache_write_1h })
    }
}
