//! The weight of each shape for each family: the priors of the estimator, as data.
//!
//! They were fitted by `cargo run --release -p throughline-bench --example fit -- CORPUS SESSIONS`:
//!
//! - `o200k`, `cl100k`: least squares on relative errors, non-negative, against the exact counter over some 10,000 texts of 0.3 to 12 KB in
//!   120 classes: source code of a dozen languages, Markdown, JSON, HTML, logs, listings, manuals, agent transcripts, base64, hexadecimal,
//!   tables of numbers, emoji, long runs, and prose in 90 languages. Median error: 2.7 % on code and logs, 4.2 % over everything; worst on
//!   languages with few speakers that are written in plain Latin letters (up to 40 % too low).
//! - `claude` (up to 4.6): against the provider's own usage in recorded sessions, drawn towards the weights of o200k times 1.12, and beyond
//!   ASCII, where the sessions hold little, towards those of cl100k times 1.1.
//! - `claude47` (4.7 and later): no usage at hand; `claude` times 1.30, the ratio its users report for text and code (1.53 to 1.18 times
//!   o200k), and times 1.1 beyond ASCII.
//! - `generic`: like the first two, against the mean of the Llama 3, Qwen 2, DeepSeek 3 and Mistral 3 vocabularies.

use crate::model::{Family, Overhead};
use crate::profile::{FEATURE_COUNT, Feature as F};

/// Weights by shape, in the order of [`Family::ALL`].
#[rustfmt::skip]
const WEIGHTS: [(F, [f32; 5]); FEATURE_COUNT] = [
    (F::Bytes, [0.000, 0.000, 0.000, 0.000, 0.000]),
    (F::Continuations, [0.000, 0.000, 0.000, 0.000, 0.000]),
    (F::Letters, [0.058, 0.059, 0.043, 0.056, 0.068]),
    (F::Words, [0.418, 0.377, 0.744, 0.965, 0.363]),
    (F::WordsAfterPunct, [0.045, 0.065, 0.000, 0.000, 0.135]),
    (F::WordsAtLineStart, [0.511, 0.555, 0.053, 0.069, 0.594]),
    (F::CapitalRuns, [0.230, 0.270, 0.360, 0.467, 0.239]),
    (F::InnerCapitals, [0.020, 0.007, 0.358, 0.464, 0.079]),
    (F::AcronymEnds, [2.177, 2.460, 1.240, 1.608, 2.212]),
    (F::Consonants4, [0.315, 0.403, 0.309, 0.400, 0.320]),
    (F::RareLetters, [0.156, 0.135, 0.104, 0.135, 0.154]),
    (F::LongRun12, [0.081, 0.074, 0.183, 0.237, 0.074]),
    (F::Digits, [0.000, 0.008, 0.141, 0.183, 0.420]),
    (F::DigitRuns, [1.303, 1.313, 0.575, 0.745, 0.954]),
    (F::Digits4, [0.333, 0.327, 0.546, 0.708, 0.243]),
    (F::DigitsAfterBlank, [0.666, 0.583, 1.587, 2.057, 0.545]),
    (F::MixedSeams, [0.029, 0.047, 0.000, 0.000, 0.051]),
    (F::PunctRuns, [0.756, 0.743, 1.233, 1.599, 0.739]),
    (F::PunctChanges, [0.400, 0.392, 0.112, 0.145, 0.371]),
    (F::PunctRepeats, [0.016, 0.016, 0.104, 0.134, 0.020]),
    (F::Slashes, [0.186, 0.034, 0.000, 0.000, 0.104]),
    (F::Blanks, [0.003, 0.002, 0.128, 0.167, 0.008]),
    (F::BlankRuns, [0.292, 0.343, 0.000, 0.000, 0.313]),
    (F::WideBlankRuns, [0.829, 0.814, 0.065, 0.085, 0.762]),
    (F::TabRuns, [0.455, 0.399, 0.899, 1.165, 0.682]),
    (F::TabIndents, [0.823, 0.879, 0.259, 0.335, 0.805]),
    (F::Newlines, [0.063, 0.032, 0.227, 0.295, 0.088]),
    (F::NewlinesAfterWord, [1.287, 1.322, 0.218, 0.282, 1.188]),
    (F::Controls, [0.468, 0.420, 0.598, 0.776, 1.000]),
    (F::LatinExtended, [0.908, 2.000, 2.000, 2.200, 1.453]),
    (F::LatinSigns, [1.027, 1.401, 1.403, 1.543, 1.348]),
    (F::Cyrillic, [0.256, 0.449, 0.202, 0.223, 0.307]),
    (F::CyrillicExtra, [1.353, 2.000, 2.000, 2.200, 1.597]),
    (F::Greek, [0.378, 1.018, 1.183, 1.301, 0.570]),
    (F::Armenian, [0.343, 2.000, 2.000, 2.200, 1.071]),
    (F::Hebrew, [0.397, 1.121, 1.233, 1.356, 0.624]),
    (F::Arabic, [0.280, 0.781, 0.859, 0.945, 0.363]),
    (F::OtherTwoByte, [2.000, 2.000, 2.000, 2.200, 2.000]),
    (F::Devanagari, [0.325, 1.156, 1.272, 1.399, 0.668]),
    (F::Thai, [0.405, 0.964, 1.060, 1.166, 0.512]),
    (F::Indic, [0.400, 1.395, 1.534, 1.688, 0.894]),
    (F::LatinAdditional, [0.000, 0.000, 0.000, 0.000, 0.000]),
    (F::OtherThreeByte, [0.117, 1.679, 1.847, 2.032, 0.891]),
    (F::Typographic, [1.527, 1.389, 0.000, 0.000, 1.721]),
    (F::Arrows, [0.699, 0.725, 0.000, 0.000, 0.514]),
    (F::BoxDrawing, [1.344, 1.160, 1.181, 1.299, 1.088]),
    (F::BoxRepeats, [0.102, 0.126, 0.017, 0.019, 0.153]),
    (F::Symbols, [0.863, 1.194, 2.531, 2.784, 1.254]),
    (F::CjkPunct, [0.691, 0.395, 0.436, 0.479, 0.000]),
    (F::Kana, [0.593, 0.877, 0.990, 1.088, 0.554]),
    (F::Han, [0.778, 1.032, 1.352, 1.488, 0.791]),
    (F::HanRuns, [0.605, 1.000, 1.192, 1.311, 0.856]),
    (F::Hangul, [0.487, 0.701, 0.771, 0.848, 0.572]),
    (F::HangulRuns, [0.524, 1.067, 1.173, 1.290, 0.456]),
    (F::Compatibility, [2.347, 2.908, 3.000, 3.300, 2.424]),
    (F::VariationSelectors, [3.000, 3.000, 3.000, 3.300, 3.000]),
    (F::Astral, [1.684, 2.496, 2.689, 2.958, 2.463]),
    (F::InvalidBytes, [0.800, 0.800, 0.880, 0.968, 0.800]),
];

