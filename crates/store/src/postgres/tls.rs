//! Encrypted connections: certificates are checked against the authorities the machine trusts, or those of a file.

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Result, StoreError};

use super::address::ServerAddress;

/// What makes connections to an address encrypted.
pub(super) fn connector(address: &ServerAddress) -> Result<MakeRustlsConnect> {
    // Another thread may have set it; it is the same value.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let refused = |problem: String| StoreError::BadAddress { problem };
    let config = match &address.root_certificates {
        None => ClientConfig::with_platform_verifier()
            .map_err(|error| refused(format!("the certificates of this machine cannot be read: {error}")))?,
        Some(file) => {
            let unreadable =
                |error: &dyn std::fmt::Display| refused(format!("the certificates in {file}: {error}"));
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                roots.add(certificate).map_err(|error| unreadable(&error))?;
            }
            if roots.is_empty() {
                return Err(unreadable(&"there are none"));
            }
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}
