//! The machine as the managed call sees it: time, chance, who else is alive.

pub(crate) mod process;

use std::sync::Arc;

use throughline_engine::Host;
use throughline_store::{Holder, Millis};

use crate::app::Context;
use crate::host::process::{is_alive, this_process};

/// This process.
pub(crate) struct ThisMachine {
    context: Arc<Context>,
    holder: Holder,
}

impl ThisMachine {
    /// As seen by a process that does `what`.
    pub(crate) fn new(context: &Arc<Context>, what: &str) -> Self {
        Self { context: Arc::clone(context), holder: this_process(what) }
    }
}

impl Host for ThisMachine {
    fn now_ms(&self) -> Millis {
        self.context.now().ms
    }

    fn random(&self) -> u32 {
        (self.context.random_bits() >> 32) as u32
    }

    fn holder(&self) -> Holder {
        self.holder.clone()
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        is_alive(holder)
    }
}
