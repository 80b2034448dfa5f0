//! The list of tokens.

use super::*;

#[test]
fn a_token_is_found_by_itself_and_only_its_hash_is_kept() {
    let mut book = AccessTokens::default();
    let limits = TokenLimits { concurrent: Some(3), ..TokenLimits::default() };
    let first = book.add("ci", "team", &[7; 32], 5, limits).unwrap();
    let second = book.add("laptop", "laptop", &[8; 32], 6, TokenLimits::default()).unwrap();
    assert!(first.starts_with(TOKEN_PREFIX) && first.len() == 67);
    let kept = AccessTokens::parse(&book.to_json()).unwrap();
    assert_eq!(kept, book);
    assert!(!kept.to_json().contains(&first[3..]) && !kept.to_json().contains(&second[3..]));
    assert_eq!(kept.find(&first).unwrap().name, "ci");
    assert_eq!(kept.find(&second).unwrap().owner, Owner::new("laptop"));
    assert_eq!(kept.find(&first[..66]), None);
    assert_eq!(kept.find(""), None);
    assert!(book.revoke("ci") && !book.revoke("ci"));
    assert_eq!(book.find(&first), None);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut book = AccessTokens::default();
    book.add("a", "a", &[1; 32], 0, TokenLimits::default()).unwrap();
    assert_eq!(
        book.add("a", "b", &[2; 32], 0, TokenLimits::default()),
        Err(TokenError::Taken("a".to_owned()))
    );
    for name in ["", "two words", "a/b", "naïve", &"x".repeat(65)] {
        let refused = book.add(name, "owner", &[3; 32], 0, TokenLimits::default());
        assert!(matches!(refused, Err(TokenError::BadName(_))), "{name}");
    }
    assert_eq!(AccessTokens::parse("{\"version\":2,\"tokens\":[],\"more\":1}"), Err(TokenError::Newer(2)));
    for text in ["", "[]", "{\"version\":1}", "{\"version\":1,\"tokens\":[{}]}"] {
        assert!(matches!(AccessTokens::parse(text), Err(TokenError::Unreadable(_))), "{text}");
    }
}

#[test]
fn each_gateway_lets_in_its_part_of_the_requests_and_all_of_the_money() {
    let limits = TokenLimits {
        requests_per_minute: Some(100),
        concurrent: Some(3),
        micro_usd_per_day: Some(7),
        ..TokenLimits::default()
    };
    assert_eq!(limits.part_of_one(1), limits);
    let part = limits.part_of_one(2);
    assert_eq!(
        (part.requests_per_minute, part.concurrent, part.micro_usd_per_day),
        (Some(50), Some(1), Some(7))
    );
    // A limit below the number of gateways admits one request at each of them.
    assert_eq!(limits.part_of_one(4).concurrent, Some(1));
    assert_eq!(TokenLimits::default().part_of_one(4), TokenLimits::default());
}
