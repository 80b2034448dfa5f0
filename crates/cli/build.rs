//! Options for the linker of release builds, where it is the one that Rust brings with it: functions with equal code are
//! stored once, and relocations in a packed form. The program is smaller by about a twentieth; other linkers may not know the options.

#![expect(clippy::disallowed_methods, reason = "this is how Cargo tells a build script")]

use std::path::Path;
use std::process::Command;

/// The target for which Rust brings its own linker and uses it.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The first glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let is_release = env("PROFILE") == "release";
    let is_native = env("TARGET") == TARGET && env("HOST") == TARGET;
    let is_chosen = !env("RUSTC_LINKER").is_empty() || env("CARGO_ENCODED_RUSTFLAGS").contains("link");
    if !is_release || !is_native || is_chosen || !has_linker(&env("RUSTC")) {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn output(program: &str, argument: &[&str]) -> Option<String> {
    let output = Command::new(program).args(argument).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

fn has_linker(rustc: &str) -> bool {
    let Some(sysroot) = output(rustc, &["--print", "sysroot"]) else { return false };
    Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld").exists()
}

/// The version of this system's C library.
fn glibc() -> Option<(u32, u32)> {
    let text = output("ldd", &["--version"])?;
    let version = text.lines().next()?.rsplit(' ').next()?;
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
