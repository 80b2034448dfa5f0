use super::*;

#[test]
fn only_addresses_of_this_machine_are_listened_on() {
    assert_eq!(address("127.0.0.1:8790").unwrap().port(), 8790);
    assert!(address("[::1]:0").is_ok());
    for bind in ["0.0.0.0:8790", "192.168.1.5:80", "8790", "127.0.0.1", "", "localhost:99999"] {
        assert_eq!(address(bind).unwrap_err().exit(), Exit::BadConfig, "{bind}");
    }
}

#[test]
fn every_client_is_told_where_the_gateway_is() {
    let at: SocketAddr = "127.0.0.1:9000".parse().unwrap();
    for client in KnownClient::value_variants() {
        assert!(client.how_to(at).contains("127.0.0.1:9000"), "{client:?}");
    }
}
