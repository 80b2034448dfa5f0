//! Time and chance for a session in this process.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use throughline_engine::Host;
use throughline_store::{Holder, Millis};

/// This process.
pub(crate) struct ProcessHost;

impl Host for ProcessHost {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program that embeds a session has no other clock to pass in"
    )]
    fn now_ms(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
    }

    fn random(&self) -> u32 {
        // Each state is seeded anew.
        RandomState::new().hash_one(0u8) as u32
    }

    fn holder(&self) -> Holder {
        Holder {
            host: String::new(),
            process_id: std::process::id(),
            process_start: 0,
            what: "an embedded session".to_owned(),
        }
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        // Nothing is known of others: their locks hold until they expire.
        *holder == self.holder() || holder.process_id != std::process::id()
    }
}
