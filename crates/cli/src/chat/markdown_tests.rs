//! What is written for text that comes in pieces.

use super::*;

const COLUMNS: usize = 40;

#[test]
fn without_looks_the_text_is_passed_on_whatever_its_pieces() {
    let text = "# Title\nsome **bold** text\n```rust\nlet x = 1;\n```\nend";
    for size in [1, 3, 7, 100] {
        let mut markdown = Markdown::new(Looks::Plain);
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::new();
        for piece in chars.chunks(size) {
            out.push_str(&markdown.push(&piece.iter().collect::<String>(), COLUMNS));
        }
        out.push_str(&markdown.finish(COLUMNS));
        assert_eq!(out, format!("{text}\n"));
    }
}

#[test]
fn words_appear_at_once_and_get_their_looks_when_the_line_ends() {
    let mut markdown = Markdown::new(Looks::Styled);
    assert_eq!(markdown.push("some **bo", COLUMNS), "some **bo");
    assert_eq!(markdown.push("ld**", COLUMNS), "ld**");
    assert_eq!(markdown.push("\n", COLUMNS), format!("\r\x1b[Jsome {}\n", "bold".bold()));
    assert_eq!(markdown.push("plain\n", COLUMNS), "plain\n", "nothing is drawn twice for nothing");
}

#[test]
fn a_line_over_several_rows_is_drawn_again_from_its_first() {
    let mut markdown = Markdown::new(Looks::Styled);
    let long = format!("{} `code`", "x".repeat(70));
    markdown.push(&long, COLUMNS);
    let out = markdown.push("\n", COLUMNS);
    assert!(out.starts_with("\r\x1b[1A\x1b[J"), "{out:?}");
    let mut markdown = Markdown::new(Looks::Styled);
    markdown.push(&format!("{} `code`", "x".repeat(700)), COLUMNS);
    assert_eq!(markdown.push("\n", COLUMNS), "\n", "what has scrolled away stays as it is");
}

#[test]
fn code_is_code_until_its_fence_closes() {
    let mut markdown = Markdown::new(Looks::Styled);
    let out = markdown.push("```py\n# not a heading\n``\n````\nx = 1\n```\n# heading\n", COLUMNS);
    assert!(out.contains(&"# not a heading".dimmed().to_string()));
    assert!(out.contains(&format!("x = {}", "1".magenta())));
    assert!(out.ends_with(&format!("{}\n", "# heading".bold())));
}

#[test]
fn nothing_a_terminal_would_act_on_gets_through() {
    let mut markdown = Markdown::new(Looks::Styled);
    let out = markdown.push("a\x1b[2Jb\x07\rc", COLUMNS);
    assert_eq!(out, "a[2Jbc");
    assert_eq!(inline("2 * 3 * 4 and `x and **"), "2 * 3 * 4 and `x and **");
}
