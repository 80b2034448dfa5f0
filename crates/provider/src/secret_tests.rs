//! Keys stay out of sight.

use super::SecretKey;

#[test]
fn a_key_is_not_shown() {
    let key = SecretKey::new("  sk-very-secret\n").unwrap();
    assert!(!format!("{key:?} {key:#?}").contains("very"));
    assert_eq!(key.expose(), "sk-very-secret");
    assert_eq!(key.scrub("bad key sk-very-secret."), "bad key [key].");
    assert_eq!(SecretKey::new(" \t"), None);
}
