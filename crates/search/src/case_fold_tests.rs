//! Tests of folding.

use proptest::prelude::*;

use super::*;

fn folded(text: &str) -> String {
    let mut out = String::new();
    fold_text(text, &mut out);
    out
}

#[test]
fn case_accents_and_width_make_no_difference() {
    for (text, expected) in [
        ("PRÜFE Straße", "prufe strasse"),
        ("Ångström ÅÉÎÕÜ ñ Ç", "angstrom aeiou n c"),
        ("Łódź Žižek Őrült şİı", "lodz zizek orult sii"),
        ("Tiếng Việt được ƯƠ", "tieng viet đuoc uo"),
        ("e\u{301}te\u{301}", "ete"),
        ("ΆΣ ς Ώ", "ασ σ ω"),
        ("ЁЖ ёж й", "еж еж й"),
        ("ＡＢＣ１２３！", "abc123!"),
        ("شَمْسٌ أحمد", "شمس احمد"),
        ("שָׁלוֹם", "שלום"),
        ("✔\u{fe0f} 👩\u{200d}💻", "✔ 👩💻"),
        ("Œuvre Æsir ẞ", "oeuvre aesir ss"),
    ] {
        assert_eq!(folded(text), expected.replace('đ', "d"), "{text}");
    }
}

#[test]
fn white_space_and_control_characters_are_one_space() {
    assert_eq!(folded("a\r\n\t b\0\0c\u{a0}\u{3000}d "), "a b c d ");
}

proptest! {
    #[test]
    fn folding_twice_is_folding_once(text in "\\PC{0,80}") {
        let once = folded(&text);
        prop_assert_eq!(folded(&once), once);
    }

    #[test]
    fn places_lead_back_to_the_text(text in "(?s).{0,80}") {
        let (with_places, places) = fold_with_places(&text);
        prop_assert_eq!(&with_places, &folded(&text));
        prop_assert_eq!(places.len(), with_places.len() + 1);
        prop_assert!(places.is_sorted());
        prop_assert!(places.iter().all(|&at| text.is_char_boundary(at)));
        prop_assert_eq!(*places.last().unwrap(), text.len());
    }
}
