//! The access policy of the gateway: programs on this machine, or holders of tokens; with warnings about unencrypted addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throughline_config::Settings;
use throughline_gateway::{AccessPolicy, AccessTokens, Gateway, Tls, TlsError};
use throughline_models::ClientOwners;
use throughline_provider::BaseUrl;
use tokio::sync::Notify;

use crate::access_token_list::{AccessTokenList, TokenListStamp};
use crate::app::App;
use crate::error::{CliError, Exit, io_words};
use crate::record::RecordStore;
use crate::serve::log::ServeLog;

/// The interval of checks of the token list.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a list stays valid while the database cannot be read: the time a server takes to restart.
const TRUST_FOR: Duration = Duration::from_secs(60);

/// The access policy for an address. An address that others can reach requires tokens. If there are tokens, or all were revoked without
/// `token off`, everybody needs one.
pub(super) fn at(address: SocketAddr, list: &AccessTokenList<'_>) -> Result<AccessPolicy, CliError> {
    let book = list.read()?;
    match (book.entries().is_empty(), address.ip().is_loopback()) {
        (false, _) => Ok(AccessPolicy::Tokens(book)),
        // Revoking the last token must not open the gateway to everybody.
        (true, true) if list.exists()? => Ok(AccessPolicy::Tokens(book)),
        (true, true) => Ok(AccessPolicy::ThisMachine),
        (true, false) => Err(CliError::new(
            Exit::BadConfig,
            format!("the gateway does not listen on {address} without a token"),
        )
        .because("the address can be reached from other machines, and anyone could use it")
        .hint("create one with `throughline token new NAME`, or bind to a loopback address (127.0.0.1 or [::1])")),
    }
}

/// Whether the access tokens belong to more than one owner.
pub(super) fn owners(list: &AccessTokenList<'_>) -> Result<ClientOwners, CliError> {
    let book = list.read()?;
    let mut owners = book.entries().iter().map(|entry| &entry.owner);
    let first = owners.next();
    let is_several = owners.any(|owner| Some(owner) != first);
    Ok(if is_several { ClientOwners::Several } else { ClientOwners::One })
}

/// Loads the certificate for TLS, if one is configured.
pub(super) fn tls(settings: &Settings, app: &App) -> Result<Option<Tls>, CliError> {
    let gateway = &settings.gateway;
    let (certificate, key) = match (gateway.tls_cert.trim(), gateway.tls_key.trim()) {
        ("", "") => return Ok(None),
        ("", _) => return Err(unusable("tls_cert", "it is not set, but `gateway.tls_key` is".to_owned())),
        (_, "") => return Err(unusable("tls_key", "it is not set, but `gateway.tls_cert` is".to_owned())),
        files => files,
    };
    let read = |setting: &'static str, file: &str| {
        std::fs::read(app.home.join(file)).map_err(|error| unusable(setting, io_words(&error)))
    };
    let (certificate, key) = (read("tls_cert", certificate)?, read("tls_key", key)?);
    Tls::from_pem(&certificate, &key).map(Some).map_err(|error| {
        let setting = if matches!(error, TlsError::NoKey) { "tls_key" } else { "tls_cert" };
        unusable(setting, error.to_string())
    })
}

/// The address of the trace collector, if one is configured.
pub(super) fn collector(settings: &Settings) -> Result<Option<BaseUrl>, CliError> {
    let address = settings.gateway.traces_url.trim();
    if address.is_empty() {
        return Ok(None);
    }
    BaseUrl::parse(address).map(Some).map_err(|error| unusable("traces_url", error.to_string()))
}

fn unusable(setting: &str, why: String) -> CliError {
    CliError::new(Exit::BadConfig, format!("`gateway.{setting}` cannot be used")).because(why)
}

/// Applies changes of the token list while the gateway runs: those made on this machine, and in a database those made anywhere. Checks
/// once a second, and when a change is notified. Once tokens are required they stay required: revoking the last one does not open the
/// gateway.
pub(super) async fn follow(
    (app, store): (Arc<App>, RecordStore),
    log: Arc<ServeLog>,
    gateway: Gateway,
    mut demanded: bool,
    changed: Arc<Notify>,
) {
    // The first check always reads the list: it may have changed since the start.
    let mut known = None;
    let mut confirmed = Instant::now();
    let mut is_trusted = true;
    loop {
        // Notifications may be lost, so the list is also checked regularly.
        let _ = tokio::time::timeout(LOOK_EVERY, changed.notified()).await;
        let (look_app, look_store, look_known) = (Arc::clone(&app), store.clone(), known.clone());
        let looked = tokio::task::spawn_blocking(move || look(&look_app, &look_store, look_known)).await;
        match looked.unwrap_or(ListLook::OutOfReach) {
            ListLook::Unchanged => confirmed = Instant::now(),
            ListLook::List(stamp, book) => {
                (known, confirmed) = (Some(stamp), Instant::now());
                if !std::mem::replace(&mut is_trusted, true) {
                    log.note("the list of access tokens can be read again");
                }
                if book.entries().is_empty() && !demanded {
                    continue;
                }
                demanded = true;
                if book.entries().is_empty() {
                    log.warn("no access tokens are left: every request is refused until one is created");
                }
                gateway.set_access(AccessPolicy::Tokens(book));
            }
            ListLook::Damaged(stamp) => {
                (known, confirmed) = (Some(stamp), Instant::now());
                log.warn("the list of tokens cannot be read; the tokens loaded before stay valid");
            }
            ListLook::OutOfReach if demanded && is_trusted && confirmed.elapsed() >= TRUST_FOR => {
                (known, is_trusted) = (None, false);
                log.warn(&format!(
                    "the list of access tokens could not be read for {} seconds; requests are refused until it can be, because tokens may have been revoked",
                    TRUST_FOR.as_secs()
                ));
                gateway.set_access(AccessPolicy::Unconfirmed);
            }
            ListLook::OutOfReach => {}
        }
    }
}

/// The result of a check of the list.
enum ListLook {
    /// The list has not changed.
    Unchanged,
    /// The list has changed.
    List(TokenListStamp, AccessTokens),
    /// The text is not a list of tokens.
    Damaged(TokenListStamp),
    /// The database does not answer.
    OutOfReach,
}

/// Reads the list if its version differs from the known one.
fn look(app: &App, store: &RecordStore, known: Option<TokenListStamp>) -> ListLook {
    let list = AccessTokenList::with(app, store);
    let Ok(stamp) = list.stamp() else { return ListLook::OutOfReach };
    if known.as_ref() == Some(&stamp) {
        return ListLook::Unchanged;
    }
    match list.read() {
        Ok(book) => ListLook::List(stamp, book),
        Err(_) if store.in_file().is_some() => ListLook::Damaged(stamp),
        Err(_) => ListLook::OutOfReach,
    }
}
