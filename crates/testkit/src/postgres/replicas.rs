//! Servers made from another one: a standby that can be promoted, and one recovered to a point in time from an archive.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::{PostgresServer, as_server_user};

/// Creates a standby of the server at `PG_FROM`.
const STANDBY: &str = r#""$0/pg_basebackup" -h "$PG_FROM" -U postgres -D "$dir/data" -R -X stream -c fast"#;

/// Restores the base backup of the server at `PG_FROM`, and its archive up to the target.
const RECOVERED: &str = r#"cp -a "$PG_FROM/base" "$dir/data" &&
printf "restore_command = 'cp %s/archive/%%f %%p'\nrecovery_target_name = '%s'\nrecovery_target_action = promote\n" \
    "$PG_FROM" "$PG_TARGET" >>"$dir/data/postgresql.conf" &&
sed -i '/^archive_mode/d' "$dir/data/postgresql.auto.conf" &&
touch "$dir/data/recovery.signal""#;

const POLL: Duration = Duration::from_millis(20);

impl PostgresServer {
    /// Starts a standby that follows this server. After this returns, a synchronous commit also waits for the disk of the standby.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn synchronous_standby(&self) -> Self {
        let standby = Self::start_with(self.programs.clone(), STANDBY, &[("PG_FROM", &self.folder)]);
        self.run("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.run("postgres", "SELECT pg_reload_conf()");
        let is_synchronous =
            "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
        while self.run("postgres", is_synchronous) != "t" {
            std::thread::sleep(POLL);
        }
        standby
    }

    /// Stops the server permanently, like a crash of its machine.
    ///
    /// # Panics
    ///
    /// If it cannot be stopped.
    pub fn fail(&self) {
        self.control(&["stop", "-w", "-m", "immediate"]);
    }

    /// Promotes a standby to the primary server. It waits for no standby until it has one.
    ///
    /// # Panics
    ///
    /// If it cannot be promoted.
    pub fn promote(&self) {
        self.control(&["promote", "-w"]);
        self.run("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
        self.run("postgres", "SELECT pg_reload_conf()");
    }

    /// Archives the write-ahead log from now on, and makes a base backup.
    ///
    /// # Panics
    ///
    /// If the backup fails.
    #[expect(clippy::expect_used, reason = "the test cannot go on without it")]
    pub fn archive(&self) {
        self.run("postgres", "ALTER SYSTEM SET archive_mode = on");
        let command = format!("test ! -f {0}/archive/%f && cp %p {0}/archive/%f", self.folder);
        self.run("postgres", &format!("ALTER SYSTEM SET archive_command = '{command}'"));
        self.crash();
        let mut backup = as_server_user(&self.programs.join("pg_basebackup").display().to_string());
        backup.args([
            "-h",
            &self.folder,
            "-U",
            "postgres",
            "-X",
            "none",
            "-c",
            "fast",
            "--no-manifest",
            "-D",
        ]);
        backup.arg(Path::new(&self.folder).join("base")).stdin(Stdio::null()).stdout(Stdio::null());
        assert!(backup.status().expect("pg_basebackup runs").success(), "the base backup failed");
    }

    /// Creates a named restore point, and archives the log up to it.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    pub fn name_moment(&self, name: &str) {
        self.run("postgres", &format!("SELECT pg_create_restore_point('{name}')"));
        let segment = self.run("postgres", "SELECT pg_walfile_name(pg_switch_wal())");
        let is_archived =
            format!("SELECT coalesce(last_archived_wal >= '{segment}', false) FROM pg_stat_archiver");
        while self.run("postgres", &is_archived) != "t" {
            std::thread::sleep(POLL);
        }
    }

    /// Starts a server with the state of this one at a restore point, from the base backup and the archived log.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn recovered_to(&self, name: &str) -> Self {
        let environment = [("PG_FROM", self.folder.as_str()), ("PG_TARGET", name)];
        let recovered = Self::start_with(self.programs.clone(), RECOVERED, &environment);
        while recovered.run("postgres", "SELECT pg_is_in_recovery()") != "f" {
            std::thread::sleep(POLL);
        }
        recovered
    }
}
