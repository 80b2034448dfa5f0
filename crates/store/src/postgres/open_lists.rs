//! Lists of the index that are in no segment yet, as this process read them last. Every search needs all of an owner's; only those that are
//! new since the one before are read again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ids::Owner;

use super::index_kind::IndexKind;

/// Bytes of lists that are held, over all owners: those of about ten.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A row of `search_open`: its number, and the transaction that wrote it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenRow {
    pub(super) id: i64,
    pub(super) written_by: i64,
}

/// The lists of an owner's rows of one kind.
pub(super) type ListsOfOwner = HashMap<OpenRow, Arc<[u8]>>;

/// What was read, by owner and kind.
#[derive(Debug, Default)]
pub(super) struct OpenLists {
    lists: Mutex<HashMap<(Owner, IndexKind), ListsOfOwner>>,
}

impl OpenLists {
    /// Those of the rows that are known.
    pub(super) fn known(&self, owner: &Owner, kind: IndexKind, rows: &[OpenRow]) -> ListsOfOwner {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lists) = lists.get(&(owner.clone(), kind)) else { return HashMap::new() };
        rows.iter().filter_map(|row| Some((*row, Arc::clone(lists.get(row)?)))).collect()
    }

    /// Holds what was read in place of what was held of this owner and kind.
    pub(super) fn hold(&self, owner: &Owner, kind: IndexKind, read: ListsOfOwner) {
        let size = |lists: &ListsOfOwner| lists.values().map(|list| list.len() + 64).sum::<usize>();
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.remove(&(owner.clone(), kind));
        let new = size(&read);
        if new + lists.values().map(size).sum::<usize>() > MOST_BYTES {
            lists.clear();
        }
        if new <= MOST_BYTES {
            lists.insert((owner.clone(), kind), read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_held_by_owner_and_by_what_was_written_and_no_more_than_fit() {
        let lists = OpenLists::default();
        let row = |id, written_by| OpenRow { id, written_by };
        let of = |bytes: usize| Arc::<[u8]>::from(vec![1; bytes]);
        let [ann, bob] = ["ann", "bob"].map(Owner::new);
        lists.hold(&ann, IndexKind::Message, HashMap::from([(row(1, 7), of(10)), (row(2, 7), of(20))]));
        let known = |owner, id, by| lists.known(owner, IndexKind::Message, &[row(id, by)]).len();
        assert_eq!(
            [known(&ann, 1, 7), known(&ann, 1, 8), known(&bob, 1, 7), known(&ann, 3, 7)],
            [1, 0, 0, 0]
        );
        assert!(lists.known(&ann, IndexKind::Piece, &[row(1, 7)]).is_empty());
        lists.hold(&bob, IndexKind::Message, HashMap::from([(row(5, 9), of(MOST_BYTES - 300))]));
        assert_eq!([known(&ann, 1, 7), known(&bob, 5, 9)], [1, 1]);
        lists.hold(&ann, IndexKind::Message, HashMap::from([(row(3, 7), of(200))]));
        assert_eq!([known(&ann, 3, 7), known(&ann, 1, 7), known(&bob, 5, 9)], [1, 0, 0]);
        lists.hold(&ann, IndexKind::Message, HashMap::from([(row(4, 7), of(MOST_BYTES + 1))]));
        assert_eq!(known(&ann, 4, 7), 0);
    }
}
