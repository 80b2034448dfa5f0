//! The output for text that arrives in pieces.

use super::*;

const COLUMNS: usize = 40;

#[test]
fn without_looks_the_text_is_passed_on_whatever_its_pieces() {
    let text = "# Title\nsome **bold** text\n```rust\nlet x = 1;\n```\nend";
    for size in [1, 3, 7, 100] {
        let mut markdown = Markdown::new(MarkdownStyle::Plain, CursorControl::No);
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
    let mut markdown = Markdown::new(MarkdownStyle::Styled, CursorControl::Yes);
    assert_eq!(markdown.push("some **bo", COLUMNS), "some **bo");
    assert_eq!(markdown.push("ld**", COLUMNS), "ld**");
    assert_eq!(markdown.push("\n", COLUMNS), format!("\r\x1b[Jsome {}\n", "bold".bold()));
    assert_eq!(markdown.push("plain\n", COLUMNS), "plain\n", "nothing is drawn twice for nothing");
}

#[test]
fn a_line_over_several_rows_is_drawn_again_from_its_first() {
    let mut markdown = Markdown::new(MarkdownStyle::Styled, CursorControl::Yes);
    let long = format!("{} `code`", "x".repeat(70));
    markdown.push(&long, COLUMNS);
    let out = markdown.push("\n", COLUMNS);
    assert!(out.starts_with("\r\x1b[1A\x1b[J"), "{out:?}");
    let mut markdown = Markdown::new(MarkdownStyle::Styled, CursorControl::No);
    markdown.push(&long, COLUMNS);
    assert!(markdown.push("\n", COLUMNS).starts_with("\r\x1b[1A\x1b[J"), "as the terminal itself breaks it");
    let mut markdown = Markdown::new(MarkdownStyle::Styled, CursorControl::Yes);
    markdown.push(&format!("{} `code`", "x".repeat(700)), COLUMNS);
    assert_eq!(markdown.push("\n", COLUMNS), "\n", "what has scrolled away stays as it is");
}

#[test]
fn code_is_code_until_its_fence_closes() {
    let mut markdown = Markdown::new(MarkdownStyle::Styled, CursorControl::Yes);
    let out = markdown.push("```py\n# not a heading\n``\n````\nx = 1\n```\n# heading\n", COLUMNS);
    assert!(out.contains(&"# not a heading".dimmed().to_string()));
    assert!(out.contains(&format!("x = {}", "1".magenta())));
    assert!(out.ends_with(&format!("{}\n", "# heading".bold())));
}

#[test]
fn nothing_a_terminal_would_act_on_gets_through() {
    let mut markdown = Markdown::new(MarkdownStyle::Styled, CursorControl::Yes);
    let out = markdown.push("a\x1b[2Jb\x07\rc", COLUMNS);
    assert_eq!(out, "a[2Jbc");
    assert_eq!(inline("2 * 3 * 4 and `x and **"), "2 * 3 * 4 and `x and **");
}

/// The screen of a terminal with `columns` columns after text in pieces of `size` characters.
fn seen(text: &str, columns: u16, size: usize, looks: MarkdownStyle) -> String {
    let mut markdown = Markdown::new(looks, CursorControl::Yes);
    let cells = |count: u16| std::num::NonZero::new(count).unwrap();
    let mut terminal = vt100::Parser::new(cells(30), cells(columns), 0);
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for piece in chars.chunks(size) {
        out.push_str(&markdown.push(&piece.iter().collect::<String>(), usize::from(columns)));
    }
    out.push_str(&markdown.finish(usize::from(columns)));
    terminal.process(out.replace('\n', "\r\n").as_bytes());
    let screen = terminal.screen().contents();
    screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn words_are_kept_whole_on_a_narrow_terminal_whatever_their_pieces() {
    let text = "The compaction **keeps** the latest request and folds the older part of it.\n\n- `one`";
    let plain = "The compaction\n**keeps** the latest\nrequest and folds\nthe older part of\nit.\n\n- `one`";
    let styled = "The compaction keeps\nthe latest request\nand folds the older\npart of it.\n\n- one";
    for size in [1, 2, 3, 7, 200] {
        assert_eq!(seen(text, 21, size, MarkdownStyle::Plain).trim_end(), plain, "{size}");
        assert_eq!(seen(text, 21, size, MarkdownStyle::Styled).trim_end(), styled, "{size}");
    }
    let long = "a word of thirty-nine letters: incomprehensibilitiesincomprehensibilit end";
    for size in [1, 5, 200] {
        let shown = seen(long, 21, size, MarkdownStyle::Plain);
        assert_eq!(shown.split_whitespace().collect::<String>(), long.replace(' ', ""), "{size}: {shown}");
    }
}

#[test]
fn code_is_left_as_it_is() {
    let text = "```\nlet value = some_function(argument);\n```\n";
    for size in [1, 200] {
        let shown = seen(text, 21, size, MarkdownStyle::Plain);
        assert!(shown.contains("let value = some_function(argument);"), "{size}: {shown}");
    }
}
