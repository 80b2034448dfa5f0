//! A PostgreSQL server for tests: one per test program, in its own folder, on a socket only, without fsync. It is stopped and removed
//! when the test program ends in any way: the server's keeper reads from a pipe that closes then. Servers made from another one are in
//! `replicas`.

mod replicas;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::skip::{Missing, skip};

/// The folder in which Debian installs the versions; the newest one is used.
const FOLDER: &str = "/usr/lib/postgresql";
const OLDEST_VERSION: u32 = 13;
/// The user that Debian's package creates. A server refuses to run as root.
const USER: &str = "postgres";

/// The script of a keeper: creates a folder, runs `prepare` to fill `data` in it, starts a server there, prints the folder, and stops the
/// server when its input is closed.
fn keeper(prepare: &str) -> String {
    format!(
        r#"
dir=$(mktemp -d /tmp/throughline-pg-XXXXXX) || exit 1
trap '"$0/pg_ctl" stop -s -m immediate -D "$dir/data" >/dev/null 2>&1; wait; rm -rf "$dir"' EXIT
mkdir "$dir/archive" || exit 1
{{
{prepare}
}} >"$dir/prepared.log" 2>&1 || exit 1
"$0/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= \
    -c max_connections=300 ${{PG_SETTINGS:--c fsync=off -c full_page_writes=off -c shared_buffers=64MB -c autovacuum=off}} -c log_line_prefix='%d ' </dev/null >"$dir/server.log" 2>&1 &
pid=$!
tries=0
until "$0/pg_isready" -q -h "$dir"; do
    tries=$((tries + 1))
    test $tries -lt 1200 && kill -0 "$pid" || exit 1
    sleep 0.05
done
echo "$dir"
cat >/dev/null
"#
    )
}

/// Creates the data of a new server.
const NEW: &str = r#""$0/initdb" -N -A trust -U postgres -E UTF8 --no-locale -D "$dir/data""#;

/// The settings of a server for measurements: it syncs to disk and vacuums, with the memory of a small server.
const MEASURED: &str = "-c shared_buffers=1GB -c max_wal_size=4GB";

/// Starts a pooler for a server, which gives every transaction another one of a few connections, and stops it the same way.
const POOLER: &str = r#"
cat >"$0/pgbouncer.ini" <<END
[databases]
* = host=$0 user=postgres
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = $0
auth_type = any
pool_mode = transaction
default_pool_size = 3
END
pgbouncer -q "$0/pgbouncer.ini" </dev/null >"$0/pgbouncer.log" 2>&1 &
pid=$!
trap 'kill -INT "$pid" 2>/dev/null; wait' EXIT
until test -S "$0/.s.PGSQL.6432"; do kill -0 "$pid" || exit 1; sleep 0.05; done
echo "$0"
cat >/dev/null
"#;

/// A server that runs as long as the test program.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: String,
    made: AtomicU32,
    template: OnceLock<String>,
    pooler: OnceLock<Option<Child>>,
    /// The server runs as long as this process's input is open.
    _keeper: Child,
}

