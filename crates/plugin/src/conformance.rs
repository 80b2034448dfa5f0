//! Checks of the rules for every context engine, which can be run against any of them: built-in ones, those in other processes, and those
//! under development.
//!
//! Engines are driven as a host drives them: through the managed call, against a scripted model, in every wire format. Parts: `stage` that
//! model and a conversation with it; `held` whole conversations; `asked` single questions; `spoken` the wire itself, for engines in
//! processes of their own.
//!
//! Not for: how good an engine's summaries are.

mod check;
mod harness;
mod methods;
mod sessions;
mod transport;

use std::sync::Arc;

use throughline_engine::ContextEngine;

use crate::connection::{EngineBounds, Launch};
use crate::process_engine::ProcessEngine;
use crate::services::HostServices;

pub(crate) use check::CheckEnvironment;
pub use check::{CheckVerdict, ConformanceCheck, MakeEngine};

impl ConformanceCheck {
    /// Checks an engine, in this process or another.
    pub async fn of_engine(make: MakeEngine<'_>) -> Vec<ConformanceCheck> {
        let mut checks = methods::all(make).await;
        checks.extend(sessions::all(make).await);
        checks
    }
}

impl ConformanceCheck {
    /// Checks an engine in a process of its own: first its protocol, and if that works, everything else.
    pub async fn of_process(
        name: &str,
        launch: &Launch,
        bounds: EngineBounds,
        services: &Arc<dyn HostServices>,
    ) -> Vec<ConformanceCheck> {
        let mut checks = transport::all(name, launch, bounds, services).await;
        // An engine that does not introduce itself answers nothing else either.
        if checks.first().is_none_or(ConformanceCheck::has_failed) {
            return checks;
        }
        let make = |_: &CheckEnvironment| -> Arc<dyn ContextEngine> {
            Arc::new(ProcessEngine::new(name, launch.clone(), bounds, Arc::clone(services)))
        };
        checks.extend(ConformanceCheck::of_engine(&make).await);
        checks
    }
}
