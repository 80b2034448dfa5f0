//! A grammar for the numbers in errors: fragments of a few words around one or more numbers.
//!
//! Whole sentences differ between providers and releases; the fragments in them do not. The table is read from top to bottom and a number
//! belongs to the first fragment that matches it, so expressions such as `A + B > C` precede the fragments that would take `A` for the
//! window. Not for: classification.

use std::sync::LazyLock;

use crate::lexemes::{Lexeme, Unit};

/// The meaning of a number in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberRole {
    /// The whole window.
    Window,
    /// The largest accepted prompt.
    PromptLimit,
    /// The size of the sent prompt.
    Prompt,
    /// One of several kinds of input that together make up the prompt.
    PromptPart,
    /// The size of the sent prompt, in characters.
    PromptCharacters,
    /// The excess of the prompt over the limit.
    PromptExcess,
    /// The output limit of the request.
    Cap,
    /// The largest accepted output limit.
    LargestCap,
    /// A bound that the output limit must stay below.
    CapBelow,
    /// Prompt and output limit together.
    Total,
    /// The limit of a plan per request.
    Allowance,
    /// The size requested from the plan.
    Asked,
    /// The number of bytes accepted.
    ByteLimit,
    /// The number of bytes sent.
    BytesSent,
    /// The maximum length of a string.
    StringLimit,
    /// A number that is not used.
    Ignored,
}

