//! Properties of every error: nothing panics, numbers in any spelling mean the same, and a prompt is never a window.

use proptest::prelude::*;

use super::{Failure, ProviderError};
use crate::provider_error::ProviderErrorKind;
use crate::sizes::RequestLimits;

/// Ways to say that a prompt of `P` and a cap of `C` do not fit a window of `W`.
const WITH_CAP: [&str; 6] = [
    "input length and `max_tokens` exceed context limit: P + C > W, decrease input length or `max_tokens` and try again",
    "This model's maximum context length is W tokens. However, you requested T tokens (P in the messages, C in the completion). Please reduce the length of the messages or completion.",
    "max_tokens: C > context_window: W - input_tokens: P = available_tokens: R",
    "Requested token count exceeds the model's maximum context length of W tokens. You requested a total of T tokens: P tokens from the input messages and C tokens for the completion.",
    "`inputs` tokens + `max_new_tokens` must be <= W. Given: P `inputs` tokens and C `max_new_tokens`",
    "You passed P input tokens and requested C output tokens. However, the model's context length is only W tokens.",
];

/// Ways to say that a prompt of `P` does not fit a window of `W`.
const PROMPT_ONLY: [&str; 6] = [
    "prompt is too long: P tokens > W maximum",
    "request (P tokens) exceeds the available context size (W tokens), try increasing it",
    "The input token count (P) exceeds the maximum number of tokens allowed (W).",
    "This model's maximum prompt length is W but the request contains P tokens.",
    "prompt token count of P exceeds the limit of W",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: P>= n_ctx: W).",
];

#[derive(Clone, Copy, Debug)]
enum Spelling {
    Plain,
    Grouped(char),
}

fn spell(number: u64, spelling: Spelling) -> String {
    let digits = number.to_string();
    let Spelling::Grouped(separator) = spelling else { return digits };
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(separator);
        }
        out.push(digit);
    }
    out
}

fn spelling() -> impl Strategy<Value = Spelling> {
    prop_oneof![
        Just(Spelling::Plain),
        prop::sample::select(vec![',', '_', '\u{202f}', '\u{a0}', '\'']).prop_map(Spelling::Grouped),
    ]
}

fn fill(template: &str, values: &[(char, u64)], spelling: Spelling) -> String {
    // Only capitals that stand alone are placeholders.
    let mut out = String::new();
    let chars: Vec<char> = template.chars().collect();
    for (index, &c) in chars.iter().enumerate() {
        let alone = |at: Option<&char>| !at.is_some_and(|c| c.is_alphanumeric());
        let before = index.checked_sub(1).and_then(|at| chars.get(at));
        let value = values.iter().find(|(name, _)| *name == c);
        match value {
            Some((_, value)) if alone(before) && alone(chars.get(index + 1)) => {
                out.push_str(&spell(*value, spelling))
            }
            _ => out.push(c),
        }
    }
    out
}

fn kind_of(words: &str) -> ProviderErrorKind {
    let body = serde_json::json!({"error": {"message": words}}).to_string();
    ProviderError::classify(
        Failure::Answer { status: 400, headers: &[], body: body.as_bytes() },
        RequestLimits::default(),
    )
    .kind
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(600)))]

    #[test]
    fn a_cap_that_does_not_fit_is_never_a_window(
        template in prop::sample::select(WITH_CAP.to_vec()),
        window in 2_000u64..5_000_000,
        share in 0.1f64..0.99,
        over in 1u64..500_000,
        spelling in spelling(),
    ) {
        let prompt = (window as f64 * share) as u64;
        let room = window - prompt;
        let cap = room + over;
        let values = [('P', prompt), ('C', cap), ('W', window), ('T', prompt + cap), ('R', room)];
        let words = fill(template, &values, spelling);
        let expected = ProviderErrorKind::OutputCapTooLarge {
            largest_cap_tokens: Some(room),
            window_tokens: Some(window),
            prompt_tokens: Some(prompt),
        };
        prop_assert_eq!(kind_of(&words), expected, "{}", words);
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_never_the_window(
        template in prop::sample::select(PROMPT_ONLY.to_vec()),
        window in 2_000u64..5_000_000,
        over in 1u64..5_000_000,
        spelling in spelling(),
    ) {
        let prompt = window + over;
        let words = fill(template, &[('P', prompt), ('W', window)], spelling);
        let expected = ProviderErrorKind::PromptTooLong { window_tokens: Some(window), prompt_tokens: Some(prompt) };
        prop_assert_eq!(kind_of(&words), expected, "{}", words);
    }

    #[test]
    fn any_bytes_are_survived(status in 100u16..=999, body in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ProviderError::classify(Failure::Answer { status, headers: &[], body: &body }, RequestLimits::default());
    }

    /// Sentences of words from errors, in any order: all resulting numbers occur in the text.
    #[test]
    fn no_number_is_made_up(
        parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "maximum", "context", "length", "is", "tokens", "prompt", "input", "max_tokens", ">", "+", "-", "=",
                    "requested", "limit", "of", "exceeds", "the", "model", "window", "[", "]", "<=", "in", "messages",
                    "completion", "too", "long", "must", "be", "range", "at", "most", "output", ".", "(", ")",
                ]).prop_map(str::to_owned),
                (500u64..2_000_000).prop_map(|number| number.to_string()),
            ],
            1..40,
        ),
    ) {
        let words = parts.join(" ");
        let numbers: Vec<u64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
        match kind_of(&words) {
            ProviderErrorKind::PromptTooLong { window_tokens, prompt_tokens } => {
                for value in [window_tokens, prompt_tokens].into_iter().flatten() {
                    prop_assert!(numbers.contains(&value), "{} from {}", value, words);
                }
                if let (Some(window), Some(prompt)) = (window_tokens, prompt_tokens) {
                    prop_assert!(prompt >= window, "{}", words);
                }
            }
            ProviderErrorKind::OutputCapTooLarge { largest_cap_tokens, window_tokens, .. } => {
                if let Some(window) = window_tokens {
                    prop_assert!(numbers.contains(&window), "{} from {}", window, words);
                }
                if let (Some(window), Some(largest)) = (window_tokens, largest_cap_tokens) {
                    prop_assert!(numbers.contains(&largest) || largest < window, "{}", words);
                }
            }
            _ => {}
        }
    }
}
