//! The source of prices for a model's calls: a price list, and the seller.

use throughline_store::Millis;
use throughline_tokens::{Catalogue, Cost, PricedCall, Usage};

/// Where the prices of a model come from.
#[derive(Clone, Debug, Default)]
pub struct PriceSource {
    /// The list, with the user's own prices over it.
    pub catalogue: Catalogue,
    /// Who sells the model; empty where that is not known, which leaves the list price of its maker.
    pub seller: String,
}

impl PriceSource {
    /// The list prices of a seller.
    #[must_use]
    pub fn of_seller(seller: impl Into<String>) -> Self {
        Self { catalogue: Catalogue::shipped(), seller: seller.into() }
    }

    /// What a call costs.
    #[must_use]
    pub fn cost(&self, model: &str, at_ms: Millis, usage: Usage, cache_write_1h: u64) -> Cost {
        let provider = self.seller.as_str();
        self.catalogue.cost(&PricedCall { model, provider, at_ms, usage, cache_write_1h })
    }
}