pub(crate) fn of(family: Family) -> [f32; FEATURE_COUNT] {
    let mut weights = [0.0; FEATURE_COUNT];
    for (feature, by_family) in WEIGHTS {
        weights[feature as usize] = by_family[family as usize];
    }
    weights
}

/// Returns the tokens that wire formats add around text. Claude's are from the same fit (each call and its result are wrapped in several
/// lines of markup); OpenAI's from its published rules for counting chat messages, with a call counted as one more message.
pub(crate) fn overhead_of(family: Family) -> Overhead {
    match family {
        Family::O200k | Family::Cl100k | Family::Generic => Overhead {
            message: 4.0,
            tool_call: 12.0,
            tool_result: 4.0,
            tool_definition: 8.0,
            sealed_char: 0.16,
        },
        Family::Claude => Overhead {
            message: 7.0,
            tool_call: 63.0,
            tool_result: 13.0,
            tool_definition: 12.0,
            sealed_char: 0.16,
        },
        Family::Claude47 => Overhead {
            message: 9.0,
            tool_call: 82.0,
            tool_result: 17.0,
            tool_definition: 16.0,
            sealed_char: 0.21,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_row_in_order_and_no_weight_is_negative() {
        for ((feature, weights), expected) in WEIGHTS.iter().zip(F::ALL) {
            assert_eq!(feature, expected);
            assert!(weights.iter().all(|weight| (0.0..=4.5).contains(weight)), "{feature:?}");
        }
        for (at, family) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family as usize, at, "columns follow the order of the families");
        }
    }
}
