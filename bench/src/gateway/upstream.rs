//! The upstream of the benchmark: it answers at once and always the same except for an id, or holds a stream open until it is released.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The text of every answer.
pub(crate) const ANSWER_TEXT: &str = "It is seven.";
/// An answer without its id, which must be unique: calls with the same id would be recorded as one.
const ANSWER: &str = "\"object\":\"chat.completion\",\"created\":1,\"model\":\"worker\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"It is seven.\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":4,\"total_tokens\":1004}}";
const FIRST_EVENT: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"worker\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"It is\"},\"finish_reason\":null}]}\n\n";
const LAST_EVENTS: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"worker\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" seven.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The number of answers so far.
static ANSWERS: AtomicU64 = AtomicU64::new(1);

/// A server on loopback that ends with the run.
pub(crate) struct Upstream {
    address: SocketAddr,
    held: Arc<watch::Sender<bool>>,
}

impl Upstream {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let held = Arc::new(watch::Sender::new(false));
        let of_server = Arc::clone(&held);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, of_server.subscribe()));
            }
        });
        Ok(Self { address, held })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes further streams stop after their first event.
    pub(crate) fn hold_streams(&self) {
        self.held.send_replace(true);
    }

    pub(crate) fn release_streams(&self) {
        self.held.send_replace(false);
    }
}

/// Answers on one connection until the client disconnects.
async fn serve(mut stream: TcpStream, mut held: watch::Receiver<bool>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = memchr::memmem::find(&read, b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        };
        let length = content_length(&read[..head]);
        while read.len() < head + length {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        let body = &read[head..head + length];
        let is_streamed = memchr::memmem::find(body, b"\"stream\":true").is_some()
            || memchr::memmem::find(body, b"\"stream\": true").is_some();
        if is_streamed {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(format!("{head}{}", chunk(FIRST_EVENT)).as_bytes()).await?;
            // Fails at the end of the run.
            let _ = held.wait_for(|held| !held).await;
            stream.write_all(format!("{}0\r\n\r\n", chunk(LAST_EVENTS)).as_bytes()).await?;
        } else {
            let answer =
                format!("{{\"id\":\"chatcmpl-{}\",{ANSWER}", ANSWERS.fetch_add(1, Ordering::Relaxed));
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            stream.write_all(format!("{head}{answer}").as_bytes()).await?;
        }
        read.drain(..head + length);
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let stated = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    stated.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
