//! The settings file: loading it, and changing one value in it.

use throughline_config::{Editor, Loader};

/// Any bytes as a settings file, its first line as an assignment (`KEY=VALUE`): loaded or refused with errors that can
/// be shown; a value that was set stays set, and setting it again changes nothing.
pub fn config(data: &[u8]) {
    let (first, file) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, [].as_slice()),
    };
    let assignment = String::from_utf8_lossy(first);
    let variables = [("THROUGHLINE_COMPRESSION_THRESHOLD", assignment.as_ref()), ("HOME", "/home/dev")];
    show(Loader::new().file("config.yaml", file).load());
    show(
        Loader::new()
            .file("config.yaml", file)
            .file("second.yaml", file)
            .env(variables)
            .set(&assignment)
            .load(),
    );
    let Some((key, value)) = assignment.split_once('=') else { return };
    let Ok(editor) = Editor::new("config.yaml", file) else { return };
    if let Ok(edit) = editor.set(key, value) {
        let again = Editor::new("config.yaml", edit.text.as_bytes()).expect("an edited file can be edited");
        let second = again.set(key, value).expect("what was set once can be set again");
        assert_eq!(second.text, edit.text, "setting a value twice changes nothing");
        assert!(!second.is_changed);
    }
    if let Ok(edit) = editor.unset(key) {
        let again = Editor::new("config.yaml", edit.text.as_bytes()).expect("an edited file can be edited");
        let second = again.unset(key).expect("what was removed once can be removed again");
        assert!(!second.is_changed, "removing a value twice changes nothing");
    }
}

fn show(loaded: Result<throughline_config::Loaded, throughline_config::ConfigErrors>) {
    match loaded {
        Ok(loaded) => drop(format!("{loaded:?}")),
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}
