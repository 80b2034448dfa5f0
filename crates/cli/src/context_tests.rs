//! Tests of how the world around the program is understood.

use super::*;

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_own_variable_outranks_the_home_of_the_user() {
    let user = || Some(PathBuf::from("/home/ada"));
    assert_eq!(home_folder(Some("/srv/tl"), user()).unwrap(), PathBuf::from("/srv/tl"));
    assert_eq!(home_folder(None, user()).unwrap(), PathBuf::from("/home/ada/.throughline"));
    assert_eq!(home_folder(None, None).unwrap_err().exit(), Exit::BadConfig);
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    assert!(wants_colour(ColourChoice::Auto, &env(&[]), true));
    assert!(!wants_colour(ColourChoice::Auto, &env(&[]), false));
    assert!(!wants_colour(ColourChoice::Auto, &env(&[("NO_COLOR", "1")]), true));
    assert!(
        wants_colour(ColourChoice::Auto, &env(&[("NO_COLOR", "")]), true),
        "an empty variable counts as not set"
    );
    assert!(!wants_colour(ColourChoice::Auto, &env(&[("TERM", "dumb")]), true));
    assert!(wants_colour(ColourChoice::Always, &env(&[("NO_COLOR", "1")]), false));
    assert!(!wants_colour(ColourChoice::Never, &env(&[]), true));
}

#[test]
fn the_width_is_asked_for_and_bounded() {
    assert_eq!(width(None, None), 80);
    assert_eq!(width(None, Some(100)), 100);
    assert_eq!(width(Some("90"), Some(100)), 90);
    assert_eq!(width(Some("wide"), Some(100)), 100);
    assert_eq!(width(None, Some(10)), 60);
    assert_eq!(width(None, Some(500)), 120);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    assert!(unless_reader_left(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
    let full = unless_reader_left(Err(io::ErrorKind::StorageFull.into())).unwrap_err();
    assert_eq!(full.exit(), Exit::OutputFailed);
}
