//! What fixed workloads allocate stays within the bounds in `counts.tsv`.

use std::path::Path;
use std::process::Command;

#[test]
#[expect(clippy::disallowed_methods, reason = "bounds are only renewed by somebody who says so")]
fn counts_stay_within_their_bounds() {
    let bounds = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.tsv");
    let mut counts = Command::new(env!("CARGO_BIN_EXE_throughline-counts"));
    counts.arg("--check").arg(&bounds);
    if std::env::var_os("THROUGHLINE_WRITE_COUNTS").is_some() {
        counts.arg("--write").arg(&bounds);
    }
    let output = counts.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}