/// The fragments. `a|b` is either word, `*a` any word that ends with it, `?` makes an element optional, `~` matches up to five filler words
/// (`is`, `of the`, ...), `CAP` for any name of the output limit, `#role` for a number.
const FRAGMENTS: &[&str] = &[
    // Rates and plans: their numbers look like windows but are not.
    "tpm|tpd|itpm|otpm|minute|min|day limit #allowance used #ignored requested #asked",
    "tpm|tpd|itpm|otpm|minute|min|day limit #allowance requested #asked",
    "prompt tokens limit exceeded #asked > #allowance",
    "requested up to #asked tokens but can only afford #allowance",
    "can only afford #allowance",
    "retry after|in #ignored",
    "retry-after #ignored",
    // Bytes.
    "#bytes_sent byte|bytes|kb|mb|gb? >|>= #byte_limit",
    "limit|maximum|max|size|to|than ~ #byte_limit",
    "exceeds|exceed ~ #byte_limit",
    "string with maximum length #string_limit but got a string with length #ignored",
    "maximum string length ~ #string_limit",
    // Expressions.
    "CAP ~ #cap >|>= context_window ~ #window - input_tokens ~ #prompt = available_tokens ~ #largest_cap",
    "#prompt + #cap >|>= #window",
    "#cap >|>= #window - #prompt",
    "CAP ~ #cap >|>= #largest_cap",
    "n_keep ~ #prompt >|>=|> n_ctx ~ #window",
    "#prompt tokens|token >|>= #prompt_limit",
    "#prompt >|>= #prompt_limit maximum|max|tokens|token|limit",
    "prompt|input|context|length|model #prompt >|>= #prompt_limit",
    "tokens + CAP must be <= #window",
    "input and maximum output tokens #total",
    "upper bound for #ignored input tokens",
    // The output limit.
    "range ~ CAP should|is|must ~ [ #ignored #largest_cap ]",
    "CAP ~ in range? [ #ignored #largest_cap ]",
    "CAP ~ between #ignored and #largest_cap",
    "CAP ~ less than or equal to #largest_cap",
    "CAP ~ <= #largest_cap",
    "CAP ~ no more|greater|larger than #largest_cap",
    "CAP cannot|can't|must|may not? exceed ~ #largest_cap",
    "CAP exceeds|exceed|above server|model|model's|the|maximum|max|allowed? limit|maximum|value? ~ #largest_cap",
    "maximum|max value for CAP is #largest_cap",
    "supported range is from #ignored inclusive to #cap_below exclusive",
    "expected a value <= #largest_cap but got #cap",
    "at most #largest_cap completion|output tokens",
    "maximum tokens you requested exceeds the model limit of #largest_cap",
    "maximum tokens value that is lower than #ignored",
    "maximum|max output|completion tokens|length ~ #largest_cap",
    "maximum allowed number of output tokens ~ #largest_cap",
    "available_tokens ~ #largest_cap",
    "requested #cap output|completion tokens",
    "#cap tokens? in|for the? completion|output",
    "and|plus #cap CAP",
    "whereas? you provided #cap",
    "CAP ~ too large #cap",
    "CAP value of #cap",
    "must be at least #ignored got - #prompt_excess",
    // The largest prompt.
    "range of input length should be [ #ignored #prompt_limit ]",
    "maximum|max allowed? prompt|input length ~ #prompt_limit",
    "maximum|max allowed length ~ #prompt_limit",
    "maximum|max input|prompt tokens|token limit? ~ #prompt_limit",
    "maximum|max number of input? tokens allowed|permitted? ~ #prompt_limit",
    "supports|support|accepts only? up to #prompt_limit",
    "configured limit of #prompt_limit",
    "inputs must have less than #prompt_limit tokens",
    "at most #prompt_limit input tokens",
    "maximum|max allowed|permitted|supported? input|prompt? token|tokens length|count ~ #prompt_limit",
    "maximum|max|largest allowed|supported? input|prompt|request is|are ~ #prompt_limit",
    // A prompt whose size directly precedes words about the window: `prompt has 9000 tokens, context window is 8192`.
    "prompt|request|messages|input|inputs contains|contain|has|have at? least? #prompt input? tokens|token",
    "prompt|request|messages|input|inputs is|are|was|were|uses|use about|approximately? at? least? #prompt tokens|token context|but|while|which|exceeds|exceeding",
    // The window.
    "#window maximum|max context|model length|window|size",
    "#window token|tokens context window|length|size|limit?",
    "context length|size|window|limit limit? ~ #window",
    "maximum|max context ~ #window",
    "context_length_exceeded|context_window_exceeded #window",
    "context_length|context_window|n_ctx|n_ctx_slot|n_ctx_train|max_model_len|max_seq_len|max_context_length|max_context_len =|is? #window",
    "max_position_embeddings|max_sequence_length|max_total_tokens|max_context_tokens|context_size =|is? #window",
    "maximum|max model|sequence length ~ #window",
    "total tokens limit ~ #window",
    "token limit =|of|is? #window",
    "*上下文长度|*上下文窗口 #window",
    "while limit is #prompt_limit",
    "limit for this model is #prompt_limit",
    "exceeds|exceeded|exceed the? limit of #prompt_limit",
    "limit of #prompt_limit tokens",
    "model's maximum|max of #prompt_limit",
    // The prompt. `size limit exceeded by N` comes first: its number is not a size.
    "exceeded|exceeds|length|window|limit|size by #prompt_excess tokens",
    "prompt contains at? least? #prompt_characters",
    "input|prompt token|tokens count ~ #prompt",
    "input|prompt tokens #prompt",
    "input|prompt|inputs|request length #prompt",
    "too long|large #prompt",
    "you passed at? least? #prompt",
    "#prompt input tokens",
    "#prompt tokens? in|from the|your input? messages|prompt|input",
    "#prompt_part of text|image|tool|audio|file|video input",
    "messages|input|prompt resulted in #prompt",
    "request|input|prompt #prompt tokens exceeds|exceed|is|are",
    "current length is #prompt",
    "keep the first #prompt tokens",
    "given #prompt inputs? tokens?",
    "prompt_tokens|n_prompt_tokens|input_tokens =|is|value? =? #prompt",
    // Prompt and output limit together.
    "total of at? least? #total",
    "requested a total of #total",
    "requested|request about|for|approximately? #total tokens?",
];

/// Filler words that do not change the meaning of the number after them. `by` is not one of them: it precedes a difference.
const FILLERS: &[&str] = &[
    "is",
    "are",
    "was",
    "be",
    "of",
    "only",
    "at",
    "most",
    "the",
    "a",
    "an",
    "to",
    "just",
    "currently",
    "model",
    "model's",
    "this",
    "for",
    "that",
    "which",
    "token",
    "tokens",
    "=",
    "limited",
    "capped",
    "must",
    "should",
    "value",
    "up",
];

/// The maximum number of filler words between a fragment and its number. After more of them, the number belongs to something else.
const MOST_FILLERS: usize = 5;

/// Names of the output limit in all wire formats.
pub(crate) const CAP_NAMES: &[&str] = &[
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
    "max_new_tokens",
    "max_tokens_to_sample",
    "maxoutputtokens",
    "maxtokens",
    "num_predict",
    "n_predict",
];

enum Element {
    /// One of these words or signs.
    Any {
        words: Vec<&'static str>,
        optional: bool,
    },
    Fillers,
    Number(NumberRole),
}

static GRAMMAR: LazyLock<Vec<Vec<Element>>> =
    LazyLock::new(|| FRAGMENTS.iter().map(|fragment| parse(fragment)).collect());

