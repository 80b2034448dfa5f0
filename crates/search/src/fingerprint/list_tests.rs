//! Tests of the lists of fingerprints.

use proptest::prelude::*;

use super::*;
use crate::fingerprint::FINGERPRINTS;

#[test]
fn what_is_no_list_is_not_read_as_one() {
    let good = FingerprintList::encode(&[1, 2, 70_000]);
    assert!(FingerprintList::new(&good).is_some());
    for bytes in [&good[..good.len() - 1], &good[..good.len() - 3], &good[..2], &[], &[255; 40]] {
        assert!(FingerprintList::new(bytes).is_none(), "{bytes:?}");
    }
    let too_long: Vec<u8> = good.iter().copied().chain([0, 0, 0]).collect();
    assert!(FingerprintList::new(&too_long).is_none());
}

proptest! {
    #[test]
    fn a_list_holds_what_was_put_in_it(fingerprints in prop::collection::btree_set(0..FINGERPRINTS, 0..300), other in 0..FINGERPRINTS) {
        let sorted: Vec<u32> = fingerprints.iter().copied().collect();
        let bytes = FingerprintList::encode(&sorted);
        let list = FingerprintList::new(&bytes).unwrap();
        prop_assert_eq!(list.iter().collect::<Vec<_>>(), sorted);
        prop_assert!(fingerprints.iter().all(|fingerprint| list.holds(*fingerprint)));
        prop_assert_eq!(list.holds(other), fingerprints.contains(&other));
    }

    #[test]
    fn any_bytes_can_be_asked(bytes in prop::collection::vec(any::<u8>(), 0..300), fingerprint in 0..FINGERPRINTS) {
        if let Some(list) = FingerprintList::new(&bytes) {
            let _ = list.holds(fingerprint);
        }
    }
}
