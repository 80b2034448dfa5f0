//! Maintenance of a record in a file.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::files::StoredObject;
use crate::artifacts::garbage::{self, GarbageOptions, GarbageReport};
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::store::Dependants;
use crate::upkeep::{ACTION, IdleTree, OperatorAction, OwnerTraces, StoreUpkeep};

use super::artifacts;
use super::deletion;
use super::error::TxResult;
use super::{SqliteStore, StoreProgress, Write};

/// Number of garbage objects removed while writing is locked.
const GARBAGE_AT_ONCE: usize = 20;

impl SqliteStore {
    /// Removes objects without references. Returns how many there were.
    fn sweep_objects(&self, objects: &[StoredObject]) -> Result<u64> {
        // No process can refer to a text meanwhile: a writer holds the same lock, and checks whether the text exists.
        self.write("removing garbage", Write::Light, |conn| {
            Ok(artifacts::sweep_objects(conn, &self.artifacts, objects)??)
        })
    }
}

impl StoreUpkeep for SqliteStore {
    fn collect_garbage(
        &self,
        options: &GarbageOptions,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<GarbageReport> {
        if !self.artifacts.is_elsewhere() {
            return Ok(GarbageReport::default());
        }
        let known = self.read("reading artifacts", |conn| Ok(artifacts::all(conn)?))?;
        let known: HashSet<&ArtifactId> = known.iter().collect();
        let is_known = |object: &StoredObject| match &object.id {
            Some(id) => object.owner.is_none() && known.contains(id),
            None => !object.is_unfinished(),
        };
        let (mut report, found) = garbage::find(&self.artifacts, options, is_known)?;
        if options.dry_run {
            return Ok(report);
        }
        let mut done = 0;
        for some in found.chunks(GARBAGE_AT_ONCE) {
            progress(StoreProgress { what: "removing garbage", done, total: found.len() as u64 });
            report.removed += self.sweep_objects(some)?;
            done += some.len() as u64;
        }
        Ok(report)
    }

    fn idle_trees(&self, before_ms: Millis) -> Result<Vec<IdleTree>> {
        self.read("finding old conversations", |conn| {
            let mut statement = conn.prepare_cached(
                "SELECT r.owner, r.id, max(s.active_ms) AS active, count(*), sum(s.messages) FROM sessions s \
                 JOIN sessions r ON r.ordinal = s.tree GROUP BY s.tree HAVING active < ?1 ORDER BY s.tree",
            )?;
            let trees = statement.query_map([before_ms], |row| {
                Ok(IdleTree {
                    owner: Owner::new(row.get::<_, String>(0)?),
                    root: SessionId::from_text(row.get::<_, String>(1)?),
                    active_ms: row.get(2)?,
                    sessions: row.get(3)?,
                    messages: row.get(4)?,
                })
            })?;
            Ok(trees.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn sessions_of(&self, owner: &Owner) -> Result<Vec<SessionId>> {
        self.read("listing sessions", |conn| {
            let ids = texts(conn, "SELECT id FROM sessions WHERE owner = ?1 ORDER BY ordinal", owner)?;
            Ok(ids.into_iter().map(SessionId::from_text).collect())
        })
    }

    fn delete_idle(&self, tree: &IdleTree, before_ms: Millis) -> Result<bool> {
        let deleted = self.write("removing an old conversation", Write::Heavy, |conn| {
            let active: Option<Millis> = conn
                .prepare_cached(
                    "SELECT max(active_ms) FROM sessions WHERE tree = (SELECT ordinal FROM sessions \
                     WHERE owner = ?1 AND id = ?2)",
                )?
                .query_row(params![tree.owner.as_str(), tree.root.as_str()], |row| row.get(0))?;
            match active {
                Some(active) if active < before_ms => {
                    deletion::delete(conn, &self.artifacts, &tree.owner, &tree.root, Dependants::Delete)
                        .map(Some)
                }
                _ => Ok(None),
            }
        })?;
        let Some(deleted) = deleted else { return Ok(false) };
        self.sweep(&deleted.artifacts);
        Ok(true)
    }

    fn traces_of(&self, owner: &Owner) -> Result<OwnerTraces> {
        self.read("reading what an owner refers to", |conn| {
            Ok(OwnerTraces {
                preambles: texts(
                    conn,
                    "SELECT DISTINCT c.preamble FROM calls c JOIN sessions s ON s.ordinal = c.session \
                     WHERE s.owner = ?1 AND c.preamble IS NOT NULL",
                    owner,
                )?,
                artifacts: texts(
                    conn,
                    "SELECT DISTINCT a.name FROM artifacts a JOIN artifact_refs r ON r.artifact = a.n \
                     JOIN sessions s ON s.ordinal = r.session WHERE s.owner = ?1",
                    owner,
                )?,
            })
        })
    }

    fn erase_rest(&self, _owner: &Owner, left: &OwnerTraces) -> Result<()> {
        self.write("erasing preambles", Write::Heavy, |conn| {
            for preamble in &left.preambles {
                conn.prepare_cached(
                    "DELETE FROM preambles WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM calls WHERE preamble = ?1)",
                )?
                .execute([preamble])?;
            }
            conn.execute(
                "DELETE FROM preamble_parts WHERE hash NOT IN (SELECT system FROM preambles WHERE system IS NOT NULL \
                 UNION SELECT tools FROM preambles WHERE tools IS NOT NULL \
                 UNION SELECT parameters FROM preambles WHERE parameters IS NOT NULL)",
                [],
            )?;
            Ok(())
        })?;
        if self.artifacts.is_elsewhere() {
            let theirs: HashSet<&str> = left.artifacts.iter().map(String::as_str).collect();
            let objects = self.artifacts.objects()?.into_iter().filter(|object| {
                object.owner.is_none() && object.id.as_ref().is_some_and(|id| theirs.contains(id.as_str()))
            });
            self.sweep_objects(&objects.collect::<Vec<_>>())?;
        }
        self.clear_free_space()
    }

    fn actions(&self) -> Result<Vec<OperatorAction>> {
        let values = self.read("reading what operators did", |conn| {
            let mut statement = conn.prepare(
                "SELECT value FROM guards WHERE kind = 2 AND name >= ?1 AND name < ?2 ORDER BY name",
            )?;
            let end = format!("{}!", ACTION.trim_end());
            let values = statement.query_map([ACTION, &end], |row| row.get::<_, String>(0))?;
            Ok(values.collect::<rusqlite::Result<Vec<String>>>()?)
        })?;
        let read = |value: &String| {
            serde_json::from_str(value).map_err(|error| StoreError::Database {
                what: "reading what operators did",
                source: Box::new(error),
            })
        };
        values.iter().map(read).collect()
    }
}

fn texts(conn: &Connection, sql: &str, owner: &Owner) -> TxResult<Vec<String>> {
    let mut statement = conn.prepare(sql)?;
    let texts = statement.query_map([owner.as_str()], |row| row.get(0))?;
    Ok(texts.collect::<rusqlite::Result<_>>()?)
}
