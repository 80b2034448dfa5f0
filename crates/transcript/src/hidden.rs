//! Characters that control a terminal or are invisible.

/// Whether a character is invisible, or changes how others are shown.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control() || is_direction(c) || is_blank(c) || is_shapeless(c)
}

/// Marks that change the text direction.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// White space that looks like a space and has another meaning.
fn is_blank(c: char) -> bool {
    c != ' ' && c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// Invisible characters: Unicode's `Default_Ignorable_Code_Point`, and the marks of annotations.
fn is_shapeless(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
