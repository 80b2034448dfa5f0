//! Tests of valid and invalid manifests.

use super::*;

#[test]
fn a_manifest_says_how_to_start() {
    let text =
        "name: window\nversion: 1.2\ndescription: Keeps the newest.\ncommand: [engine.sh, --keep, 5]\n";
    let manifest = Manifest::read("window", text.as_bytes()).unwrap();
    assert_eq!((manifest.version.as_str(), manifest.description.as_str()), ("1.2", "Keeps the newest."));
    let folder = Path::new("plugins/window");
    let launch = manifest.launch(folder, |path| path == folder.join("engine.sh"));
    assert_eq!(launch.program, folder.join("engine.sh"));
    assert_eq!(launch.arguments, ["--keep", "5"]);
    let plain = Manifest::read("window", b"command: python3 engine.py").unwrap();
    assert_eq!(plain.launch(folder, |_| false).program, Path::new("python3"));
    assert_eq!(plain.command, ["python3", "engine.py"]);
}

#[test]
fn what_is_wrong_is_reported() {
    for (text, words) in [
        ("name: window\n", "`command` is missing"),
        ("command: []\n", "plugin.yaml:1: `command` must be a program"),
        ("command: x\nversion: [1, 2]\n", "plugin.yaml:2: `version` must be a text"),
        ("command: x\nname: other\n", "names the engine `other`, but its directory is called `window`"),
        ("command: {a: b}\n", "`command` must be a program"),
        ("command: 'x\n", "plugin.yaml"),
    ] {
        let error = Manifest::read("window", text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}
