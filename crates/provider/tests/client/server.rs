//! A tiny HTTP server that plays what it was given: one script a request, byte for byte.

use std::sync::{Arc, Mutex};

use throughline_provider::{Client, ClientOptions, Endpoint, EndpointSettings, RetryLimits, TimeLimits};
use throughline_transcript::WireFormat;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What the server does next.
pub(crate) enum Act {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes one at a time.
    Drip(Vec<u8>),
    /// Waits until the test lets it go on.
    Wait,
    /// Says nothing until the other side hangs up.
    Stall,
    /// Breaks the connection without a farewell.
    Reset,
}

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// Method and path.
    pub(crate) line: String,
    /// Headers, names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A server that is listening.
pub(crate) struct Server {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    signals: Signals,
}

/// What the server and the test tell each other.
#[derive(Clone)]
struct Signals {
    hung_up: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

impl Server {
    /// Plays the first script to the first request, and so on; a call beyond the last one gets an error 599.
    pub(crate) async fn playing(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let signals = Signals { hung_up: Arc::new(Semaphore::new(0)), go_on: Arc::new(Semaphore::new(0)) };
        let server = Self { port, received: Arc::clone(&received), signals: signals.clone() };
        tokio::spawn(async move {
            let mut scripts = scripts.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                let script = scripts.next().unwrap_or_else(|| vec![Act::Send(json(599, "{}"))]);
                tokio::spawn(serve(stream, script, Arc::clone(&received), signals.clone()));
            }
        });
        server
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until somebody who was kept waiting has hung up.
    pub(crate) async fn until_hung_up(&self) {
        self.signals.hung_up.acquire().await.unwrap().forget();
    }

    /// Lets one script that waits go on.
    pub(crate) fn go_on(&self) {
        self.signals.go_on.add_permits(1);
    }

    pub(crate) fn endpoint(&self, wire: WireFormat) -> Endpoint {
        self.endpoint_of("custom", Some(wire))
    }

    pub(crate) fn endpoint_of(&self, provider: &str, wire: Option<WireFormat>) -> Endpoint {
        endpoint(provider, &self.address(), wire)
    }
}

pub(crate) fn endpoint(provider: &str, base_url: &str, wire: Option<WireFormat>) -> Endpoint {
    let headers = [("x-title".to_owned(), "tests".to_owned())];
    let settings = EndpointSettings {
        prefix: "model",
        provider,
        base_url,
        wire,
        api_key: "sk-secret-1",
        api_key_env: "",
        headers: &headers,
        model: "",
    };
    Endpoint::resolve(&settings, |_| None).unwrap()
}

async fn serve(
    mut stream: TcpStream,
    script: Vec<Act>,
    received: Arc<Mutex<Vec<Received>>>,
    signals: Signals,
) {
    let Some(request) = read_request(&mut stream).await else { return };
    received.lock().unwrap().push(request);
    for act in script {
        match act {
            Act::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            Act::Drip(bytes) => {
                for byte in bytes {
                    let _ = stream.write_all(&[byte]).await;
                    let _ = stream.flush().await;
                    tokio::task::yield_now().await;
                }
            }
            Act::Wait => signals.go_on.acquire().await.unwrap().forget(),
            Act::Stall => {
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {}
                signals.hung_up.add_permits(1);
                return;
            }
            Act::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
        }
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { line, headers, body: String::from_utf8(body).ok()? })
}

/// An answer with a body of a known length.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}\r\n{body}").into_bytes()
}

pub(crate) fn json(status: u16, body: &str) -> Vec<u8> {
    answer(status, &[("content-type", "application/json")], body)
}

/// The head of a stream, which ends when the connection does.
pub(crate) fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n".to_vec()
}

/// A client for tests: limits that no test reaches unless it means to, and hardly any waits.
pub(crate) fn client() -> Client {
    client_with(TimeLimits::REMOTE)
}

pub(crate) fn client_with(limits: TimeLimits) -> Client {
    let retries = RetryLimits {
        attempts: 3,
        attempts_after_timeout: 2,
        first_wait: std::time::Duration::from_millis(1),
        longest_wait: std::time::Duration::from_millis(50),
    };
    Client::new(ClientOptions { limits, retries, proxy: None, jitter_seed: 7 }).unwrap()
}
