//! A host for tests of the engine and the crates above it: [`still_host!`](crate::still_host).
//!
//! It is a macro because the engine, which defines `Host`, uses this crate in its own tests.

/// Defines a type with a fixed clock and a fixed sequence of random numbers, and implements `throughline_engine::Host` for it. The
/// calling crate needs `throughline-engine` and `throughline-store`.
///
/// `still_host!(pub(crate) struct StillHost at 1_763_200_000_000);`
#[macro_export]
macro_rules! still_host {
    ($visibility:vis struct $name:ident at $now_ms:expr) => {
        /// A host with a fixed clock. The field counts the random numbers drawn.
        #[derive(Default)]
        $visibility struct $name(::std::sync::atomic::AtomicU32);

        impl ::throughline_engine::Host for $name {
            fn now_ms(&self) -> ::throughline_store::Millis {
                $now_ms
            }

            fn random(&self) -> u32 {
                // An odd factor: every number occurs once, and neighbours differ widely.
                let taken = self.0.fetch_add(1, ::std::sync::atomic::Ordering::Relaxed);
                taken.wrapping_mul(2_654_435_761)
            }

            fn holder(&self) -> ::throughline_store::Holder {
                ::throughline_store::Holder {
                    host: "here".to_owned(),
                    process_id: 1,
                    process_start: 1,
                    what: "test".to_owned(),
                }
            }

            fn is_alive(&self, _holder: &::throughline_store::Holder) -> bool {
                true
            }
        }
    };
}
