//! The record in a PostgreSQL database, for any number of gateways at once.
//!
//! Every write is one transaction; a session is held by one writer at a time, by its row. When a write returns it is
//! committed, on the server's disk and on a synchronous standby: programs outlive a server that crashes, and go on with what they
//! were told. Only calls, guards and the end of a lock do not wait; they reach the disk with the next write that does. A write
//! that another one was in the way of is tried again; so is one whose connection was lost, once the server has confirmed that it was
//! not committed.
//!
//! Parts: `connection` has the pool and transactions, `migrate` knows the schema's versions, `error` names what goes wrong;
//! the others each hold the statements of one subject. Not for: rules about chains and views, which every record shares.

mod address;
mod append_once;
mod artifacts;
mod calls;
mod commit;
mod connection;
mod copy;
mod deletion;
mod doctor;
mod error;
mod fleet;
mod guards;
mod index_kind;
mod listener;
mod messages;
mod migrate;
mod nodes;
mod open_lists;
mod repair;
mod rows;
mod search_ahead;
mod search_build;
mod search_index;
mod search_lookup;
mod search_source;
mod sessions;
mod status;
mod store_impl;
mod tls;
mod upkeep;
mod value;
mod views;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::artifacts::claim;
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::place::ArtifactPlace;
use crate::error::Result;
use crate::ids::Owner;

use address::ServerAddress;
use append_once::KnownSessions;
use connection::ServerPool;
use search_index::IndexKind;
use value::{text, values};

/// After so many messages of a process the index of the owner who wrote last is checked: with every owner's share of the messages, each is
/// looked at about as often as they have written so many.
const LOOK_AT_INDEX_EVERY: usize = 512;

/// So many segments are sealed before the rows they were made of are vacuumed: about 25 MB.
const VACUUM_EVERY: usize = 8;

/// Has the server count what searches read, so that it plans them well.
const COUNT_ROWS: &str =
    "ANALYZE sessions; ANALYZE messages; ANALYZE search_open; ANALYZE search_segments; ANALYZE search_slices";

/// The record in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    server: ServerPool,
    /// Where it listens to other gateways, if it does.
    direct: Option<ServerAddress>,
    known: KnownSessions,
    /// Messages that were appended.
    appended: AtomicUsize,
    /// Segments of the index that were sealed.
    sealed: AtomicUsize,
}

impl PostgresStore {
    /// Connections that a store makes at most, by default.
    pub const CONNECTIONS: usize = 16;

    /// Opens the record at an address such as `postgres://user@host/database`, making its tables if there are none and
    /// bringing them up to date if they are of an older version. Makes so many connections at most.
    pub fn open(url: &str, connections: usize) -> Result<Self> {
        let server = ServerPool::new(url, connections)?;
        server.reach()?;
        migrate::bring_up_to_date(&server, migrate::STEPS)?;
        Ok(Self {
            server,
            direct: None,
            known: KnownSessions::default(),
            appended: AtomicUsize::new(0),
            sealed: AtomicUsize::new(0),
        })
    }

    /// Has the record keep large texts in a place of their own: in the database where there is none. What is in the
    /// database stays there and is read from there.
    pub fn with_artifacts(mut self, place: Option<&ArtifactPlace>) -> Result<Self> {
        let Some(place) = place else {
            claim::check_unset(&self)?;
            return Ok(self);
        };
        let files = ArtifactFiles::of(place, None)?;
        let fresh = self.server.ask("naming the record", |tx| {
            text(&tx.query_one("SELECT gen_random_uuid()::text", values![])?, 0)
        })?;
        claim::take(&self, &files, place, Some(fresh))?;
        self.server.files = Some(files);
        Ok(self)
    }

    /// Has the store hear at once of what other gateways change, over a connection to this address: that of the server itself, where
    /// [`open`](Self::open) was given that of a pooler. Nothing is connected before somebody listens.
    pub fn with_direct(mut self, url: &str) -> Result<Self> {
        self.direct = Some(ServerAddress::parse(url)?);
        Ok(self)
    }

    /// An address as people read it: without user and password.
    pub fn address_without_password(url: &str) -> Result<String> {
        Ok(ServerAddress::parse(url)?.shown)
    }

    /// Where the record is, without password.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.server.address.shown
    }

    /// Seals what is complete of an owner's index, now and then. It may be done later as well as now, so a failure is no matter.
    fn seal_in_time(&self, owner: &Owner, appended: usize) {
        let before = self.appended.fetch_add(appended, Ordering::Relaxed);
        if before / LOOK_AT_INDEX_EVERY == before.wrapping_add(appended) / LOOK_AT_INDEX_EVERY {
            return;
        }
        for kind in IndexKind::ALL {
            while matches!(
                self.server.prepare("sealing the index", |tx| search_index::seal(tx, owner, kind)),
                Ok(true)
            ) {
                let sealed = self.sealed.fetch_add(1, Ordering::Relaxed) + 1;
                if sealed.is_multiple_of(VACUUM_EVERY) {
                    self.tidy_up(sealed / VACUUM_EVERY);
                }
            }
        }
    }

    /// What autovacuum does too, but only once a minute; a role without the right leaves it to that.
    fn tidy_up(&self, times: usize) {
        // Rows that went into segments are several times as large as these: in a minute they may become more than everything else.
        let _ = self.server.ask("vacuuming the index", |tx| tx.batch("VACUUM (SKIP_LOCKED) search_open"));
        // Without statistics of a record that grew fast a search by words takes six times as long. Each time the
        // record has doubled is often enough.
        if times.is_power_of_two() {
            let _ = self.server.ask("counting rows", |tx| tx.batch(COUNT_ROWS));
        }
    }
}
