//! Host names that mean this machine.

use super::*;

#[test]
fn this_machine_is_distinguished_from_names_that_only_lead_here() {
    for host in ["localhost", "LocalHost:8790", "127.0.0.1:8790", "127.9.9.9", "[::1]:8790", "localhost."] {
        assert!(is_this_machine(host), "{host}");
    }
    for host in ["evil.example:8790", "127.0.0.1.evil.example", "0.0.0.0", "localhost.evil.example", "", "?"]
    {
        assert!(!is_this_machine(host), "{host}");
    }
    assert!(is_local_origin("http://localhost:3000"));
    for origin in ["null", "https://evil.example", "file://localhost", "http://localhost.evil.example"] {
        assert!(!is_local_origin(origin), "{origin}");
    }
}
