//! Tests of text that looks random, and of text that reads like words.

use super::*;
use crate::samples_tests::Dice;

#[test]
fn identifiers_paths_and_words_do_not_look_random() {
    for text in [
        "compute_token_budget",
        "authTokenProviderFactory",
        "src/auth/token_store.rs",
        "current-password-field",
        "OAuth2ClientCredentials",
        "AbstractSingletonProxyFactoryBean",
        "the-quick-brown-fox-jumps",
        "azure_ad_token",
        "x-amz-content-sha256",
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "------------------------",
    ] {
        assert!(!Profile::of(text).looks_random(), "{text}: {:?}", Profile::of(text));
    }
}

#[test]
fn drawn_characters_look_random() {
    let mut dice = Dice::new(7);
    for (class, count, allowed_misses) in
        [("n", 20, 10), ("n", 32, 2), ("h", 32, 2), ("w", 40, 2), ("l", 32, 10), ("b", 40, 2)]
    {
        let missed =
            (0..1000).filter(|_| !Profile::of(&dice.characters(class, count)).looks_random()).count();
        assert!(missed <= allowed_misses, "{missed} of 1000 with {count} of class {class}");
    }
}

#[test]
fn parts_are_judged_on_their_own() {
    let profile = Profile::of("apiKey2_XQZJ");
    assert_eq!((profile.lower, profile.upper, profile.digits, profile.symbols), (5, 5, 1, 1));
    assert_eq!(profile.wordlike, 6, "api and Key, but not XQZJ");
}

#[test]
fn a_long_candidate_is_judged_by_its_start() {
    assert_eq!(Profile::of(&"ab".repeat(10_000)).len, JUDGED_BYTES);
}
