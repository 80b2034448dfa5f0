//! Importers and the store on disk, seen from outside: and the contract of all stores, as one program.

mod artifact_places;
mod contract;
mod import_properties;
#[cfg(feature = "postgres")]
mod postgres_copy;
#[cfg(feature = "postgres")]
mod postgres_doctor;
#[cfg(feature = "postgres")]
mod postgres_fleet;
#[cfg(feature = "postgres")]
mod postgres_notified;
#[cfg(feature = "postgres")]
mod postgres_operations;
#[cfg(feature = "postgres")]
mod postgres_search;
#[cfg(feature = "postgres")]
mod postgres_server;
#[cfg(feature = "postgres")]
mod postgres_tls;
mod recorded;
mod sqlite_home;
mod sqlite_processes;
mod upkeep;
