//! The address of a server: what is connected to, and what people read of it, which never contains a password.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::{Result, StoreError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After so long without an answer to what was sent, a connection counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A server and a database on it.
#[derive(Clone, Debug)]
pub(super) struct ServerAddress {
    pub(super) config: Config,
    /// For people: without user name's password and without options.
    pub(super) shown: String,
    pub(super) role: String,
    /// A file with certificates of authorities that are trusted beside those of the machine.
    pub(super) root_certificates: Option<String>,
}

impl ServerAddress {
    /// Reads an address: `postgres://user@host/database?sslmode=require`, with several hosts where there are several.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let refused = |problem: String| StoreError::BadAddress { problem };
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        // The crate of the field knows fewer words for what it does: with certificates it always checks names too.
        let mut root_certificates = None;
        let mut kept = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match (name.as_ref(), value.as_ref()) {
                ("sslrootcert", file) => root_certificates = Some(file.to_owned()),
                ("sslmode", "verify-full" | "verify-ca") => kept.push("sslmode=require".to_owned()),
                (name, value) => {
                    let mut pair = url::form_urlencoded::Serializer::new(String::new());
                    pair.append_pair(name, value);
                    kept.push(pair.finish().replace('+', "%20"));
                }
            }
        }
        let plain = if kept.is_empty() { rest.to_owned() } else { format!("{rest}?{}", kept.join("&")) };
        let mut config: Config = plain.parse().map_err(|error: tokio_postgres::Error| {
            // The cause names the option that is wrong, never a value of another one.
            refused(std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        if config.get_hosts().is_empty() {
            return Err(refused("it names no host".to_owned()));
        }
        if config.get_user().is_none() {
            return Err(refused("it names no user: write postgres://USER@HOST/DATABASE".to_owned()));
        }
        config.application_name("throughline");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(ANSWER_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE);
        let role = config.get_user().unwrap_or_default().to_owned();
        let shown = shown(&config);
        Ok(Self { config, shown, role, root_certificates })
    }

    /// Whether the connection is to be encrypted, or may be.
    pub(super) fn wants_tls(&self) -> bool {
        let is_remote = |host: &Host| matches!(host, Host::Tcp(_));
        self.config.get_ssl_mode() != SslMode::Disable && self.config.get_hosts().iter().any(is_remote)
    }
}

/// The hosts and the database.
fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            };
            match ports.get(at).or_else(|| ports.first()) {
                Some(port) if *port != 5432 => format!("{host}:{port}"),
                _ => host,
            }
        })
        .collect();
    let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        let cases = [
            ("postgres://ann:s3cret@db/record", "postgres://db/record"),
            (
                "postgresql://ann:s3cret@a:5433,b:5434/record?target_session_attrs=read-write",
                "postgres://a:5433,b:5434/record",
            ),
            ("postgres://ann:s3cret@%2Frun%2Fpg/record?sslmode=verify-full", "postgres:///run/pg/record"),
            ("postgres://ann@db", "postgres://db/ann"),
        ];
        for (url, shown) in cases {
            assert_eq!(ServerAddress::parse(url).unwrap().shown, shown);
        }
    }

    #[test]
    fn bad_addresses_are_refused_without_their_password() {
        for url in [
            "postgres://ann:s3cret@db/record?sslmode=sometimes",
            "postgres://ann:s3cret@db:port/record",
            "postgres://ann:s3cret@db/record?colour=s3cret",
            "mysql://ann:s3cret@db/record",
            "postgres:///record",
            "postgres://db/record",
        ] {
            let error = ServerAddress::parse(url).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
