//! Encrypted connections: certificates and names are checked, and what is wrong is said without the password.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use throughline_store::{PostgresStore, StoreError};
use throughline_testkit::{Missing, PostgresServer, skip};

use crate::contract::support::{messages, open, say};

const PASSWORD: &str = "s3cret";

/// A certificate authority of its own, whose certificate is written to a file.
fn authority(file: &Path) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(file, authority.pem()).unwrap();
    authority
}

/// Two addresses of this machine that no other test program listens at.
fn hosts() -> [String; 2] {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    [64, 128].map(|first| format!("127.{}.{middle}.{low}", first + high % 64))
}

fn refusal(url: &str) -> String {
    let error = PostgresStore::open(url, 1).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. } | StoreError::BadAddress { .. }), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(!text.contains(PASSWORD), "{text}");
    error.to_string()
}

#[test]
fn connections_are_encrypted_and_certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (right, wrong) = (file("right.pem"), file("wrong.pem"));
    let issuer = authority(&right);
    authority(&wrong);
    let [host, unnamed] = hosts();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![host.clone()]).unwrap().signed_by(&key, &issuer).unwrap();
    let listens = format!("{host},{unnamed}");
    let Some(server) = PostgresServer::with_certificate(&listens, &certificate.pem(), &key.serialize_pem())
    else {
        return skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
    };
    let address = server.empty_database();
    let database = address.rsplit('/').next().unwrap();
    server.run("postgres", &format!("ALTER ROLE postgres PASSWORD '{PASSWORD}'"));
    let url = |host: &str, mode: &str, roots: &Path| {
        let roots = roots.display();
        format!("postgres://postgres:{PASSWORD}@{host}/{database}?sslmode={mode}&sslrootcert={roots}")
    };
    for (mode, name) in [("require", "a"), ("verify-full", "b")] {
        let store = PostgresStore::open(&url(&host, mode, &right), 1).unwrap();
        open(&store, name);
        say(&store, name, &["over an encrypted connection"]);
        assert_eq!(messages(&store, name), ["over an encrypted connection"]);
        let encrypted = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                         WHERE a.application_name = 'throughline'";
        assert_eq!(server.run(database, encrypted), "t");
    }
    for mode in ["require", "verify-full"] {
        let problem = refusal(&url(&host, mode, &wrong));
        assert!(problem.contains("certificate") && problem.contains(&host), "{problem}");
        // The same server at an address that is not in its certificate.
        let problem = refusal(&url(&unnamed, mode, &right));
        assert!(problem.contains("certificate") && problem.contains(&unnamed), "{problem}");
    }
    let problem = refusal(&url(&host, "disable", &right));
    assert!(problem.contains("no encryption"), "{problem}");
    let problem = refusal(&url(&host, "require", &file("missing.pem")));
    assert!(problem.contains("missing.pem"), "{problem}");
}
