//! A command line taken apart as far as it takes to see which programs it runs and which files it writes.
//!
//! Not a shell: what hides behind variables, aliases and files is not seen.

/// One command of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its words, quotes taken off.
    pub(crate) words: Vec<String>,
    /// Files that its output replaces.
    pub(crate) replaces: Vec<String>,
}

impl Piece {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.replaces.is_empty()
    }
}

/// The commands of a line, and the lines that stand in quotes and are run nevertheless (`"$(...)"`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// In their order.
    pub(crate) pieces: Vec<Piece>,
    /// What is run inside quotes.
    pub(crate) inner: Vec<String>,
}

impl Line {
    /// Takes a line apart.
    pub(crate) fn of(command: &str) -> Self {
        let mut reader = Reader::default();
        let mut characters = command.chars().peekable();
        while let Some(character) = characters.next() {
            reader.take(character, &mut characters);
        }
        reader.finish_piece();
        Self { pieces: reader.pieces, inner: reader.inner }
    }
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

#[derive(Default)]
struct Reader {
    pieces: Vec<Piece>,
    piece: Piece,
    word: String,
    in_word: bool,
    quote: Option<char>,
    /// The next word is a file that is written to, and whether that replaces it.
    redirect: Option<Redirect>,
    inner: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirect {
    Replaces,
    /// Adds to a file, or reads one.
    LeavesAlone,
}

impl Reader {
    fn take(&mut self, character: char, rest: &mut Characters<'_>) {
        match (self.quote, character) {
            (Some(open), c) if c == open => self.quote = None,
            (Some('\''), c) => self.word.push(c),
            (_, '\\') => {
                self.in_word = true;
                self.word.extend(rest.next());
            }
            (Some(_), '$') if rest.peek() == Some(&'(') => {
                let inside = inside(rest);
                self.word.push_str(&format!("$({inside})"));
                self.inner.push(inside);
            }
            (Some(_), c) => self.word.push(c),
            (None, '\'' | '"') => {
                self.quote = Some(character);
                self.in_word = true;
            }
            (None, '#') if !self.in_word => while rest.next_if(|c| *c != '\n').is_some() {},
            (None, '&') if rest.peek() == Some(&'>') => {
                rest.next();
                self.redirected(rest);
            }
            (None, '>') => self.redirected(rest),
            (None, '<') => {
                self.finish_word();
                let mut opened = 1;
                while rest.next_if_eq(&'<').is_some() {
                    opened += 1;
                }
                // `<(command)` runs the command, and what follows `<<` is the end of a text.
                if opened == 1 && rest.peek() != Some(&'(') {
                    self.redirect = Some(Redirect::LeavesAlone);
                }
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '`' | '{' | '}') => self.finish_piece(),
            (None, '$') if rest.peek() == Some(&'(') => {}
            (None, c) if c.is_whitespace() => self.finish_word(),
            (None, c) => {
                self.word.push(c);
                self.in_word = true;
            }
        }
    }

    /// Output goes into a file, or into another stream.
    fn redirected(&mut self, rest: &mut Characters<'_>) {
        // `2>` names a stream, not a file.
        if self.word.chars().all(|c| c.is_ascii_digit()) {
            self.word.clear();
            self.in_word = false;
        }
        self.finish_word();
        if rest.next_if_eq(&'>').is_some() {
            self.redirect = Some(Redirect::LeavesAlone);
        } else if rest.next_if_eq(&'&').is_some() {
            while rest.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
        } else {
            rest.next_if_eq(&'|');
            self.redirect = Some(Redirect::Replaces);
        }
    }

    fn finish_word(&mut self) {
        if !std::mem::take(&mut self.in_word) {
            return;
        }
        let word = std::mem::take(&mut self.word);
        match self.redirect.take() {
            Some(Redirect::Replaces) => self.piece.replaces.push(word),
            Some(Redirect::LeavesAlone) => {}
            None => self.piece.words.push(word),
        }
    }

    fn finish_piece(&mut self) {
        self.finish_word();
        self.redirect = None;
        let piece = std::mem::take(&mut self.piece);
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
    }
}

/// What stands in the parentheses that begin here.
fn inside(rest: &mut Characters<'_>) -> String {
    rest.next();
    let mut depth = 1usize;
    let mut found = String::new();
    for character in rest.by_ref() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        found.push(character);
    }
    found
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
