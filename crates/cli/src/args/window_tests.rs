//! Token counts as people type them.

use super::parse_tokens;

#[test]
fn numbers_of_tokens_are_read_as_people_write_them() {
    assert_eq!(parse_tokens("200000"), Ok(200_000));
    assert_eq!(parse_tokens("200_000"), Ok(200_000));
    assert_eq!(parse_tokens("200,000"), Ok(200_000));
    assert_eq!(parse_tokens("128k"), Ok(128_000));
    assert_eq!(parse_tokens("1.5M"), Ok(1_500_000));
    for wrong in ["", "0", "-1", "k", "1.5", "1e5", "inf", "nan", "200000000", "200 k x", "0x10"] {
        assert!(parse_tokens(wrong).is_err(), "{wrong} should be refused");
    }
}
