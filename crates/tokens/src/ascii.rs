//! Shapes of words, numbers, punctuation and white space.

use crate::lanes::{Lane, SPAN, both, count, mask, within};
use crate::profile::{Counts, Feature as F};

/// The classes every byte is sorted into.
struct Classes {
    letter: Lane,
    capital: Lane,
    consonant: Lane,
    digit: Lane,
    word: Lane,
    punct: Lane,
    blank: Lane,
}

/// Counts the shapes of one stretch. `beyond_ascii` marks the bytes of letters outside ASCII.
pub(crate) fn count_shapes(text: &Lane, beyond_ascii: Option<&Lane>, counts: &mut Counts) {
    let mut classes = classify(text);
    if let Some(more) = beyond_ascii {
        for (at, mark) in more.iter().enumerate() {
            classes.letter[at] |= mark;
            classes.word[at] |= mark;
        }
    }
    count_words(text, &classes, counts);
    count_numbers(&classes, counts);
    count_gaps(text, &classes, counts);
}

fn classify(text: &Lane) -> Classes {
    const NONE: Lane = [0; SPAN];
    let mut classes = Classes {
        letter: NONE,
        capital: NONE,
        consonant: NONE,
        digit: NONE,
        word: NONE,
        punct: NONE,
        blank: NONE,
    };
    for (at, &byte) in text.iter().enumerate() {
        let small = byte | 0x20;
        let letter = within(small, b'a', b'z');
        let digit = within(byte, b'0', b'9');
        let vowel = mask(small == b'a')
            | mask(small == b'e')
            | mask(small == b'i')
            | mask(small == b'o')
            | mask(small == b'u');
        classes.letter[at] = letter;
        classes.capital[at] = letter & mask(byte != small);
        classes.consonant[at] = letter & !vowel;
        classes.digit[at] = digit;
        classes.word[at] = letter | digit;
        classes.punct[at] = within(byte, b'!', b'~') & !(letter | digit);
        classes.blank[at] = mask(byte == b' ') | mask(byte == b'\t');
    }
    classes
}

fn count_words(text: &Lane, classes: &Classes, counts: &mut Counts) {
    let Classes { letter, capital, consonant, word, punct, .. } = classes;
    // Runs double in length: a pair that follows a pair is a four, and so on to twelve.
    let run2 = both(word, word, 1);
    let run4 = both(&run2, &run2, 2);
    let run8 = both(&run4, &run4, 4);
    let consonants2 = both(consonant, consonant, 1);

    let [letters, pairs, after_punct, long, consonants4] = count(|at| {
        [
            letter[at],
            letter[at] & letter[at - 1],
            letter[at] & punct[at - 1],
            run8[at] & run4[at - 8],
            consonants2[at] & consonants2[at - 2],
        ]
    });
    counts.add(F::Letters, letters);
    counts.add(F::Words, letters - pairs);
    counts.add(F::WordsAfterPunct, after_punct);
    counts.add(F::LongRun12, long);
    counts.add(F::Consonants4, consonants4);

    let [capitals, pairs, inner, acronym_ends, line_starts] = count(|at| {
        let before = text[at - 1];
        [
            capital[at],
            capital[at] & capital[at - 1],
            capital[at] & letter[at - 1],
            letter[at] & !capital[at] & capital[at - 1] & capital[at - 2],
            letter[at] & (mask(before == b'\n') | mask(before == b'\t')),
        ]
    });
    counts.add(F::CapitalRuns, capitals - pairs);
    counts.add(F::InnerCapitals, inner);
    counts.add(F::AcronymEnds, acronym_ends);
    counts.add(F::WordsAtLineStart, line_starts);
}

fn count_numbers(classes: &Classes, counts: &mut Counts) {
    let Classes { letter, digit, blank, .. } = classes;
    let [digits, pairs, fours, after_blank, mixed] = count(|at| {
        let (now, before) = (digit[at], digit[at - 1]);
        let pair = now & before;
        [
            now,
            pair,
            pair & digit[at - 2] & digit[at - 3],
            now & blank[at - 1],
            (now & letter[at - 1]) | (letter[at] & before),
        ]
    });
    counts.add(F::Digits, digits);
    counts.add(F::DigitRuns, digits - pairs);
    counts.add(F::Digits4, fours);
    counts.add(F::DigitsAfterBlank, after_blank);
    counts.add(F::MixedSeams, mixed);
}

/// What stands between words: punctuation, blanks, line ends.
fn count_gaps(text: &Lane, classes: &Classes, counts: &mut Counts) {
    let Classes { word, punct, blank, .. } = classes;
    let [puncts, punct_pairs, repeats, blanks, blank_pairs, blank_triples] = count(|at| {
        let pair = blank[at] & blank[at - 1];
        [
            punct[at],
            punct[at] & punct[at - 1],
            punct[at] & mask(text[at] == text[at - 1]),
            blank[at],
            pair,
            pair & blank[at - 2],
        ]
    });
    counts.add(F::PunctRuns, puncts - punct_pairs);
    counts.add(F::PunctChanges, punct_pairs - repeats);
    counts.add(F::PunctRepeats, repeats);
    counts.add(F::Blanks, blanks);
    counts.add(F::BlankRuns, blanks - blank_pairs);
    counts.add(F::WideBlankRuns, blank_pairs - blank_triples);

    let [rare, slashes, newlines, after_word, below_space, tabs] = count(|at| {
        let byte = text[at];
        let small = byte | 0x20;
        let newline = mask(byte == b'\n');
        [
            within(small, b'v', b'x') | within(small, b'j', b'k') | mask(small == b'q') | mask(small == b'z'),
            mask(byte == b'/'),
            newline,
            newline & word[at - 1],
            mask(byte < 0x20),
            mask(byte == b'\t'),
        ]
    });
    counts.add(F::RareLetters, rare);
    counts.add(F::Slashes, slashes);
    counts.add(F::Newlines, newlines);
    counts.add(F::NewlinesAfterWord, after_word);
    counts.add(F::Controls, below_space - newlines - tabs);
    if tabs > 0 {
        let [pairs, indents] = count(|at| {
            let tab = mask(text[at] == b'\t');
            [tab & mask(text[at - 1] == b'\t'), tab & mask(text[at - 1] == b'\n')]
        });
        counts.add(F::TabRuns, tabs - pairs);
        counts.add(F::TabIndents, indents);
    }
}
