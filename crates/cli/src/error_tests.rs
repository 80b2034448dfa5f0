//! The format of error messages.

use super::*;

fn plain(failure: &CliError) -> String {
    anstream::adapter::strip_str(&failure.render()).to_string()
}

#[test]
fn a_failure_says_what_why_and_what_to_do() {
    let failure = CliError::new(Exit::BadInput, "cannot read a.json")
        .because("it is not JSON\n(line 3)")
        .hint("pass a transcript");
    assert_eq!(
        plain(&failure),
        "error: cannot read a.json\n  why: it is not JSON\n       (line 3)\n hint: pass a transcript\n"
    );
    assert_eq!(failure.exit().code(), 3);
}

#[test]
fn system_errors_lose_their_numbers() {
    assert_eq!(io_words(&io::Error::from_raw_os_error(2)), "there is no such file or folder");
    let odd = io::Error::other("Cable Pulled (os error 999)");
    assert_eq!(io_words(&odd), "cable pulled");
}

#[test]
fn a_path_cannot_drive_the_terminal() {
    assert_eq!(path_words(Path::new("a\u{1b}[2Jb\nc")), "a\\u{1b}[2Jb\\nc");
}
