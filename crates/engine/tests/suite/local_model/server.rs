//! The server with the model, started for a test and stopped with it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throughline_provider::{Client, ClientOptions, Endpoint, EndpointSettings, RetryLimits, TimeLimits};
use throughline_testkit::{Missing, skip};
use throughline_transcript::WireFormat;

/// A model that is being served.
pub(crate) struct Served {
    process: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where `.ci/local-model` puts python, the server and the model.
fn installed() -> Option<PathBuf> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/local-model");
    let complete = ["bin/python", "serve.py", "model.gguf"].iter().all(|name| place.join(name).exists());
    complete.then_some(place)
}

impl Served {
    /// Starts it with a window; `None`, with a message, where no model is installed.
    pub(crate) async fn start(window_tokens: u64) -> Option<Self> {
        let Some(place) = installed() else {
            skip(&Missing::Program { name: "local model", installed_by: ".ci/local-model" });
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(place.join("bin/python"))
            .arg(place.join("serve.py"))
            .args(["--model", place.join("model.gguf").to_str().unwrap()])
            .args(["--port", &port.to_string(), "--ctx", &window_tokens.to_string()])
            // The server ends with its input, so that it does not outlive a test that is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let served = Self { process, url: format!("http://127.0.0.1:{port}/v1") };
        let (client, endpoint) = (client(), served.endpoint(WireFormat::Chat));
        for _ in 0..600 {
            // It says how large its window is once the model is loaded.
            if let Some(window) = client.ask_window(&endpoint, "local").await {
                assert_eq!(window.tokens, window_tokens);
                return Some(served);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("the local model was not ready within two minutes");
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn endpoint(&self, wire_format: WireFormat) -> Endpoint {
        let settings = EndpointSettings {
            prefix: "model",
            provider: "llama.cpp",
            base_url: self.url(),
            wire: Some(wire_format),
            api_key: "",
            api_key_env: "",
            headers: &[],
            model: "local",
        };
        Endpoint::resolve(&settings, |_| None).unwrap()
    }
}

/// A client that tries once and is patient.
pub(crate) fn client() -> Client {
    let retries = RetryLimits::ONCE;
    Client::new(ClientOptions { limits: TimeLimits::LOCAL, retries, proxy: None, jitter_seed: 1 }).unwrap()
}
