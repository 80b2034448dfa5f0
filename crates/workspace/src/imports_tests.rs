use std::fs;
use std::path::Path;

use crate::{Stats, Workspace};

/// A workspace with one crate of these files.
fn workspace(folder: &Path, files: &[(&str, &str)]) -> Stats {
    let source = folder.join("crates/sample/src");
    fs::create_dir_all(&source).unwrap();
    fs::write(folder.join("crates/sample/Cargo.toml"), "[package]\nname = \"sample\"\n").unwrap();
    for (name, text) in files {
        let path = source.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Stats::of(&Workspace::read(folder).unwrap())
}

#[test]
fn cycles_are_found_through_re_exports() {
    let folder = tempfile::tempdir().unwrap();
    let stats = workspace(
        folder.path(),
        &[
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; fn f(_: crate::A) {}"),
            ("c.rs", "use crate::a::A; struct C(A);"),
        ],
    );
    assert_eq!(stats.crates[0].cycles, [["a", "b"]]);
    assert_eq!(stats.largest_cycle(), 2);
}

#[test]
fn a_visibility_is_no_import() {
    let folder = tempfile::tempdir().unwrap();
    let stats = workspace(
        folder.path(),
        &[("lib.rs", "mod a;"), ("a.rs", "mod b; struct A(b::B);"), ("a/b.rs", "pub(in crate::a) struct B;")],
    );
    assert!(stats.crates[0].cycles.is_empty());
}

#[test]
fn cycles_leave_out_tests_and_re_exports() {
    let folder = tempfile::tempdir().unwrap();
    let stats = workspace(
        folder.path(),
        &[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; pub struct B(A);"),
        ],
    );
    assert_eq!(stats.largest_cycle(), 1);
    assert_eq!(stats.crates[0].exported, ["A", "B"]);
}

#[test]
fn lines_leave_out_comments_and_tests() {
    let folder = tempfile::tempdir().unwrap();
    let text = "//! Header.\n\n/// Doc.\npub struct A; // why\n/* long\ncomment */\nconst TEXT: &str = \"one\n// two\";\n\
        #[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
    let stats = workspace(folder.path(), &[("lib.rs", text)]);
    assert_eq!(stats.lines(), 3, "{stats}");
}

#[test]
fn repeated_types_name_their_modules() {
    let folder = tempfile::tempdir().unwrap();
    let stats = workspace(
        folder.path(),
        &[("lib.rs", "mod a; mod b;"), ("a.rs", "struct Place;"), ("b.rs", "enum Place {}")],
    );
    assert_eq!(stats.repeated_types["Place"], ["sample::a", "sample::b"]);
}
