//! The services of this machine for managed calls: time, random numbers, and whether a process is still running.

pub(crate) mod process;

use std::sync::Arc;

use throughline_engine::Host;
use throughline_store::{Holder, Millis};

use crate::app::App;
use crate::host::process::{is_alive, this_process};

/// This process and its clock.
pub(crate) struct LocalHost {
    app: Arc<App>,
    holder: Holder,
}

impl LocalHost {
    /// Creates the host for a process that does `what`.
    pub(crate) fn new(app: &Arc<App>, what: &str) -> Self {
        Self { app: Arc::clone(app), holder: this_process(what) }
    }
}

impl Host for LocalHost {
    fn now_ms(&self) -> Millis {
        self.app.now().ms
    }

    fn random(&self) -> u32 {
        (self.app.random_bits() >> 32) as u32
    }

    fn holder(&self) -> Holder {
        self.holder.clone()
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        is_alive(holder)
    }
}
