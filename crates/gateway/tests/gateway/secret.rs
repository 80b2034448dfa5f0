//! TLS, over real connections.

use std::time::Duration;

use throughline_gateway::{Tls, TlsError};
use throughline_testkit::{Reply, Script};

use crate::stage::Stage;

#[tokio::test]
async fn a_client_that_trusts_the_certificate_is_served_and_plain_text_is_not() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
    let gateway = stage.gateway.as_ref().unwrap();
    gateway.set_tls(Some(Tls::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()));
    let url = stage.at("/healthz").replace("http://127.0.0.1", "https://localhost");
    throughline_provider::Client::install_crypto();
    let trusting = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap()])
        .build()
        .unwrap();
    assert_eq!(trusting.get(&url).send().await.unwrap().text().await.unwrap(), "ok\n");
    // Who does not know the certificate does not talk to it, and plain text is no answer.
    assert!(stage.http.get(&url).send().await.is_err());
    assert!(stage.http.get(stage.at("/healthz")).send().await.is_err());
    // Without it again, for connections that are made from then on.
    gateway.set_tls(None);
    assert_eq!(stage.http.get(stage.at("/healthz")).send().await.unwrap().status(), 200);
}

#[test]
fn what_is_no_certificate_is_reported() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    assert!(matches!(Tls::from_pem(b"nothing", key.as_bytes()), Err(TlsError::NoCertificate)));
    assert!(matches!(Tls::from_pem(certificate.as_bytes(), b""), Err(TlsError::NoKey)));
    let others_key = other.signing_key.serialize_pem();
    assert!(matches!(
        Tls::from_pem(certificate.as_bytes(), others_key.as_bytes()),
        Err(TlsError::Unusable(_))
    ));
}

#[tokio::test]
async fn a_stream_that_never_ends_does_not_keep_the_gateway_from_stopping() {
    let mut stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
    let mut events = stage.http.get(stage.at("/api/events")).send().await.unwrap();
    assert!(events.chunk().await.unwrap().is_some());
    let stopped = stage.stop();
    while events.chunk().await.unwrap().is_some() {}
    tokio::time::timeout(Duration::from_secs(30), stopped).await.unwrap().unwrap();
}
