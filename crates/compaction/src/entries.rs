//! The state of a conversation as entries, for reports and corrections.

use crate::builtin::decisions_of;
use crate::ledger::Ledger;
use crate::state::StateEntry;

impl Ledger {
    /// Everything the state knows, one entry each. `number` gives the number of a message from its place in the list.
    #[must_use]
    pub fn state_entries(&self, number: &dyn Fn(u32) -> u64) -> Vec<StateEntry> {
        self.state().entries(&decisions_of(self.state()), number)
    }
}
