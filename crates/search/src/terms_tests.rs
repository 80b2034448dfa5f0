//! Tests of cutting texts into terms.

use proptest::prelude::*;

use super::*;

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each_term(text, |term| match term {
        TextTerm::Atom { term, .. }
        | TextTerm::Word(term)
        | TextTerm::Compound(term)
        | TextTerm::Glyphs(term) => terms.push(term.to_owned()),
        TextTerm::Glyph(glyph) => assert!(is_one_glyph(glyph) && text.contains(glyph)),
    });
    terms
}

fn assert_terms(text: &str, expected: &str) {
    assert_eq!(terms(text).join(" "), expected, "{text}");
}

#[test]
fn words_are_runs_of_letters_and_digits() {
    assert_terms("Fix the failing test, please!", "fix the failing test please");
    assert_terms("don't l'été 42 €", "don t l ete 42 €");
    assert_terms("", "");
    assert_terms(" \0\n\t!?", "");
}

#[test]
fn identifiers_are_terms_whole_and_in_parts() {
    assert_terms("maxRetryCount", "max retry count maxretrycount");
    assert_terms("max_retry_count", "max retry count maxretrycount");
    assert_terms("MAX-RETRY-COUNT", "max retry count maxretrycount");
    assert_terms("HTTPServer2", "http server 2 httpserver2");
    assert_terms("parseURL getX", "parse url parseurl get x getx");
    assert_terms("sha256sum", "sha 256 sum sha256sum");
    assert_terms("foo::BarBaz.qux()", "foo bar baz barbaz qux barbazqux");
    assert_terms("__init__ a__b", "init a b");
}

#[test]
fn hashes_and_keys_stay_in_one_piece() {
    assert_terms("4f1dbe7a21c0", "4f1dbe7a21c0");
    assert_terms("aB1cD2eF3gH4iJ5kL6", "ab1cd2ef3gh4ij5kl6");
    let long = "a1".repeat(500);
    assert_terms(&long, &long);
}

#[test]
fn paths_are_terms_by_segments_and_the_file_name_whole() {
    assert_terms("/srv/app/src/main.rs:12", "srv app src main rs mainrs 12");
    assert_terms(r"C:\Users\bob_b\x.tar.gz", "c users bob b bobb x tar gz xtargz");
    assert_terms("https://example.com/a?b=c", "https example com examplecom a b c");
}

#[test]
fn scripts_without_spaces_go_in_pairs() {
    assert_terms("修复解析", "修复 复解 解析 析");
    assert_terms("用 Rust语言 写", "用 rust 语言 言写 写");
    assert_terms("テストを", "テス スト トを を");
    assert_terms("함수가 왜", "함수 수가 가왜 왜");
    assert_terms("ช่วย", "ชว วย ย");
    assert_terms("数", "数");
    assert_terms("数\n据，库", "数据 据 库");
    assert_terms("数\0据", "数据 据");
}

#[test]
fn other_scripts_make_words() {
    assert_terms("Почему СПИСОК", "почему список");
    assert_terms("गलती ठीक", "गलती ठीक");
    assert_terms("क्षमा", "कषमा");
    assert_terms("الدالّة", "الدالة");
}

#[test]
fn signs_are_terms_of_their_own() {
    assert_terms("done✅🎉 →ok", "done ✅ 🎉 → ok");
    assert_terms("👩\u{200d}💻", "👩 💻");
    assert_terms("│─┐", "");
}

#[test]
fn pieces_count_atoms_along_the_text() {
    let mut seen = Vec::new();
    cut("a fooBar.baz 中文", |piece| {
        seen.push((piece.term.to_owned(), piece.kind, piece.start..piece.end, piece.atom, piece.atoms));
    });
    use TermKind::{Compound, Glyph, Part, Word};
    let expected = [
        ("a", Word, 0..1, 0, 1),
        ("foo", Part, 2..5, 1, 1),
        ("bar", Part, 5..8, 2, 1),
        ("foobar", Word, 2..8, 1, 2),
        ("baz", Word, 9..12, 3, 1),
        ("foobarbaz", Compound, 2..12, 1, 3),
        ("中", Glyph, 13..16, 4, 1),
        ("文", Glyph, 16..19, 5, 1),
    ];
    assert_eq!(
        seen,
        expected.map(|(term, kind, range, atom, atoms)| (term.to_owned(), kind, range, atom, atoms))
    );
}

proptest! {
    #[test]
    fn any_text_is_cut_into_pieces_of_itself(text in "(?s).{0,120}") {
        let mut next_atom = 0;
        cut(&text, |piece| {
            assert!(!piece.term.is_empty() && piece.atoms > 0);
            assert!(text.is_char_boundary(piece.start) && text.is_char_boundary(piece.end));
            assert!(piece.start < piece.end);
            if piece.kind != TermKind::Compound && piece.atoms == 1 && piece.atom >= next_atom {
                let may_skip = u32::from(piece.kind == TermKind::Glyph);
                assert!((next_atom..=next_atom + may_skip).contains(&piece.atom));
                next_atom = piece.atom + 1;
            }
        });
        let all = terms(&text);
        prop_assert!(all.iter().all(|term| !term.is_empty()));
    }

    /// Soft hyphens change nothing but the way the cutter goes.
    #[test]
    fn plain_words_are_cut_as_all_others(text in "[a-cA-C0-1 ._,\n中é-]{0,60}") {
        let hyphened: String = text.chars().flat_map(|c| [c, '\u{ad}']).collect();
        let pieces = |text: &str| {
            let mut all = Vec::new();
            cut(text, |piece| all.push((piece.term.to_owned(), piece.kind, piece.atom, piece.atoms)));
            all
        };
        prop_assert_eq!(pieces(&text), pieces(&hyphened));
        prop_assert_eq!(terms(&text), terms(&hyphened));
    }

    /// The tokenizer of the index parts at every ASCII character that is no letter or digit.
    #[test]
    fn no_term_is_parted_again_by_the_index(text in "(?s).{0,120}") {
        let all = terms(&text);
        prop_assert!(all.iter().all(|t| t.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric())));
    }
}
