//! Reading the environment of the program.

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
    assert_eq!(width(None, Some(20)), 20);
    assert_eq!(width(None, Some(5)), 10);
    assert_eq!(width(None, Some(500)), 120);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    assert!(unless_reader_left(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
    let full = unless_reader_left(Err(io::ErrorKind::StorageFull.into())).unwrap_err();
    assert_eq!(full.exit(), Exit::OutputFailed);
}

#[test]
fn fixed_clock_does_not_move_and_an_invalid_one_is_refused() {
    let Clock::Fixed(now) = clock(Some("2026-11-15T12:00:00Z")).unwrap() else { panic!("not fixed") };
    assert_eq!(now.ms, 1_794_744_000_000);
    assert!(matches!(clock(None).unwrap(), Clock::System(_)));
    assert_eq!(clock(Some("noon")).unwrap_err().exit(), Exit::BadConfig);
}

#[test]
fn seeded_chance_repeats_itself_and_other_chance_does_not() {
    let draw = |random: RandomSource| {
        let mut app = App::for_tests("/nowhere".into());
        app.random = random;
        [app.random_bits(), app.random_bits(), app.random_bits()]
    };
    let first = draw(random(Some("7")));
    assert_eq!(first, draw(random(Some("7"))));
    assert_ne!(first, draw(random(Some("8"))));
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert_ne!(draw(RandomSource::System), draw(RandomSource::System));
}

#[test]
fn hints_within_a_chat_name_slash_commands_and_say_what_needs_a_shell() {
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().to_owned());
    let hint = "`throughline sessions --all` lists them; `throughline doctor` examines the record";
    assert_eq!(app.hint_words(hint), hint);
    assert_eq!(
        app.within_chat().hint_words(hint),
        "/sessions --all lists them; `throughline doctor` in a shell examines the record"
    );
}
