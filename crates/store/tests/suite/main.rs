//! Importers and the store on disk, seen from outside: as one program. The contract of all stores is a program of its own.

mod import_properties;
mod recorded;
mod sqlite_home;
mod sqlite_processes;
