//! Who may use the gateway: programs on this machine, or holders of tokens; with warnings about unencrypted addresses.

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

/// How often the list of tokens is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a list in a database counts that cannot be read any more: as long as a server takes to restart.
const TRUST_FOR: Duration = Duration::from_secs(60);

/// Who may use a gateway that listens here. What others can reach demands tokens; and where there are any, or were any
/// and nobody said that they are not wanted any more (`token off`), they are demanded of everybody.
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

/// Whether access tokens belong to more than one owner.
pub(super) fn owners(list: &AccessTokenList<'_>) -> Result<ClientOwners, CliError> {
    let book = list.read()?;
    let mut owners = book.entries().iter().map(|entry| &entry.owner);
    let first = owners.next();
    let is_several = owners.any(|owner| Some(owner) != first);
    Ok(if is_several { ClientOwners::Several } else { ClientOwners::One })
}

/// What the gateway speaks TLS with, if it shall.
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

/// Who collects traces, if anyone does.
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

/// Takes over changes of the list while the gateway runs: those of this machine, and on a database those made anywhere. It looks
/// once a second, and when a change is notified. Once
/// tokens were demanded they stay so: revoking the last one does not make the gateway open.
pub(super) async fn follow(
    (app, store): (Arc<App>, RecordStore),
    log: Arc<ServeLog>,
    gateway: Gateway,
    mut demanded: bool,
    changed: Arc<Notify>,
) {
    // The first look is always taken: the list may have changed since it was read.
    let mut known = None;
    let mut confirmed = Instant::now();
    let mut is_trusted = true;
    loop {
        // A notification is never relied on.
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

/// What a look at the list found.
enum ListLook {
    /// It is the one that is known.
    Unchanged,
    /// It is another one.
    List(TokenListStamp, AccessTokens),
    /// It is no list.
    Damaged(TokenListStamp),
    /// The database does not answer.
    OutOfReach,
}

/// Reads the list, if it is another one than that with this stamp.
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
