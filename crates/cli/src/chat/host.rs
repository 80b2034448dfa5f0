//! The machine as the managed call sees it: time, chance, who else is alive.

use std::sync::Arc;

use throughline_engine::Host;
use throughline_store::{Holder, Millis};

use crate::context::Context;
use crate::process::{is_alive, this_process};

/// This process.
pub(super) struct ChatHost {
    context: Arc<Context>,
    holder: Holder,
}

impl ChatHost {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self { context: Arc::clone(context), holder: this_process("chat") }
    }
}

impl Host for ChatHost {
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
