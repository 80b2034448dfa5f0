//! Upkeep of a record on a server.

use std::collections::HashMap;

use crate::artifacts::files::{ArtifactFiles, StoredObject};
use crate::artifacts::garbage::{self, GarbageOptions, GarbageReport};
use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::sqlite::StoreProgress;
use crate::store::Dependants;
use crate::upkeep::{ACTION, IdleTree, OperatorAction, OwnerTraces, StoreUpkeep};

use super::PostgresStore;
use super::connection::{Durability, Tx};
use super::error::PgResult;
use super::rows::from_json_text;
use super::value::{SqlValue, count, int, text, values};
use super::{artifacts, deletion};

impl PostgresStore {
    /// Removes an object unless somebody refers to it by now. Whether it was removed.
    fn remove_object(
        &self,
        files: &ArtifactFiles,
        object: &StoredObject,
        owner: Option<&Owner>,
    ) -> Result<bool> {
        match (&object.id, &object.owner) {
            (Some(id), Some(folder)) => self.server.prepare("removing garbage", |tx| {
                artifacts::remove_unknown(tx, folder, owner, id, || files.remove_object(object))
            }),
            _ => files.remove_object(object).map(|()| true),
        }
    }
}

impl StoreUpkeep for PostgresStore {
    fn collect_garbage(
        &self,
        options: &GarbageOptions,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<GarbageReport> {
        let Some(files) = &self.server.files else { return Ok(GarbageReport::default()) };
        let known = self.server.ask("reading artifacts", artifacts::names)?;
        let owners: HashMap<String, Owner> =
            known.keys().map(|owner| (ArtifactFiles::owner_folder(owner), owner.clone())).collect();
        let owner_of = |object: &StoredObject| object.owner.as_ref().and_then(|folder| owners.get(folder));
        let is_known = |object: &StoredObject| match (&object.id, owner_of(object)) {
            (Some(id), Some(owner)) => known.get(owner).is_some_and(|names| names.contains(id.as_str())),
            (Some(_), None) => false,
            (None, _) => !object.is_unfinished(),
        };
        let (mut report, found) = garbage::find(files, options, is_known)?;
        if options.dry_run {
            return Ok(report);
        }
        for (done, object) in (0..).zip(&found) {
            progress(StoreProgress { what: "removing garbage", done, total: found.len() as u64 });
            report.removed += u64::from(self.remove_object(files, object, owner_of(object))?);
        }
        Ok(report)
    }

    fn idle_trees(&self, before_ms: Millis) -> Result<Vec<IdleTree>> {
        self.server.ask("finding old conversations", |tx| {
            let rows = tx.query(
                "SELECT r.owner, r.id, s.active, s.sessions, s.messages FROM (SELECT owner, tree, max(active_ms) AS active, \
                 count(*) AS sessions, sum(messages)::int8 AS messages FROM sessions GROUP BY owner, tree \
                 HAVING max(active_ms) < $1) AS s JOIN sessions r ON r.ordinal = s.tree ORDER BY s.tree",
                values![before_ms],
            )?;
            rows.iter()
                .map(|row| {
                    Ok(IdleTree {
                        owner: Owner::new(text(row, 0)?),
                        root: SessionId::from_text(text(row, 1)?),
                        active_ms: int(row, 2)?,
                        sessions: count(row, 3)?,
                        messages: count(row, 4)?,
                    })
                })
                .collect()
        })
    }

    fn sessions_of(&self, owner: &Owner) -> Result<Vec<SessionId>> {
        self.server.ask("listing sessions", |tx| {
            let ids = texts(tx, "SELECT id FROM sessions WHERE owner = $1 ORDER BY ordinal", owner)?;
            Ok(ids.into_iter().map(SessionId::from_text).collect())
        })
    }

    fn delete_idle(&self, tree: &IdleTree, before_ms: Millis) -> Result<bool> {
        let (owner, root) = (&tree.owner, &tree.root);
        self.server.write("removing an old conversation", Durability::Heavy, |tx| {
            // A writer to one of them holds a lock on its row.
            let rows = tx.query(
                "SELECT active_ms FROM sessions WHERE owner = $1 AND tree = (SELECT ordinal FROM sessions \
                 WHERE owner = $1 AND id = $2) ORDER BY ordinal FOR UPDATE",
                values![owner, root],
            )?;
            let times = rows.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
            if times.is_empty() || times.iter().any(|active_ms| *active_ms >= before_ms) {
                return Ok(false);
            }
            deletion::delete(tx, owner, root, Dependants::Delete).map(|_| true)
        })
    }

    fn traces_of(&self, owner: &Owner) -> Result<OwnerTraces> {
        self.server.read("reading what an owner refers to", |tx| {
            Ok(OwnerTraces {
                preambles: texts(
                    tx,
                    "SELECT DISTINCT preamble FROM calls WHERE owner = $1 AND preamble IS NOT NULL",
                    owner,
                )?,
                artifacts: Vec::new(),
            })
        })
    }

    fn erase_rest(&self, owner: &Owner, left: &OwnerTraces) -> Result<()> {
        self.server.write("erasing what is left of an owner", Durability::Heavy, |tx| {
            for sql in [
                "DELETE FROM search_open WHERE owner = $1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE owner = $1)",
                "DELETE FROM search_segments WHERE owner = $1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE owner = $1)",
                "DELETE FROM search_slices WHERE owner = $1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE owner = $1)",
            ] {
                tx.later(sql, values![owner]);
            }
            tx.later(
                "DELETE FROM preambles p WHERE p.id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.preamble = p.id)",
                vec![SqlValue::texts(&left.preambles)],
            );
            tx.later(
                "DELETE FROM preamble_parts x WHERE NOT EXISTS (SELECT 1 FROM preambles p \
                 WHERE x.hash IN (p.system, p.tools, p.parameters))",
                values![],
            );
            Ok(())
        })?;
        let Some(files) = &self.server.files else { return Ok(()) };
        let folder = ArtifactFiles::owner_folder(owner);
        for object in files.objects()?.iter().filter(|object| object.owner.as_ref() == Some(&folder)) {
            self.remove_object(files, object, Some(owner))?;
        }
        Ok(())
    }

    fn actions(&self) -> Result<Vec<OperatorAction>> {
        self.server.ask("reading what operators did", |tx| {
            let rows = tx.query(
                "SELECT value FROM guards WHERE kind = 2 AND name >= $1 AND name < $2 ORDER BY name",
                values![ACTION, format!("{}!", ACTION.trim_end())],
            )?;
            rows.iter().map(|row| from_json_text(&text(row, 0)?)).collect()
        })
    }
}

fn texts(tx: &Tx<'_>, sql: &str, owner: &Owner) -> PgResult<Vec<String>> {
    tx.query(sql, values![owner])?.iter().map(|row| text(row, 0)).collect()
}
