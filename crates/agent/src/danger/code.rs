//! Recognises dangerous code in languages other than the shell's, judged by its words alone.

use super::kind::Danger;

const TELLING: [(Danger, &[&str]); 6] = [
    (
        Danger::Deletes,
        &[
            "rmtree",
            "os.remove",
            "os.unlink",
            "os.rmdir",
            ".unlink(",
            "rmSync",
            "unlinkSync",
            "fs.rm",
            "fs.unlink",
            "FileUtils.rm",
            "File.delete",
            "unlink ",
            "unlink(",
            "os.removedirs",
            "Path.rmdir",
            ".rmdir(",
        ],
    ),
    (
        Danger::Replaces,
        &[
            ".write_text(",
            ".write_bytes(",
            "writeFileSync",
            "fs.writeFile",
            "File.write",
            "'w')",
            "\"w\")",
            "'wb')",
            "\"wb\")",
        ],
    ),
    (
        Danger::Sends,
        &[
            "socket.",
            "requests.post",
            "requests.put",
            "urllib.request",
            "http.client",
            "smtplib",
            "fetch(",
            "net.connect",
            "TCPSocket",
            "IO::Socket",
        ],
    ),
    (Danger::ShowsSecrets, &["os.environ)", "os.environ.items", "process.env)", "ENV.to_h", "%ENV"]),
    (Danger::Stops, &["os.kill", "process.kill"]),
    (
        Danger::Unclear,
        &[
            "os.system",
            "subprocess",
            "os.popen",
            "os.exec",
            "pty.spawn",
            "child_process",
            "execSync",
            "spawnSync",
            "system(",
            "exec(",
            "eval(",
            "__import__",
            "base64",
            "`",
        ],
    ),
];

/// Returns the dangers of code.
pub(super) fn dangers(code: &str) -> impl Iterator<Item = Danger> {
    TELLING
        .iter()
        .filter(move |(_, words)| words.iter().any(|word| code.contains(word)))
        .map(|(danger, _)| *danger)
        .collect::<Vec<_>>()
        .into_iter()
}
