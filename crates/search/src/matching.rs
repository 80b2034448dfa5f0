//! Decides whether and where a text matches a query, and how well. It verifies what an index proposes, and alone
//! searches texts without an index.

use crate::case_fold::{fold_text, fold_with_places};
use crate::query::{ParsedQuery, QueryTerm, SearchMethod};
use crate::terms::{TermKind, cut};

/// Marks of one thing beyond this many are not kept: a passage shows a handful, and more make no text fit better.
const MAX_MARKS: usize = 4_096;

/// How well a text answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    /// How often each wanted thing occurs, with diminishing returns: from 0 to 1, averaged.
    pub frequency: f64,
    /// How close together all of them stand: 1 side by side, towards 0 far apart.
    pub closeness: f64,
    /// Whether they stand side by side in the order of the question, or a substring as whole words.
    pub as_asked: bool,
    /// Share of the text that was looked for, from 0 to 1.
    pub density: f64,
}

impl Fit {
    /// Whether this fits better than another, by the text alone.
    pub fn outdoes(&self, other: &Self) -> bool {
        let weight = |fit: &Self| (fit.as_asked, fit.closeness + fit.frequency + fit.density);
        weight(self).partial_cmp(&weight(other)) == Some(std::cmp::Ordering::Greater)
    }
}

/// An occurrence in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchSpan {
    /// Which wanted thing.
    wanted: usize,
    /// First atom, and the one after the last.
    atom: u32,
    end_atom: u32,
    /// Where it is in the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// A question prepared for many texts.
pub struct Matcher<'q> {
    query: &'q ParsedQuery,
    way: SearchMethod,
    atoms: TermSet<'q>,
    wholes: TermSet<'q>,
    finder: memchr::memmem::Finder<'q>,
    /// Reused from text to text.
    folded: String,
    seen: Vec<SeenAtom>,
    marks: Vec<MatchSpan>,
}

#[derive(Clone, Copy)]
struct SeenAtom {
    atom: u32,
    /// Its number in the set of atoms.
    term: usize,
    start: usize,
    end: usize,
}

