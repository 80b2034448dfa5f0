//! What each shape weighs for each family: the priors of the estimator, as data.
//!
//! How they were got, by `cargo run --release -p throughline-bench --example fit -- CORPUS SESSIONS`:
//!
//! - `o200k`, `cl100k`: least squares on relative errors, non-negative, against the exact counter over some 10,000 texts
//!   of 0.3 to 12 KB in 120 classes: source code of a dozen languages, Markdown, JSON, HTML, logs, listings, manuals,
//!   agent transcripts, base64, hexadecimal, tables of numbers, emoji, long runs, and prose in 90 languages.
//!   Median error: 2.7 % on code and logs, 4.2 % over everything; worst on languages with few speakers that are
//!   written in plain Latin letters (up to 40 % too low).
//! - `claude` (up to 4.6): against the provider's own usage in recorded sessions, drawn towards the weights of o200k
//!   times 1.12, and beyond ASCII, where the sessions hold little, towards those of cl100k times 1.1.
//! - `claude47` (4.7 and later): no usage at hand; `claude` times 1.30, the ratio its users report for text and code
//!   (1.53 to 1.18 times o200k), and times 1.1 beyond ASCII.
//! - `generic`: like the first two, against the mean of the Llama 3, Qwen 2, DeepSeek 3 and Mistral 3 vocabularies.

use crate::model::{Family, Overhead};
use crate::profile::{FEATURE_COUNT, Feature as F};

/// Weights by shape, in the order of [`Family::ALL`].
#[rustfmt::skip]
const WEIGHTS: [(F, [f32; 5]); FEATURE_COUNT] = [
    (F::Bytes, [0.003, 0.001, 0.000, 0.000, 0.009]),
    (F::Continuations, [0.000, 0.061, 0.000, 0.000, 0.000]),
    (F::Letters, [0.053, 0.057, 0.043, 0.056, 0.057]),
    (F::Words, [0.406, 0.375, 0.745, 0.966, 0.367]),
    (F::WordsAfterPunct, [0.085, 0.076, 0.000, 0.000, 0.146]),
    (F::WordsAtLineStart, [0.498, 0.534, 0.052, 0.068, 0.573]),
    (F::CapitalRuns, [0.240, 0.272, 0.362, 0.470, 0.243]),
    (F::InnerCapitals, [0.018, 0.006, 0.356, 0.461, 0.080]),
    (F::AcronymEnds, [2.226, 2.483, 1.267, 1.642, 2.261]),
    (F::Consonants4, [0.332, 0.415, 0.308, 0.400, 0.340]),
    (F::RareLetters, [0.126, 0.117, 0.104, 0.134, 0.124]),
    (F::LongRun12, [0.078, 0.072, 0.183, 0.237, 0.074]),
    (F::Digits, [0.000, 0.013, 0.141, 0.183, 0.420]),
    (F::DigitRuns, [1.304, 1.297, 0.574, 0.744, 0.934]),
    (F::Digits4, [0.330, 0.320, 0.546, 0.708, 0.232]),
    (F::DigitsAfterBlank, [0.647, 0.587, 1.584, 2.054, 0.550]),
    (F::MixedSeams, [0.037, 0.054, 0.000, 0.000, 0.052]),
    (F::PunctRuns, [0.740, 0.744, 1.233, 1.599, 0.734]),
    (F::PunctChanges, [0.381, 0.379, 0.111, 0.145, 0.346]),
    (F::PunctRepeats, [0.012, 0.015, 0.105, 0.136, 0.011]),
    (F::Slashes, [0.183, 0.035, 0.000, 0.000, 0.108]),
    (F::Blanks, [0.000, 0.002, 0.129, 0.167, 0.000]),
    (F::BlankRuns, [0.313, 0.350, 0.000, 0.000, 0.322]),
    (F::WideBlankRuns, [0.819, 0.802, 0.066, 0.085, 0.747]),
    (F::TabRuns, [0.467, 0.398, 0.897, 1.163, 0.673]),
    (F::TabIndents, [0.791, 0.833, 0.257, 0.333, 0.803]),
    (F::Newlines, [0.060, 0.032, 0.229, 0.296, 0.082]),
    (F::NewlinesAfterWord, [1.262, 1.306, 0.218, 0.283, 1.156]),
    (F::Controls, [0.465, 0.419, 0.595, 0.772, 1.000]),
    (F::LatinExtended, [1.088, 2.000, 2.000, 2.200, 1.640]),
    (F::LatinSigns, [1.444, 1.401, 1.398, 1.537, 1.450]),
    (F::Cyrillic, [0.152, 0.166, 0.182, 0.200, 0.183]),
    (F::CyrillicRuns, [0.985, 1.945, 1.104, 1.431, 1.137]),
    (F::Greek, [0.368, 0.954, 1.112, 1.223, 0.551]),
    (F::Armenian, [0.332, 2.000, 2.000, 2.200, 1.052]),
    (F::Hebrew, [0.386, 1.056, 1.162, 1.278, 0.604]),
    (F::Arabic, [0.272, 0.719, 0.791, 0.870, 0.347]),
    (F::OtherTwoByte, [2.000, 2.000, 2.000, 2.200, 2.000]),
    (F::Devanagari, [0.312, 1.028, 1.131, 1.244, 0.642]),
    (F::Thai, [0.394, 0.838, 0.922, 1.014, 0.485]),
    (F::Indic, [0.386, 1.281, 1.409, 1.550, 0.876]),
    (F::LatinAdditional, [0.000, 0.000, 0.000, 0.000, 0.000]),
    (F::OtherThreeByte, [0.125, 1.562, 1.718, 1.890, 0.897]),
    (F::Typographic, [1.561, 1.303, 0.000, 0.000, 1.640]),
    (F::Arrows, [0.687, 0.609, 0.000, 0.000, 0.498]),
    (F::BoxDrawing, [1.349, 1.038, 1.122, 1.235, 1.083]),
    (F::BoxRepeats, [0.091, 0.000, 0.016, 0.021, 0.125]),
    (F::Symbols, [0.685, 0.951, 2.369, 2.606, 1.101]),
    (F::CjkPunct, [0.708, 0.456, 0.501, 0.551, 0.000]),
    (F::Kana, [0.583, 0.742, 0.842, 0.926, 0.528]),
    (F::Han, [0.787, 0.911, 1.220, 1.342, 0.777]),
    (F::HanRuns, [0.558, 0.976, 0.716, 0.928, 0.828]),
    (F::Hangul, [0.483, 0.582, 0.640, 0.704, 0.547]),
    (F::HangulRuns, [0.494, 1.044, 0.554, 0.718, 0.446]),
    (F::Compatibility, [2.468, 2.840, 3.000, 3.300, 2.533]),
    (F::VariationSelectors, [3.000, 3.000, 3.000, 3.300, 3.000]),
    (F::Astral, [1.707, 2.344, 2.524, 2.776, 2.462]),
    (F::InvalidBytes, [0.800, 0.800, 0.880, 0.968, 0.800]),
];

pub(crate) fn of(family: Family) -> [f32; FEATURE_COUNT] {
    let mut weights = [0.0; FEATURE_COUNT];
    for (feature, by_family) in WEIGHTS {
        weights[feature as usize] = by_family[family as usize];
    }
    weights
}

/// What wires add around text. Claude's are from the same fit (each call and its result are wrapped in several lines of
/// markup); OpenAI's from its published rules for counting chat messages, with a call counted as one message more.
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
