//! The state of a conversation as entries, for reports and corrections.

use crate::builtin::decisions_of;
use crate::ledger::Ledger;
use crate::state::StateEntry;

impl Ledger {
    /// Returns everything in the state, one entry each. `number` converts a position in the list to the number of a message.
    #[must_use]
    pub fn state_entries(&self, number: &dyn Fn(u32) -> u64) -> Vec<StateEntry> {
        self.state().entries(&decisions_of(self.state()), number)
    }
}
