//! Receives at once what other gateways changed: `LISTEN` on a connection of its own, which goes to the server itself.
//!
//! A notification only says that something changed; the change itself is read from the tables. Polling makes up for a lost
//! notification, and after each new connection everything is read once. A pooler in transaction mode delivers no
//! notifications: one that is sent from a second connection shows whether this connection receives any.

use std::future::poll_fn;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, NoTls, Socket};

use crate::fleet::{FleetChange, FleetListener};

use super::address::ServerAddress;
use super::error::words;
use super::tls;

/// The channel on which gateways tell of changes.
pub(super) const CHANNEL: &str = "throughline";
/// Notifications of changes.
pub(super) const EVENTS: &str = "events";
pub(super) const TEXTS: &str = "texts";
/// A notification with which a gateway checks whether it hears begins like this.
const ECHO: &str = "echo ";

/// How long a connection may take, and an answer on it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is checked whether an idle connection still hears.
const ECHO_EVERY: Duration = Duration::from_secs(20);
/// Waits between attempts to connect.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Listens until the task is given up.
pub(super) async fn follow(address: ServerAddress, listener: FleetListener) {
    let mut wait = FIRST_WAIT;
    loop {
        let mut was_heard = false;
        let problem = match address.wants_tls() {
            false => hear(&address, NoTls, &listener, &mut was_heard).await,
            true => match tls::connector(&address) {
                Ok(connector) => hear(&address, connector, &listener, &mut was_heard).await,
                Err(error) => error.to_string(),
            },
        };
        listener(FleetChange::Disconnected { problem });
        if was_heard {
            wait = FIRST_WAIT;
        }
        sleep(wait).await;
        wait = wait.saturating_mul(2).min(LONGEST_WAIT);
    }
}

/// Listens on one connection until it is over, and says why it is.
async fn hear<T>(
    address: &ServerAddress,
    connector: T,
    listener: &FleetListener,
    was_heard: &mut bool,
) -> String
where
    T: MakeTlsConnect<Socket> + Clone,
    T::Stream: Send + 'static,
{
    match try_to_hear(address, connector, listener, was_heard).await {
        Ok(problem) | Err(problem) => problem,
    }
}

/// An error says that nothing was or is heard; the text of a success, why the connection ended.
async fn try_to_hear<T>(
    address: &ServerAddress,
    connector: T,
    listener: &FleetListener,
    was_heard: &mut bool,
) -> Result<String, String>
where
    T: MakeTlsConnect<Socket> + Clone,
    T::Stream: Send + 'static,
{
    let echo = Arc::<Notify>::default();
    let token = format!("{ECHO}{:016x}", RandomState::new().build_hasher().finish());
    let heard = {
        let (echo, token, listener) = (Arc::clone(&echo), token.clone(), Arc::clone(listener));
        move |payload: &str| match payload {
            EVENTS => listener(FleetChange::Events),
            TEXTS => listener(FleetChange::Texts),
            own if own == token => echo.notify_one(),
            _ => {}
        }
    };
    let (client, mut reading) = connect(address, connector.clone(), heard).await?;
    say(&client, &format!("LISTEN {CHANNEL}")).await?;
    let notify = format!("NOTIFY {CHANNEL}, '{token}'");
    // From another connection: a pooler may give two transactions of one client the same connection by chance.
    let (second, _second_reading) = connect(address, connector, |_: &str| {}).await?;
    say(&second, &notify).await?;
    if timeout(ANSWER_TIMEOUT, echo.notified()).await.is_err() {
        return Err(
            "no notification arrives: it must lead to the server itself, not through a pooler".to_owned()
        );
    }
    drop(second);
    *was_heard = true;
    listener(FleetChange::Connected);
    loop {
        if let Ok(ended) = timeout(ECHO_EVERY, &mut reading.0).await {
            return Ok(ended.unwrap_or_else(|error| error.to_string()));
        }
        say(&client, &notify).await?;
        if timeout(ANSWER_TIMEOUT, echo.notified()).await.is_err() {
            return Err("no notification arrives any more".to_owned());
        }
    }
}

/// Reads what a server sends until the connection is over, and says why it is. Given up when dropped.
struct Reading(JoinHandle<String>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect<T>(
    address: &ServerAddress,
    connector: T,
    heard: impl Fn(&str) + Send + 'static,
) -> Result<(Client, Reading), String>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let connecting = timeout(ANSWER_TIMEOUT, address.config.connect(connector)).await;
    let (client, mut connection) =
        connecting.map_err(|_| "the server does not answer".to_owned())?.map_err(|error| words(&error))?;
    let reading = tokio::spawn(async move {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(notification))) => heard(notification.payload()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return words(&error),
                None => return "the server closed the connection".to_owned(),
            }
        }
    });
    Ok((client, Reading(reading)))
}

async fn say(client: &Client, sql: &str) -> Result<(), String> {
    let done = timeout(ANSWER_TIMEOUT, client.batch_execute(sql)).await;
    done.map_err(|_| "the server does not answer".to_owned())?.map_err(|error| words(&error))
}
