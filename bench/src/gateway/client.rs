//! A minimal HTTP connection that sends requests and reads responses.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection to the server.
pub(crate) struct Client {
    stream: TcpStream,
    host: SocketAddr,
    path: &'static str,
    read: Vec<u8>,
}

/// The length of a body.
enum Length {
    Bytes(usize),
    Chunked,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::connect_at(address, "/v1/chat/completions").await
    }

    /// Connects for requests to another path.
    pub(crate) async fn connect_at(address: SocketAddr, path: &'static str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: address, path, read: Vec::new() })
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn ask(&mut self, body: &str) -> io::Result<Vec<u8>> {
        self.begin(body).await?;
        self.finish().await
    }

    /// Sends a request and reads the head of the response.
    pub(crate) async fn begin(&mut self, body: &str) -> io::Result<()> {
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nauthorization: Bearer sk-bench\r\ncontent-length: {}\r\n\r\n",
            self.path,
            self.host,
            body.len()
        );
        let mut request = Vec::with_capacity(head.len() + body.len());
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(body.as_bytes());
        self.stream.write_all(&request).await?;
        self.read.clear();
        while end_of_head(&self.read).is_none() {
            self.read_more().await?;
        }
        if self.read.starts_with(b"HTTP/1.1 200") {
            return Ok(());
        }
        Err(io::Error::other(String::from_utf8_lossy(&self.read).into_owned()))
    }

    /// Reads the rest of the response and returns its body.
    pub(crate) async fn finish(&mut self) -> io::Result<Vec<u8>> {
        let start = end_of_head(&self.read).unwrap_or_default();
        let length = length(&self.read[..start]);
        loop {
            let body = &self.read[start..];
            match length {
                Length::Bytes(bytes) if body.len() >= bytes => return Ok(body[..bytes].to_vec()),
                Length::Chunked if body.ends_with(b"0\r\n\r\n") => return Ok(unchunked(body)),
                _ => self.read_more().await?,
            }
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

fn end_of_head(read: &[u8]) -> Option<usize> {
    Some(memchr::memmem::find(read, b"\r\n\r\n")? + 4)
}

fn length(head: &[u8]) -> Length {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let stated = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    stated.and_then(|value| value.trim().parse().ok()).map_or(Length::Chunked, Length::Bytes)
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = memchr::memmem::find(body, b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok()).unwrap_or(0);
        let Some(chunk) = body.get(end + 2..end + 2 + size).filter(|chunk| !chunk.is_empty()) else { break };
        whole.extend_from_slice(chunk);
        body = body.get(end + 4 + size..).unwrap_or_default();
    }
    whole
}
