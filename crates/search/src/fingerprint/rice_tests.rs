//! Tests of the code for small numbers.

use proptest::prelude::*;

use super::*;

fn written(numbers: &[u32], parameter: u32) -> Vec<u8> {
    let mut writer = RiceWriter::default();
    numbers.iter().for_each(|number| writer.write(*number, parameter));
    writer.finish()
}

fn read(bytes: &[u8], parameter: u32) -> Vec<usize> {
    let mut reader = RiceReader::new(bytes);
    std::iter::from_fn(|| reader.read(parameter)).collect()
}

#[test]
fn small_numbers_take_few_bits() {
    assert_eq!(written(&[0; 16], 0).len(), 2);
    assert_eq!(written(&[5; 8], 2).len(), 4);
    assert!(written(&[], 3).is_empty());
}

#[test]
fn the_parameter_follows_the_mean() {
    assert_eq!([0, 1, 3, 12, 1_000].map(|mean| parameter(mean * 100, 100)), [0, 0, 1, 3, 9]);
    assert_eq!(parameter(7, 0), 2);
}

proptest! {
    #[test]
    fn what_was_written_is_read(numbers in prop::collection::vec(prop_oneof![0_u32..4, 0_u32..5_000], 0..200), parameter in 0_u32..17) {
        let bytes = written(&numbers, parameter);
        let expected: Vec<usize> = numbers.iter().map(|number| *number as usize).collect();
        prop_assert_eq!(read(&bytes, parameter), expected);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..60), parameter in 0_u32..32) {
        prop_assert!(read(&bytes, parameter).len() <= bytes.len() * 8);
    }
}
