//! A host for tests of the engine and everything on it: [`still_host!`](crate::still_host).
//!
//! It is a macro because the engine, which defines `Host`, uses this crate in its own tests.

/// Defines a type whose clock never moves and whose random numbers are a fixed sequence, and implements
/// `throughline_engine::Host` for it. The crate that uses it needs `throughline-engine` and `throughline-store`.
///
/// `still_host!(pub(crate) struct StillHost at 1_763_200_000_000);`
#[macro_export]
macro_rules! still_host {
    ($visibility:vis struct $name:ident at $now_ms:expr) => {
        /// A host whose clock never moves; the field is how many random numbers were taken.
        #[derive(Default)]
        $visibility struct $name(::std::sync::atomic::AtomicU32);

        impl ::throughline_engine::Host for $name {
            fn now_ms(&self) -> ::throughline_store::Millis {
                $now_ms
            }

            fn random(&self) -> u32 {
                // An odd factor: every number comes once, and neighbours look nothing alike.
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
