//! Tests that the word lists are complete: every list in the file is a field, every field has a list.

use super::*;

fn headings() -> impl Iterator<Item = &'static str> {
    LISTS.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
}

#[test]
fn every_list_of_the_file_is_used_and_every_field_has_entries() {
    let fields = format!("{:?}", &*WORDS);
    for heading in headings() {
        assert!(fields.contains(&format!("{heading}: [\"")), "no field, or an empty one, for [{heading}]");
    }
    assert_eq!(fields.matches(": [").count(), headings().count());
}

#[test]
fn no_entry_stands_twice_in_its_list() {
    for heading in headings() {
        let entries = list(heading);
        for (index, entry) in entries.iter().enumerate() {
            assert!(!entries[..index].contains(entry), "{entry} stands twice in [{heading}]");
        }
    }
}

#[test]
fn comparison_ignores_case() {
    assert!(is_one_of("ChangeMe", &["changeme"]));
    assert!(contains("MyPASSWORD1", "password"));
    assert!(!contains("pass", "password"));
}
