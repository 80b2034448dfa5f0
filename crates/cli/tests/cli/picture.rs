//! The picture of the terminal in README: what the program prints, as SVG. `cargo xtask picture` draws it anew.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;

use throughline_testkit::check_golden;

use crate::harness::World;

const COLUMNS: u16 = 80;
/// A small terminal: the result fits it.
const ROWS: u16 = 24;
/// Pixels of a cell, of the space around the text, and of a line.
const CELL: f32 = 8.4;
const MARGIN: f32 = 16.0;
const LINE: f32 = 18.0;
/// Red, green, yellow, blue, magenta and cyan on a dark ground.
const COLOURS: [&str; 8] =
    ["#8b949e", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#c9d1d9"];

#[test]
fn picture_in_readme_is_what_the_program_prints() {
    let world = World::new();
    std::fs::create_dir(world.path("examples")).unwrap();
    world.write("examples/waiting-list.json", include_bytes!("../../../../examples/waiting-list.json"));
    let command = ["compress", "examples/waiting-list.json", "--color", "always"];
    let ended = world.run(&command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let printed =
        format!("\x1b[1m$ throughline compress examples/waiting-list.json\x1b[0m\n\n{}", ended.text());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/compress.svg");
    check_golden(&path, &svg(&printed));
}

/// What a terminal shows of a text, as SVG.
fn svg(printed: &str) -> String {
    let cells = |count: u16| NonZero::new(count).unwrap();
    let mut parser = vt100::Parser::new(cells(ROWS), cells(COLUMNS), 0);
    let shown = printed.lines().collect::<Vec<_>>();
    assert!(shown.len() <= usize::from(ROWS), "{printed}");
    let shown = shown.join("\r\n");
    parser.process(shown.trim_end().as_bytes());
    let screen = parser.screen();
    let rows = screen.contents().lines().count() as u16;
    let (width, height) = (f32::from(COLUMNS) * CELL + 2.0 * MARGIN, f32::from(rows) * LINE + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"throughline compress in a terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\" fill=\"#c9d1d9\">\n"
    );
    for row in 0..rows {
        let mut column = 0;
        while column < COLUMNS {
            let style = style(screen.cell(row, column).unwrap());
            let (start, mut text) = (column, String::new());
            while column < COLUMNS && screen.cell(row, column).is_some_and(|cell| self::style(cell) == style)
            {
                let contents = screen.cell(row, column).unwrap().contents();
                text.push_str(if contents.is_empty() { " " } else { contents });
                column += 1;
            }
            let (words, before) = (text.trim(), text.chars().take_while(|c| *c == ' ').count());
            if words.is_empty() {
                continue;
            }
            let x = MARGIN + (f32::from(start) + before as f32) * CELL;
            let y = MARGIN + f32::from(row + 1) * LINE - 5.0;
            let length = words.chars().count() as f32 * CELL;
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\"{style}>{}</text>",
                // Browsers differ in whether `xml:space` keeps several spaces; all keep these.
                words.replace('&', "&amp;").replace('<', "&lt;").replace(' ', "\u{a0}")
            )
            .unwrap();
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// The attributes of a cell's text.
fn style(cell: &vt100::Cell) -> String {
    let mut style = String::new();
    match cell.fgcolor() {
        vt100::Color::Idx(index) => {
            let _ = write!(style, " fill=\"{}\"", COLOURS[usize::from(index % 8)]);
        }
        vt100::Color::Rgb(red, green, blue) => {
            let _ = write!(style, " fill=\"#{red:02x}{green:02x}{blue:02x}\"");
        }
        vt100::Color::Default => {}
    }
    if cell.bold() {
        style.push_str(" font-weight=\"bold\"");
    }
    if cell.dim() {
        style.push_str(" opacity=\"0.6\"");
    }
    style
}