fn parse(fragment: &'static str) -> Vec<Element> {
    let element = |text: &'static str| match text {
        "~" => Element::Fillers,
        "CAP" => Element::Any { words: CAP_NAMES.to_vec(), optional: false },
        _ => match text.strip_prefix('#') {
            Some(role) => Element::Number(role_named(role)),
            None => {
                let optional = text.ends_with('?');
                let words = text.trim_end_matches('?').split('|').collect();
                Element::Any { words, optional }
            }
        },
    };
    fragment.split(' ').map(element).collect()
}

fn role_named(name: &str) -> NumberRole {
    match name {
        "window" => NumberRole::Window,
        "prompt_limit" => NumberRole::PromptLimit,
        "prompt" => NumberRole::Prompt,
        "prompt_part" => NumberRole::PromptPart,
        "prompt_characters" => NumberRole::PromptCharacters,
        "prompt_excess" => NumberRole::PromptExcess,
        "cap" => NumberRole::Cap,
        "largest_cap" => NumberRole::LargestCap,
        "cap_below" => NumberRole::CapBelow,
        "total" => NumberRole::Total,
        "allowance" => NumberRole::Allowance,
        "asked" => NumberRole::Asked,
        "byte_limit" => NumberRole::ByteLimit,
        "bytes_sent" => NumberRole::BytesSent,
        "string_limit" => NumberRole::StringLimit,
        _ => NumberRole::Ignored,
    }
}

/// Returns every number that a fragment gives a role, in the order of the fragments.
pub(crate) fn meanings(lexemes: &[Lexeme]) -> Vec<(NumberRole, u64)> {
    let mut claimed = vec![false; lexemes.len()];
    let mut found = Vec::new();
    for fragment in GRAMMAR.iter() {
        for start in 0..lexemes.len() {
            let mut numbers = Vec::new();
            if !matches(fragment, lexemes, start, &mut numbers) {
                continue;
            }
            if numbers.iter().any(|(at, _)| claimed[*at]) {
                continue;
            }
            for (at, role) in numbers {
                claimed[at] = true;
                if let Some(Lexeme::Number(value, _)) = lexemes.get(at) {
                    found.push((role, *value));
                }
            }
        }
    }
    found
}

/// Whether a fragment matches at `at`; records the numbers in it with their roles. Fragments are short and every choice is bounded, so
/// backtracking is cheap.
fn matches(
    fragment: &[Element],
    lexemes: &[Lexeme],
    at: usize,
    numbers: &mut Vec<(usize, NumberRole)>,
) -> bool {
    let Some((first, rest)) = fragment.split_first() else { return true };
    match first {
        Element::Any { words, optional } => {
            let here = lexemes.get(at).is_some_and(|lexeme| is_one_of(lexeme, words));
            (here && matches(rest, lexemes, at + 1, numbers))
                || (*optional && matches(rest, lexemes, at, numbers))
        }
        Element::Fillers => (0..=MOST_FILLERS)
            .take_while(|count| {
                count.checked_sub(1).is_none_or(|last| {
                    lexemes.get(at + last).is_some_and(|lexeme| is_one_of(lexeme, FILLERS))
                })
            })
            .any(|count| matches(rest, lexemes, at + count, numbers)),
        Element::Number(role) => {
            if !lexemes.get(at).is_some_and(|lexeme| fits(lexeme, *role)) {
                return false;
            }
            let kept = numbers.len();
            numbers.push((at, *role));
            let all = matches(rest, lexemes, at + 1, numbers);
            if !all {
                numbers.truncate(kept);
            }
            all
        }
    }
}

fn is_one_of(lexeme: &Lexeme, words: &[&str]) -> bool {
    match lexeme {
        Lexeme::Word(word) => words.iter().any(|wanted| match wanted.strip_prefix('*') {
            Some(ending) => word.ends_with(ending),
            None => word == wanted,
        }),
        Lexeme::Sign(sign) => words.contains(sign),
        Lexeme::Number(..) | Lexeme::Fraction(_) => false,
    }
}

/// Whether a number has a unit that its role allows.
fn fits(lexeme: &Lexeme, role: NumberRole) -> bool {
    let Lexeme::Number(_, unit) = lexeme else { return false };
    match role {
        NumberRole::Ignored => true,
        NumberRole::ByteLimit | NumberRole::BytesSent => *unit == Unit::Bytes,
        NumberRole::PromptCharacters => *unit == Unit::Characters,
        NumberRole::Allowance | NumberRole::Asked => matches!(unit, Unit::TokensOrBare | Unit::Other),
        _ => *unit == Unit::TokensOrBare,
    }
}
