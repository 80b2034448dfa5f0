//! Which estimator counts for a model.

use throughline_tokens::{Family, TokenModel, model_facts};
use throughline_transcript::Dialect;

/// The estimator of a model's family; of the family its wire suggests when nobody knows the model.
#[must_use]
pub fn token_model_for(model: &str, dialect: Dialect) -> TokenModel {
    let facts = model_facts(model);
    let family = match (facts.entry, dialect) {
        (Some(_), _) => facts.family,
        (None, Dialect::Anthropic) => Family::Claude,
        (None, Dialect::Responses) => Family::O200k,
        (None, Dialect::Chat) => Family::Generic,
    };
    TokenModel::of(family)
}
