//! Which estimator counts for a model.

use throughline_tokens::{Catalogue, TokenModel};
use throughline_transcript::WireFormat;

/// The estimator of a model's family; of the family its wire suggests when nobody knows the model.
#[must_use]
pub fn token_model_for(model: &str, wire_format: WireFormat) -> TokenModel {
    TokenModel::of(Catalogue::shipped_facts(model).family_on(wire_format))
}
