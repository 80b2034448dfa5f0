//! The running gateways of this home directory: each has a file with its address, which `run` and `status` read.
//!
//! A gateway that `run` started stops when no run uses it any more. Every run holds a shared lock on a file while it runs; the gateway
//! stops when it gets the exclusive lock. The system releases the lock of a process that dies, so nothing has to be counted or cleaned
//! up.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throughline_store::{Holder, Millis};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::error::{CliError, Exit, io_words, path_words};
use crate::files::write_private;
use crate::home;
use crate::host::process::{is_alive, this_process};

/// The interval at which a gateway checks whether a run still uses it.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The timeout of a connection to it.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// A running gateway, as recorded in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningGateway {
    /// The base URL.
    pub(crate) url: String,
    /// The only upstream it uses, if it was started with one.
    pub(crate) upstream: Option<String>,
    /// The name of its lock, if it was started by `run`.
    pub(crate) for_runs: Option<String>,
    /// The start time.
    pub(crate) started_ms: Millis,
    pub(crate) host: String,
    pub(crate) process_id: u32,
    process_start: u64,
}

impl RunningGateway {
    /// Whether its process is still running.
    pub(crate) fn is_alive(&self) -> bool {
        is_alive(&Holder {
            host: self.host.clone(),
            process_id: self.process_id,
            process_start: self.process_start,
            what: String::new(),
        })
    }
}

impl RunningGateway {
    /// Whether it accepts connections.
    pub(crate) fn answers(&self) -> bool {
        let host = self.url.split_once("://").map_or(self.url.as_str(), |(_, host)| host);
        host.parse().is_ok_and(|address| TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_ok())
    }
}

/// The file of a running gateway; removed when this is dropped.
pub(crate) struct Registration {
    path: PathBuf,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A file that stays behind is recognised as that of a dead process.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The folder with the files of gateways.
pub(crate) fn folder(app: &App) -> PathBuf {
    app.home.join("gateways")
}

/// Creates the folder with the files of gateways.
pub(crate) fn make_folder(app: &App) -> Result<PathBuf, CliError> {
    home::make_private(app)?;
    let folder = folder(app);
    home::make_folder(&folder).map_err(|error| {
        CliError::new(Exit::OutputFailed, format!("cannot make the folder {}", path_words(&folder)))
            .because(io_words(&error))
    })?;
    Ok(folder)
}

/// Writes the file of this process's gateway.
pub(crate) fn register(
    app: &App,
    url: &str,
    upstream: Option<&str>,
    for_runs: Option<&str>,
) -> Result<Registration, CliError> {
    let process = this_process("gateway");
    let path = make_folder(app)?.join(format!("{}.json", process.process_id));
    let running = RunningGateway {
        url: url.to_owned(),
        upstream: upstream.map(str::to_owned),
        for_runs: for_runs.map(str::to_owned),
        started_ms: app.now().ms,
        host: process.host,
        process_id: process.process_id,
        process_start: process.process_start,
    };
    let text = serde_json::to_string(&running).map_err(|error| {
        CliError::new(Exit::Internal, "cannot write the file of the gateway").because(error.to_string())
    })?;
    write_private(&path, text.as_bytes())?;
    Ok(Registration { path })
}

/// Returns the running gateways, the newest first. Removes the files of dead processes.
pub(crate) fn running(app: &App) -> Vec<RunningGateway> {
    let entries = std::fs::read_dir(folder(app)).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"))
    {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        match serde_json::from_str::<RunningGateway>(&text) {
            Ok(gateway) if gateway.is_alive() => found.push(gateway),
            Ok(_) => drop(std::fs::remove_file(&path)),
            // A file of another version, or one that is being replaced.
            Err(_) => {}
        }
    }
    found.sort_by_key(|gateway| std::cmp::Reverse((gateway.started_ms, gateway.process_id)));
    found
}

/// Opens the lock file that the runs of a gateway share.
pub(crate) fn use_lock(folder: &Path, name: &str) -> std::io::Result<File> {
    home::lock_file(&folder.join(format!("{name}.lock")))
}

/// Stops a gateway that `run` started once no run uses it. `stop` is cancelled while this process alone holds the lock, after the
/// gateway's file was removed, so that a run waiting for the lock starts a new gateway.
pub(crate) async fn stop_when_unused(
    folder: PathBuf,
    name: String,
    registration: Registration,
    stop: CancellationToken,
) {
    let Ok(lock) = use_lock(&folder, &name) else { return };
    while lock.try_lock().is_err() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    drop(registration);
    stop.cancel();
}

#[cfg(test)]
mod tests {
    //! Files of gateways that run, that died, and that cannot be read.

    use super::*;

    fn app() -> (tempfile::TempDir, App) {
        let home = tempfile::tempdir().unwrap();
        let app = App::for_tests(home.path().join("home"));
        (home, app)
    }

    #[test]
    fn a_gateway_is_found_for_as_long_as_it_is_registered() {
        let (_home, app) = app();
        assert_eq!(running(&app), []);
        let registration = register(&app, "http://127.0.0.1:1", Some("http://up"), None).unwrap();
        let found = running(&app);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].url.as_str(), found[0].upstream.as_deref()),
            ("http://127.0.0.1:1", Some("http://up"))
        );
        drop(registration);
        assert_eq!(running(&app), []);
    }

    #[test]
    fn files_of_dead_gateways_are_removed_and_others_left() {
        let (_home, app) = app();
        let registration = register(&app, "http://127.0.0.1:1", None, Some("default")).unwrap();
        let mut dead = running(&app).remove(0);
        dead.process_start = 1;
        let (dead_file, other) = (folder(&app).join("1.json"), folder(&app).join("2.json"));
        std::fs::write(&dead_file, serde_json::to_string(&dead).unwrap()).unwrap();
        std::fs::write(&other, "{").unwrap();
        assert_eq!(running(&app).len(), 1);
        assert!(!dead_file.exists() && other.exists());
        drop(registration);
    }

    #[tokio::test]
    async fn a_gateway_stops_when_the_last_run_ends() {
        let (_home, app) = app();
        let folder = make_folder(&app).unwrap();
        let (first, second) = (use_lock(&folder, "default").unwrap(), use_lock(&folder, "default").unwrap());
        first.lock_shared().unwrap();
        second.lock_shared().unwrap();
        let registration = register(&app, "http://127.0.0.1:1", None, Some("default")).unwrap();
        let stop = CancellationToken::new();
        let waiting =
            tokio::spawn(stop_when_unused(folder, "default".to_owned(), registration, stop.clone()));
        drop(first);
        tokio::task::yield_now().await;
        assert!(!stop.is_cancelled());
        assert_eq!(running(&app).len(), 1);
        drop(second);
        waiting.await.unwrap();
        assert!(stop.is_cancelled());
        assert_eq!(running(&app), []);
    }
}