impl<'q> Matcher<'q> {
    /// Prepares a question.
    pub fn new(query: &'q ParsedQuery, way: SearchMethod) -> Self {
        let mut atoms = TermSet::default();
        let mut wholes = TermSet::default();
        for wanted in &query.wanted {
            for (at, (atom, _)) in wanted.atoms.iter().enumerate() {
                atoms.add(atom, wanted.as_prefix && at + 1 == wanted.atoms.len());
            }
            if let Some(whole) = &wanted.whole {
                wholes.add(whole, wanted.as_prefix);
            }
        }
        Self {
            query,
            way,
            atoms,
            wholes,
            finder: memchr::memmem::Finder::new(&query.substring),
            folded: String::new(),
            seen: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// How well a text answers; `None` if it does not.
    pub fn fit(&mut self, text: &str) -> Option<Fit> {
        match self.way {
            SearchMethod::Words => self.fit_words(text),
            SearchMethod::Substring => self.fit_substring(text),
        }
    }

    /// Where the wanted things stand in a text that answers, in order; the first is where the best passage begins.
    pub fn places(&mut self, text: &str) -> Vec<MatchSpan> {
        match self.way {
            SearchMethod::Words => {
                if self.fit_words(text).is_none() {
                    return Vec::new();
                }
                let best = closest(&self.marks, self.query.wanted.len()).map_or(0, |(from, _)| from);
                let mut places = self.marks.split_off(best.min(self.marks.len()));
                places.append(&mut self.marks);
                places
            }
            SearchMethod::Substring => self.substring_places(text),
        }
    }

    fn fit_words(&mut self, text: &str) -> Option<Fit> {
        self.seen.clear();
        self.marks.clear();
        let mut atoms = 0;
        let (atom_terms, whole_terms) = (&self.atoms, &self.wholes);
        let (seen, marks, wanted) = (&mut self.seen, &mut self.marks, &self.query.wanted);
        cut(text, |piece| {
            atoms = atoms.max(piece.atom + piece.atoms);
            if piece.atoms == 1 && piece.kind != TermKind::Compound {
                atom_terms.each_match(piece.term, |term| {
                    seen.push(SeenAtom { atom: piece.atom, term, start: piece.start, end: piece.end });
                });
            }
            if piece.kind != TermKind::Part {
                whole_terms.each_match(piece.term, |term| {
                    let (atom, end_atom) = (piece.atom, piece.atom + piece.atoms);
                    for (number, _) in wanted.iter().enumerate().filter(|(_, wanted)| {
                        wanted
                            .whole
                            .as_ref()
                            .is_some_and(|whole| whole_terms.is(term, whole, wanted.as_prefix))
                    }) {
                        marks.push(MatchSpan {
                            wanted: number,
                            atom,
                            end_atom,
                            start: piece.start,
                            end: piece.end,
                        });
                    }
                });
            }
        });
        self.mark_sequences();
        self.marks.sort_by_key(|mark| (mark.atom, mark.end_atom, mark.wanted));
        self.marks.dedup();
        let mut counts = vec![0_u32; self.query.wanted.len()];
        for mark in &self.marks {
            if let Some(count) = counts.get_mut(mark.wanted) {
                *count += 1;
            }
        }
        if counts.contains(&0) {
            return None;
        }
        let closeness = closest(&self.marks, counts.len()).map_or(0.0, |(_, window)| {
            let wanted: usize = self.query.wanted.iter().map(|wanted| wanted.atoms.len()).sum();
            (wanted as f64 / f64::from(window.max(1))).min(1.0)
        });
        Some(Fit {
            frequency: counts.iter().map(|&count| saturated(f64::from(count))).sum::<f64>()
                / counts.len() as f64,
            closeness,
            as_asked: in_order(&self.marks, counts.len()),
            density: self.marks.len() as f64 / f64::from(atoms.max(1)).max(self.marks.len() as f64),
        })
    }

    /// Marks where the atoms of a wanted thing follow one another.
    fn mark_sequences(&mut self) {
        for (number, wanted) in self.query.wanted.iter().enumerate() {
            let Some(terms) = self.atoms.numbers_of(wanted) else { continue };
            let enough = self.marks.len() + MAX_MARKS;
            for first in self.seen.iter().filter(|seen| Some(&seen.term) == terms.first()) {
                if self.marks.len() >= enough {
                    break;
                }
                let mut last = *first;
                let rest = terms.iter().zip(&wanted.atoms).skip(1);
                let follows =
                    rest.map(|(&term, (_, after))| (term, first.atom + after)).all(|(term, atom)| {
                        let found = find_seen(&self.seen, atom, term);
                        last = found.unwrap_or(last);
                        found.is_some()
                    });
                if follows {
                    self.marks.push(MatchSpan {
                        wanted: number,
                        atom: first.atom,
                        end_atom: last.atom + 1,
                        start: first.start,
                        end: last.end,
                    });
                }
            }
        }
    }

    fn fit_substring(&mut self, text: &str) -> Option<Fit> {
        if self.query.substring.is_empty() {
            return None;
        }
        self.folded.clear();
        fold_text(text, &mut self.folded);
        let needle_bytes = self.query.substring.len();
        let mut count = 0_u32;
        let mut as_words = false;
        for at in self.finder.find_iter(self.folded.as_bytes()).take(MAX_MARKS) {
            count += 1;
            as_words = as_words || stands_alone(&self.folded, at, at + needle_bytes);
        }
        (count > 0).then(|| Fit {
            frequency: saturated(f64::from(count)),
            closeness: 1.0,
            as_asked: as_words,
            density: (f64::from(count) * needle_bytes as f64 / self.folded.len().max(1) as f64).min(1.0),
        })
    }

    fn substring_places(&self, text: &str) -> Vec<MatchSpan> {
        let (folded, places) = fold_with_places(text);
        let place = |at: usize| places.get(at).copied().unwrap_or(text.len());
        let after =
            |at: usize| at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let mut marks: Vec<MatchSpan> = self
            .finder
            .find_iter(folded.as_bytes())
            .take(MAX_MARKS)
            .map(|at| {
                let end = at + self.query.substring.len();
                // One character may be several when it is folded (`ß` is `ss`): it is marked whole.
                let end = place(end).max(after(place(end.saturating_sub(1))));
                MatchSpan { wanted: 0, atom: 0, end_atom: 0, start: place(at), end }
            })
            .collect();
        marks.dedup_by_key(|mark| mark.start);
        let alone = marks.iter().position(|mark| stands_alone(text, mark.start, mark.end));
        marks.rotate_left(alone.unwrap_or(0));
        marks
    }
}

/// More is better, less and less so.
fn saturated(count: f64) -> f64 {
    count / (count + 1.2)
}

fn find_seen(seen: &[SeenAtom], atom: u32, term: usize) -> Option<SeenAtom> {
    let from = seen.partition_point(|seen| seen.atom < atom);
    seen.get(from..)?.iter().take_while(|seen| seen.atom == atom).find(|seen| seen.term == term).copied()
}

/// Whether no letter or digit goes on before or after a piece of a text.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    let after = text.get(end..).and_then(|after| after.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

/// The shortest stretch that holds every wanted thing: its first mark, and how many atoms it spans. Marks are in order.
fn closest(marks: &[MatchSpan], wanted: usize) -> Option<(usize, u32)> {
    let mut last: Vec<Option<usize>> = vec![None; wanted];
    let mut best: Option<(usize, u32)> = None;
    for (at, mark) in marks.iter().enumerate() {
        *last.get_mut(mark.wanted)? = Some(at);
        let Some(from) = last.iter().copied().min().flatten() else { continue };
        let first = marks.get(from)?;
        let end = last.iter().flatten().filter_map(|&at| marks.get(at)).map(|mark| mark.end_atom).max()?;
        let span = end.saturating_sub(first.atom);
        if best.is_none_or(|(_, shortest)| span < shortest) {
            best = Some((from, span));
        }
    }
    best
}

/// Whether every wanted thing stands right after the one before it, somewhere.
fn in_order(marks: &[MatchSpan], wanted: usize) -> bool {
    let follows = |from: &MatchSpan, number: usize| -> Option<MatchSpan> {
        let start = marks.partition_point(|mark| mark.atom < from.end_atom);
        marks
            .get(start..)?
            .iter()
            .take_while(|mark| mark.atom == from.end_atom)
            .find(|m| m.wanted == number)
            .copied()
    };
    marks.iter().filter(|mark| mark.wanted == 0).any(|first| {
        let mut at = *first;
        (1..wanted).all(|number| match follows(&at, number) {
            Some(next) => {
                at = next;
                true
            }
            None => false,
        })
    })
}

/// Terms to recognise, quickly: most words of a text are none of them.
struct TermSet<'q> {
    terms: Vec<(&'q str, bool)>,
    first_bytes: [bool; 256],
}

impl Default for TermSet<'_> {
    fn default() -> Self {
        Self { terms: Vec::new(), first_bytes: [false; 256] }
    }
}

impl<'q> TermSet<'q> {
    fn add(&mut self, term: &'q str, as_prefix: bool) {
        if let Some(&first) = term.as_bytes().first()
            && !self.terms.contains(&(term, as_prefix))
        {
            self.terms.push((term, as_prefix));
            self.first_bytes[usize::from(first)] = true;
        }
    }

    fn each_match(&self, text: &str, mut each: impl FnMut(usize)) {
        if !text.as_bytes().first().is_some_and(|&first| self.first_bytes[usize::from(first)]) {
            return;
        }
        for (number, (term, as_prefix)) in self.terms.iter().enumerate() {
            if if *as_prefix { text.starts_with(term) } else { text == *term } {
                each(number);
            }
        }
    }

    fn is(&self, number: usize, term: &str, as_prefix: bool) -> bool {
        self.terms.get(number) == Some(&(term, as_prefix))
    }

    /// The numbers of the atoms of a wanted thing.
    fn numbers_of(&self, wanted: &QueryTerm) -> Option<Vec<usize>> {
        let last = wanted.atoms.len().checked_sub(1)?;
        wanted
            .atoms
            .iter()
            .enumerate()
            .map(|(at, (atom, _))| {
                self.terms.iter().position(|known| *known == (atom.as_str(), wanted.as_prefix && at == last))
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
