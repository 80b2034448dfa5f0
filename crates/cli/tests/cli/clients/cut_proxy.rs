//! A TCP proxy before the socket of a database server, which cuts connections on request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Open = Arc<Mutex<Vec<(TcpStream, UnixStream)>>>;

/// A proxy that runs as long as the test program.
pub(crate) struct CutProxy {
    address: SocketAddr,
    open: Open,
    socket: Arc<Mutex<PathBuf>>,
}

impl CutProxy {
    /// A proxy before this socket.
    pub(crate) fn before(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = Open::default();
        let place = Arc::new(Mutex::new(socket.to_owned()));
        let (all, socket) = (Arc::clone(&open), Arc::clone(&place));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (all, socket): (Open, PathBuf) = (Arc::clone(&all), socket.lock().unwrap().clone());
                std::thread::spawn(move || {
                    // A server that is away: the client's connection closes at once.
                    let Ok(server) = UnixStream::connect(&socket) else { return };
                    let (from, into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    all.lock().unwrap().push((client.try_clone().unwrap(), server.try_clone().unwrap()));
                    let up = std::thread::spawn(move || pass(from, into));
                    pass(server.try_clone().unwrap(), client.try_clone().unwrap());
                    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
                    let _ = up.join();
                });
            }
        });
        Self { address, open, socket: place }
    }

    /// Has new connections reach another server.
    pub(crate) fn move_to(&self, socket: &Path) {
        socket.clone_into(&mut self.socket.lock().unwrap());
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Cuts every connection that is open now; how many there were.
    pub(crate) fn cut(&self) -> usize {
        let all = std::mem::take(&mut *self.open.lock().unwrap());
        for (client, server) in &all {
            let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
        }
        all.len()
    }
}

/// Copies bytes until either side ends.
fn pass(mut from: impl Read, mut into: impl Write) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || into.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}
