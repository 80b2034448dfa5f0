//! Shapes of words, numbers, punctuation and white space.

use crate::bits::{Bits, Classes, classify};
use crate::lanes::Lane;
use crate::profile::{Counts, Feature as F};

/// Counts the shapes of one stretch. `beyond_ascii` marks the bytes of letters outside ASCII.
// Counting bits takes one instruction on machines of the last fifteen years and a dozen on older ones.
#[multiversion::multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt", "x86_64+popcnt"))]
pub(crate) fn count_shapes(text: &Lane, beyond_ascii: Option<&Lane>, counts: &mut Counts) {
    let mut classes = classify(text);
    let punct = classes.graphic & !(classes.letter | classes.digit);
    let consonant = classes.letter & !classes.vowel;
    if let Some(more) = beyond_ascii {
        classes.letter = classes.letter | Bits::of_lane(more);
    }
    count_words(&classes, consonant, punct, counts);
    count_numbers(&classes, counts);
    count_gaps(&classes, punct, counts);
}

#[inline(always)]
fn count_words(classes: &Classes, consonant: Bits, punct: Bits, counts: &mut Counts) {
    let Classes { letter, capital, digit, newline, tab, .. } = *classes;
    let word = letter | digit;
    // Runs double in length: a pair that follows a pair is a four, and so on to twelve.
    let run2 = word & word.after(1);
    let run4 = run2 & run2.after(2);
    let run8 = run4 & run4.after(4);
    let consonants2 = consonant & consonant.after(1);
    counts.add(F::Letters, letter.count());
    counts.add(F::Words, (letter & !letter.after(1)).count());
    counts.add(F::WordsAfterPunct, (letter & punct.after(1)).count());
    counts.add(F::LongRun12, (run8 & run4.after(8)).count());
    counts.add(F::Consonants4, (consonants2 & consonants2.after(2)).count());

    let after_capital = capital.after(1);
    counts.add(F::CapitalRuns, (capital & !after_capital).count());
    counts.add(F::InnerCapitals, (capital & letter.after(1)).count());
    counts.add(F::AcronymEnds, (letter & !capital & after_capital & capital.after(2)).count());
    counts.add(F::WordsAtLineStart, (letter & (newline | tab).after(1)).count());
}

#[inline(always)]
fn count_numbers(classes: &Classes, counts: &mut Counts) {
    let Classes { letter, digit, blank, .. } = *classes;
    let after_digit = digit.after(1);
    let pair = digit & after_digit;
    counts.add(F::Digits, digit.count());
    counts.add(F::DigitRuns, (digit & !after_digit).count());
    counts.add(F::Digits4, (pair & pair.after(2)).count());
    counts.add(F::DigitsAfterBlank, (digit & blank.after(1)).count());
    counts.add(F::MixedSeams, ((digit & letter.after(1)) | (letter & after_digit)).count());
}

/// Counts the shapes between words: punctuation, blanks, line ends.
#[inline(always)]
fn count_gaps(classes: &Classes, punct: Bits, counts: &mut Counts) {
    let Classes { letter, digit, blank, newline, tab, repeated, .. } = *classes;
    let after_punct = punct.after(1);
    counts.add(F::PunctRuns, (punct & !after_punct).count());
    counts.add(F::PunctChanges, (punct & after_punct & !repeated).count());
    counts.add(F::PunctRepeats, (punct & repeated).count());
    let after_blank = blank.after(1);
    let pair = blank & after_blank;
    counts.add(F::Blanks, blank.count());
    counts.add(F::BlankRuns, (blank & !after_blank).count());
    counts.add(F::WideBlankRuns, (pair & !blank.after(2)).count());

    counts.add(F::RareLetters, classes.rare.count());
    counts.add(F::Slashes, classes.slash.count());
    counts.add(F::Newlines, newline.count());
    counts.add(F::NewlinesAfterWord, (newline & (letter | digit).after(1)).count());
    counts.add(F::Controls, (classes.control & !(newline | tab)).count());
    counts.add(F::TabRuns, (tab & !tab.after(1)).count());
    counts.add(F::TabIndents, (tab & newline.after(1)).count());
}
