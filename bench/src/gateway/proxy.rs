//! The proxies: the gateway as a user starts it, and LiteLLM's and Headroom's proxies.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The timeout of a proxy's start.
const START_TIME: Duration = Duration::from_secs(90);

/// A process with its own folder; both are removed when this is dropped.
pub(super) struct Proxy {
    process: Child,
    folder: tempfile::TempDir,
    program: PathBuf,
    address: SocketAddr,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Proxy {
    pub(super) async fn throughline(program: &Path, upstream: SocketAddr) -> Result<Self, String> {
        let config = "model:\n  default: worker\n  context_length: 4000000\n";
        Self::throughline_with(program, upstream, config).await
    }

    pub(super) async fn throughline_with(
        program: &Path,
        upstream: SocketAddr,
        config: &str,
    ) -> Result<Self, String> {
        let address = free_address()?;
        let start = |folder: &Path| {
            let mut command = Command::new(program);
            command
                .args(["serve", "--bind", &address.to_string(), "--upstream", &format!("http://{upstream}")])
                .env_clear()
                .env("THROUGHLINE_HOME", folder)
                .env("HOME", folder);
            command
        };
        Self::start(program, address, config, start).await
    }

    pub(super) async fn litellm(program: &Path, upstream: SocketAddr) -> Result<Self, String> {
        let config = format!(
            "model_list:\n  - model_name: worker\n    litellm_params:\n      model: openai/worker\n      api_base: http://{upstream}/v1\n      api_key: sk-bench\n"
        );
        let address = free_address()?;
        let start = |folder: &Path| {
            let mut command = Command::new(program);
            command
                .args(["--host", "127.0.0.1", "--port", &address.port().to_string(), "--config"])
                .arg(folder.join("config.yaml"))
                .env("HOME", folder)
                // It serves this run alone, on loopback, without authentication.
                .env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true");
            command
        };
        Self::start(program, address, &config, start).await
    }

    /// Starts Headroom's proxy with its defaults, in front of an upstream with Anthropic's wire format. Without a vocabulary for its
    /// tokenizer, which it would download, it compresses nothing: `TIKTOKEN_CACHE_DIR` names a folder with one.
    #[expect(clippy::disallowed_methods, reason = "the folder of the vocabulary is the user's to name")]
    pub(super) async fn headroom(program: &Path, upstream: SocketAddr) -> Result<Self, String> {
        let address = free_address()?;
        let vocabulary = std::env::var_os("TIKTOKEN_CACHE_DIR");
        let start = |folder: &Path| {
            let mut command = Command::new(program);
            command
                .args(["proxy", "--host", "127.0.0.1", "--port", &address.port().to_string()])
                .args(["--anthropic-api-url", &format!("http://{upstream}"), "--no-rate-limit"])
                .env("HOME", folder)
                // It must reach nothing but the upstream.
                .env("HEADROOM_BEACON", "off")
                .env("HF_HUB_OFFLINE", "1");
            if let Some(vocabulary) = &vocabulary {
                command.env("TIKTOKEN_CACHE_DIR", vocabulary);
            }
            command
        };
        Self::start(program, address, "", start).await
    }

    async fn start(
        program: &Path,
        address: SocketAddr,
        config: &str,
        command: impl FnOnce(&Path) -> Command,
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(told)?;
        std::fs::write(folder.path().join("config.yaml"), config).map_err(told)?;
        let screen = File::create(folder.path().join("screen")).map_err(told)?;
        let process = command(folder.path())
            .stdin(Stdio::null())
            .stdout(screen.try_clone().map_err(told)?)
            .stderr(screen)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let proxy = Self { process, folder, program: program.to_owned(), address };
        let began = Instant::now();
        while tokio::net::TcpStream::connect(address).await.is_err() {
            if began.elapsed() > START_TIME {
                let screen = std::fs::read_to_string(proxy.folder.path().join("screen")).map_err(told)?;
                return Err(format!("{} did not start: {screen}", program.display()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(proxy)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn resident_megabytes(&self) -> Result<f64, String> {
        self.memory("VmRSS:")
    }

    pub(super) fn most_resident_megabytes(&self) -> Result<f64, String> {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> Result<f64, String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).map_err(told)?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kilobytes.ok_or("the system does not say how much memory it takes")? / 1_024.0)
    }

    /// The number of the open streams' conversations in the record.
    pub(super) fn recorded_conversations(&self) -> Result<usize, String> {
        let output = Command::new(&self.program)
            .args(["sessions", "list", "--json", "--limit", "100000"])
            .env_clear()
            .env("THROUGHLINE_HOME", self.folder.path())
            .env("HOME", self.folder.path())
            .output()
            .map_err(told)?;
        let listed: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(told)?;
        Ok(listed["sessions"].as_array().map_or(0, Vec::len))
    }
}

fn free_address() -> Result<SocketAddr, String> {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).map_err(told)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
