use super::*;

#[test]
fn an_address_names_host_and_port() {
    assert_eq!(address("127.0.0.1:8790").unwrap().port(), 8790);
    assert!(address("[::1]:0").is_ok());
    for bind in ["8790", "127.0.0.1", "", "localhost:99999"] {
        assert_eq!(address(bind).unwrap_err().exit(), Exit::BadConfig, "{bind}");
    }
}

#[test]
fn address_that_others_can_reach_requires_a_token() {
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().to_owned());
    let (here, everywhere) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
    assert_eq!(access::at(here, &AccessTokenList::File(&app)).unwrap(), AccessPolicy::ThisMachine);
    assert_eq!(access::at(everywhere, &AccessTokenList::File(&app)).unwrap_err().exit(), Exit::BadConfig);
    crate::access_token_file::change(&app, |book| {
        book.add("ci", "ci", &[1; 32], 0, throughline_gateway::TokenLimits::default()).unwrap();
        Ok(())
    })
    .unwrap();
    // Once a token exists, every address requires one.
    assert!(matches!(access::at(here, &AccessTokenList::File(&app)).unwrap(), AccessPolicy::Tokens(_)));
    assert!(matches!(access::at(everywhere, &AccessTokenList::File(&app)).unwrap(), AccessPolicy::Tokens(_)));
}

#[test]
fn a_gateway_whose_last_token_was_revoked_stays_closed() {
    let home = tempfile::tempdir().unwrap();
    let app = App::for_tests(home.path().to_owned());
    let here = "127.0.0.1:1".parse().unwrap();
    let limits = throughline_gateway::TokenLimits::default();
    let change = |act: &dyn Fn(&mut throughline_gateway::AccessTokens)| {
        crate::access_token_file::change(&app, |book| {
            act(book);
            Ok(())
        })
        .unwrap();
    };
    change(&|book| drop(book.add("ci", "ci", &[1; 32], 0, limits)));
    assert!(crate::access_token_file::remove(&app).is_err(), "there is one still");
    change(&|book| assert!(book.revoke("ci")));
    let access = access::at(here, &AccessTokenList::File(&app)).unwrap();
    assert!(matches!(&access, AccessPolicy::Tokens(book) if book.entries().is_empty()));
    assert!(access_words(&access, false).starts_with("none"));
    crate::access_token_file::remove(&app).unwrap();
    assert_eq!(access::at(here, &AccessTokenList::File(&app)).unwrap(), AccessPolicy::ThisMachine);
}
