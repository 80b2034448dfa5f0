//! Secrets in text: found and masked by code.
