//! The managed call: one place where a call to a model happens, and everything about context that hangs on it.
//!
//! [`ContextEngine`] is what decides about a conversation's context; [`Registry`] finds one by name.
//!
//! Not for: sockets, terminals, home directories, the environment or the wall clock.

mod engine;
mod lifecycle;
mod model_in_force;
mod outcome;
mod registry;
mod snapshot;
mod status;
mod tool;
mod trigger;

pub use engine::{ContextEngine, EngineError, EngineFuture, answered};
pub use lifecycle::{Boundary, BoundaryReason, SessionEnd, SessionStart};
pub use model_in_force::{EngineLimits, ModelInForce};
pub use outcome::{
    AbortReason, BeforeAfter, CompressOutcome, CompressReport, CompressRequest, Compressed, NewItem,
    NewSummary, NoOpReason, PrepareOutcome, Quality, Room,
};
pub use registry::{
    BUILT_IN_ENGINE, EngineDirectory, EngineFactory, EngineListing, EnginePlace, Registry, RegistryError,
};
pub use snapshot::Snapshot;
pub use status::{EngineStatus, MeasuredUsage, PendingRequest, Pressure, SizeBasis};
pub use tool::{ToolAnswer, ToolRequest, ToolSchema};
pub use trigger::Trigger;
