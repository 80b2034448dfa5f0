//! The record in a PostgreSQL database, for any number of gateways at once.
//!
//! Every write is one transaction; a session is held by one writer at a time, by its row. When a write returns it is
//! committed, on the server's disk and on a synchronous standby: programs outlive a server that crashes, and go on with what they
//! were told. Only calls, guards and the end of a lock do not wait; they reach the disk with the next write that does. A write
//! that another one was in the way of is tried again; so is one whose connection was lost, once the server has told that it was
//! not committed.
//!
//! Parts: `connection` has the pool and transactions, `migrate` knows the schema's versions, `error` names what goes wrong;
//! the others each hold the statements of one subject. Not for: rules about chains and views, which every record shares.

mod address;
mod artifacts;
mod calls;
mod commit;
mod connection;
mod deletion;
mod error;
mod guards;
mod messages;
mod migrate;
mod nodes;
mod rows;
mod sessions;
mod store_impl;
mod tls;
mod value;
mod views;

use crate::error::Result;

use connection::ServerPool;

/// The record in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    server: ServerPool,
}

impl PostgresStore {
    /// Connections that a store makes at most, unless told otherwise.
    pub const CONNECTIONS: usize = 16;

    /// Opens the record at an address such as `postgres://user@host/database`, making its tables if there are none and
    /// bringing them up to date if they are of an older version. Makes so many connections at most.
    pub fn open(url: &str, connections: usize) -> Result<Self> {
        let server = ServerPool::new(url, connections)?;
        server.reach()?;
        migrate::bring_up_to_date(&server, migrate::STEPS)?;
        Ok(Self { server })
    }

    /// Where the record is, without password.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.server.address.shown
    }
}