impl PostgresServer {
    /// The server of this test program, started at the first call; `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is installed and does not start.
    #[must_use]
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SERVER.get_or_init(|| installed().map(Self::start)).as_ref()
    }

    /// The shared server, if `THROUGHLINE_TEST_RECORD=postgres` requests that every test's record is on PostgreSQL. If PostgreSQL is not
    /// installed, the calling test is reported as skipped.
    #[must_use]
    #[track_caller]
    pub fn for_every_record() -> Option<&'static Self> {
        if !every_record_is_on_postgres() {
            return None;
        }
        let server = Self::shared();
        if server.is_none() {
            skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        }
        server
    }

    /// A server for one test, which may restart it; `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is installed and does not start.
    #[must_use]
    pub fn own() -> Option<Self> {
        installed().map(Self::start)
    }

    /// A server for measurements: it syncs to disk, vacuums, and has 1 GB of buffers; `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is installed and does not start.
    #[must_use]
    pub fn measured() -> Option<Self> {
        installed().map(|programs| Self::start_with(programs, NEW, &[("PG_SETTINGS", MEASURED)]))
    }

    fn start(programs: PathBuf) -> Self {
        Self::start_with(programs, NEW, &[])
    }

    #[expect(clippy::panic, reason = "a server that is installed and does not start is a failure")]
    fn start_with(programs: PathBuf, prepare: &str, environment: &[(&str, &str)]) -> Self {
        let (keeper, folder) = keep(&keeper(prepare), &programs, environment);
        if folder.is_empty() {
            panic!("{} did not start a server", programs.display());
        }
        Self {
            programs,
            folder,
            made: AtomicU32::new(0),
            template: OnceLock::new(),
            pooler: OnceLock::new(),
            _keeper: keeper,
        }
    }

    /// The address of a new database. `prepare` is called with the address of the first one; the others are copies of it.
    ///
    /// # Panics
    ///
    /// If the database cannot be created.
    #[must_use]
    pub fn database(&self, prepare: impl FnOnce(&str)) -> String {
        let template = self.template.get_or_init(|| {
            let name = self.empty_database_named("prepared", "template0");
            prepare(&self.address(&name));
            name
        });
        let name = format!("test_{}", self.made.fetch_add(1, Ordering::Relaxed));
        self.address(&self.empty_database_named(&name, template))
    }

    /// The address of a new, empty database.
    ///
    /// # Panics
    ///
    /// If the database cannot be created.
    #[must_use]
    pub fn empty_database(&self) -> String {
        let name = format!("empty_{}", self.made.fetch_add(1, Ordering::Relaxed));
        self.address(&self.empty_database_named(&name, "template0"))
    }

    fn empty_database_named(&self, name: &str, template: &str) -> String {
        self.run("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        name.to_owned()
    }

    /// The address of a database for the superuser.
    #[must_use]
    pub fn address(&self, database: &str) -> String {
        self.address_as("postgres", database)
    }

    /// The address of a database for another role.
    #[must_use]
    pub fn address_as(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@{}/{database}", self.folder.replace('/', "%2F"))
    }

    /// The address of a database through a pooler in transaction mode; `None` if `pgbouncer` is not installed.
    #[must_use]
    pub fn pooled(&self, database: &str) -> Option<String> {
        let start = || {
            let is_there =
                ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].iter().any(|path| Path::new(path).exists());
            is_there.then(|| keep(POOLER, Path::new(&self.folder), &[]).0)
        };
        self.pooler.get_or_init(start).as_ref()?;
        Some(format!("postgres://postgres@{}:6432/{database}", self.folder.replace('/', "%2F")))
    }

    /// The socket of the server.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        Path::new(&self.folder).join(".s.PGSQL.5432")
    }

    /// The main process of the server, whose children serve connections; `None` if its id cannot be read.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        let file = Path::new(&self.folder).join("data").join("postmaster.pid");
        std::fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
    }

    /// Stops the server like a crash, and starts it again.
    ///
    /// # Panics
    ///
    /// If it does not start again.
    pub fn crash(&self) {
        let log = Path::new(&self.folder).join("server.log");
        self.control(&["restart", "-w", "-m", "immediate", "-l", &log.display().to_string()]);
    }

    /// Runs `pg_ctl` for this server.
    #[expect(clippy::expect_used, reason = "the test cannot go on without it")]
    fn control(&self, arguments: &[&str]) {
        let data = Path::new(&self.folder).join("data");
        let mut command = as_server_user(&self.programs.join("pg_ctl").display().to_string());
        command.args(arguments).arg("-s").arg("-D").arg(data);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.expect("pg_ctl runs").success(), "pg_ctl {arguments:?} failed");
    }

    /// The server's log lines about a database.
    ///
    /// # Panics
    ///
    /// If the log cannot be read.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the test cannot go on without it")]
    pub fn log(&self, database: &str) -> Vec<String> {
        let log = std::fs::read(Path::new(&self.folder).join("server.log")).expect("the log of the server");
        let start = format!("{database} ");
        let log = String::from_utf8_lossy(&log);
        log.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
    }

    /// Runs SQL in a database and returns the output.
    ///
    /// # Panics
    ///
    /// If the SQL fails.
    #[expect(clippy::expect_used, clippy::panic, reason = "the test cannot go on without it")]
    pub fn run(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args([
                "-h",
                &self.folder,
                "-U",
                "postgres",
                "-d",
                database,
                "-v",
                "ON_ERROR_STOP=1",
                "-qAtX",
                "-c",
                sql,
            ])
            .output()
            .expect("psql runs");
        if !output.status.success() {
            panic!("{sql}: {}", String::from_utf8_lossy(&output.stderr));
        }
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// Runs a script that starts a process, prints its location, and stops it when the script's input is closed.
#[expect(clippy::expect_used, reason = "the test cannot go on without it")]
fn keep(script: &str, argument: &Path, environment: &[(&str, &str)]) -> (Child, String) {
    let mut command = as_server_user("sh");
    command.args(["-c", script]).arg(argument).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.envs(environment.iter().copied());
    let mut keeper = command.spawn().expect("a shell");
    let mut place = String::new();
    if let Some(output) = keeper.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut place);
    }
    (keeper, place.trim().to_owned())
}

#[expect(clippy::disallowed_methods, reason = "where tests keep their records is said in the environment")]
fn every_record_is_on_postgres() -> bool {
    std::env::var("THROUGHLINE_TEST_RECORD").is_ok_and(|value| value == "postgres")
}

/// The folder with the programs of the newest version.
fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir(FOLDER).ok()?;
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| *version >= OLDEST_VERSION)
        .max()?;
    let programs = Path::new(FOLDER).join(newest.to_string()).join("bin");
    programs.join("initdb").exists().then_some(programs)
}

/// A command that runs as a user who may run a server.
fn as_server_user(program: &str) -> Command {
    if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", USER, "--", program]).current_dir("/");
        command
    } else {
        Command::new(program)
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
