//! Which estimator counts for a model.

use throughline_tokens::{TokenModel, model_facts};
use throughline_transcript::Dialect;

/// The estimator of a model's family; of the family its wire suggests when nobody knows the model.
#[must_use]
pub fn token_model_for(model: &str, dialect: Dialect) -> TokenModel {
    TokenModel::of(model_facts(model).family_on(dialect))
}
