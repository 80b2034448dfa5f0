//! An S3 server for tests: one per test program, on its own port, with everything in memory. It stops when the test program ends in any
//! way: its keeper reads from a pipe that closes then.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Starts the server, prints its address, and stops it when its input is closed.
const KEEPER: &str = r#"
log=$(mktemp /tmp/throughline-s3-XXXXXX) || exit 1
"$0" -H 127.0.0.1 -p 0 </dev/null >"$log" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait; rm -f "$log"' EXIT
tries=0
until place=$(grep -o '127\.0\.0\.1:[0-9]*' "$log"); do
    tries=$((tries + 1))
    test $tries -lt 1200 && kill -0 "$pid" || exit 1
    sleep 0.05
done
echo "$place"
cat >/dev/null
"#;

/// The server reads the access key and checks no signature.
const UNCHECKED: &str = "AWS4-HMAC-SHA256 Credential=for-tests/20260101/us-east-1/s3/aws4_request, \
     SignedHeaders=host, Signature=none";

/// A server that runs as long as the test program.
#[derive(Debug)]
pub struct ObjectStorage {
    /// The address: host and port.
    place: String,
    /// The server runs as long as this process's input is open.
    _keeper: Child,
}

impl ObjectStorage {
    /// The server of this test program, started at the first call; `None` if it is not installed.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start.
    #[must_use]
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<ObjectStorage>> = OnceLock::new();
        SERVER.get_or_init(|| installed().map(|program| Self::start(&program))).as_ref()
    }

    #[expect(clippy::expect_used, reason = "a server that is installed and does not start is a failure")]
    fn start(program: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER]).arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().expect("a shell");
        let mut place = String::new();
        let output = keeper.stdout.take().expect("an output");
        BufReader::new(output).read_line(&mut place).expect("the address of the server");
        assert!(!place.trim().is_empty(), "{} did not start", program.display());
        Self { place: place.trim().to_owned(), _keeper: keeper }
    }

    /// Creates a bucket, unless it exists. Returns the address of a prefix in it, in the form of `store.artifacts`.
    ///
    /// # Panics
    ///
    /// If the bucket cannot be created.
    #[must_use]
    pub fn bucket(&self, bucket: &str, prefix: &str) -> String {
        let answer = self.request("PUT", &format!("/{bucket}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        self.address(bucket, prefix)
    }

    /// The address of a prefix in a bucket, which need not exist.
    #[must_use]
    pub fn address(&self, bucket: &str, prefix: &str) -> String {
        format!("s3://{bucket}/{prefix}?endpoint=http://{}&region=us-east-1", self.place)
    }

    /// Sends a request without a body and returns the server's response.
    ///
    /// # Panics
    ///
    /// If the server cannot be reached.
    #[expect(clippy::expect_used, reason = "the test cannot go on without it")]
    pub fn request(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.place).expect("the server");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\nauthorization: {UNCHECKED}\r\nconnection: close\r\n\r\n",
            self.place
        )
        .expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Credentials that the server accepts, as environment variables.
    #[must_use]
    pub fn credentials() -> [(String, String); 2] {
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name.to_owned(), "for-tests".to_owned()))
    }
}

fn installed() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/moto/bin/moto_server");
    program.exists().then_some(program)
}
