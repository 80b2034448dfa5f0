//! The operator's tools of the gateway's page: settings, tokens, the state of the record. They do the same as `throughline config`,
//! `throughline token` and `throughline doctor --quick`.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_config::{Datum, Editor, Warning};
use throughline_gateway::{AccessTokens, NewToken, OperatorTools, SettingChange};
use throughline_store::{Depth, Examination};
use tokio::sync::Notify;

use crate::access_token_list::AccessTokenList;
use crate::app::App;
use crate::commands::config::value_json;
use crate::commands::doctor::{diagnosis_json, examine};
use crate::commands::plugins;
use crate::error::{CliError, path_words};
use crate::files::write_atomic;
use crate::home;
use crate::host::process::is_alive;
use crate::record::{RecordPlace, RecordStore, artifact_place};
use crate::settings::{bad_settings, load, read_config};

/// The operator's tools of a gateway with this home directory.
pub(super) struct HomeTools {
    pub(super) app: Arc<App>,
    /// The record, which may contain the access tokens.
    pub(super) store: RecordStore,
    /// Notified when the settings file has changed.
    pub(super) changed: Arc<Notify>,
}

impl HomeTools {
    fn tokens_of_record(&self) -> AccessTokenList<'_> {
        AccessTokenList::with(&self.app, &self.store)
    }
}

impl OperatorTools for HomeTools {
    fn record_health(&self) -> Result<Value, String> {
        let artifacts = artifact_place(&self.app).map_err(words)?;
        let examination = Examination {
            depth: Depth::Quick,
            now_ms: self.app.now().ms,
            is_alive: &is_alive,
            artifacts: artifacts.as_ref(),
        };
        let place = RecordPlace::of(&self.app).map_err(words)?;
        let diagnosis = examine(&self.app, &place, &examination, &mut |_| {});
        diagnosis.map(|diagnosis| diagnosis_json(&diagnosis)).map_err(words)
    }

    fn engines(&self) -> Result<Value, String> {
        plugins::listed(&self.app).map(|engines| json!(engines)).map_err(words)
    }

    fn settings(&self) -> Result<Value, String> {
        let loaded = load(&self.app, &[]).map_err(words)?;
        Ok(json!({
            "file": path_words(&self.app.config_path()),
            "settings": loaded.values.iter().map(value_json).collect::<Vec<_>>(),
            "warnings": Warning::lines(&loaded.warnings),
        }))
    }

    fn change_setting(&self, change: &SettingChange) -> Result<Value, String> {
        let path = self.app.config_path();
        let name = path_words(&path);
        let before = read_config(&path).map_err(words)?.unwrap_or_default();
        let editor = Editor::new(&name, &before);
        let edit = editor.and_then(|editor| match &change.value {
            Some(value) => editor.set(&change.key, value),
            None => editor.unset(&change.key),
        });
        let edit = edit.map_err(|errors| words(bad_settings(&errors)))?;
        let applied = edit.is_changed && !change.preview;
        if applied {
            home::make_private(&self.app).map_err(words)?;
            write_atomic(&path, edit.text.as_bytes()).map_err(words)?;
            self.changed.notify_one();
        }
        let loaded = load(&self.app, &[]).map_err(words)?;
        let current = loaded.values.iter().find(|value| value.key == edit.key);
        let is_secret = current.is_some_and(|value| matches!(value.datum, Datum::Secret(_)));
        let (removed, added) = match is_secret {
            true => (Vec::new(), Vec::new()),
            false => changed_lines(&String::from_utf8_lossy(&before), &edit.text),
        };
        Ok(json!({
            "file": name,
            "key": edit.key,
            "changed": edit.is_changed,
            "applied": applied,
            "removed": removed,
            "added": added,
            "current": current.map(value_json),
            "warnings": Warning::lines(&edit.warnings),
        }))
    }

    fn tokens(&self) -> Result<AccessTokens, String> {
        self.tokens_of_record().read().map_err(words)
    }

    fn create_token(&self, token: &NewToken) -> Result<String, String> {
        let random = AccessTokens::random_bytes().ok_or("the system's random source failed")?;
        let now_ms = self.app.now().ms;
        let mut refused = None;
        let secret = self.tokens_of_record().change(|book| {
            let added = book.add(&token.name, &token.owner, &random, now_ms, token.limits);
            if token.operator && added.is_ok() {
                book.make_operator(&token.name);
            }
            Ok(added.map_err(|error| refused = Some(error.to_string())).ok())
        });
        secret.map_err(words)?.ok_or_else(|| refused.unwrap_or_default())
    }

    fn revoke_token(&self, name: &str) -> Result<bool, String> {
        self.tokens_of_record().change(|book| Ok(book.revoke(name))).map_err(words)
    }
}

fn words(error: CliError) -> String {
    error.whole_on_one_line()
}

/// The lines that differ between two texts: everything except their common beginning and end.
fn changed_lines(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let left = before.len().min(after.len()) - same;
    let tail = before.iter().rev().zip(after.iter().rev()).take(left).take_while(|(a, b)| a == b).count();
    let part = |lines: &[&str]| -> Vec<String> {
        let part = lines.get(same..lines.len() - tail).unwrap_or_default();
        part.iter().map(|line| (*line).to_owned()).collect()
    };
    (part(&before), part(&after))
}

#[cfg(test)]
mod tests {
    //! Changing settings and tokens through the page.

    use throughline_gateway::TokenLimits;

    use super::*;

    fn tools() -> (tempfile::TempDir, HomeTools) {
        let home = tempfile::tempdir().unwrap();
        let app = Arc::new(App::for_tests(home.path().join("home")));
        let store = RecordStore::open(&app).unwrap();
        (home, HomeTools { app, store, changed: Arc::default() })
    }

    fn change(value: Option<&str>, preview: bool) -> SettingChange {
        let key = "compression.threshold".to_owned();
        SettingChange { key, value: value.map(str::to_owned), preview }
    }

    #[test]
    fn a_preview_of_a_setting_changes_nothing() {
        let (_home, tools) = tools();
        let preview = tools.change_setting(&change(Some("0.4"), true)).unwrap();
        assert_eq!((&preview["changed"], &preview["applied"]), (&json!(true), &json!(false)));
        assert_eq!(preview["added"], json!(["compression:", "  threshold: 0.4"]));
        assert!(!tools.app.config_path().exists());
        let applied = tools.change_setting(&change(Some("0.4"), false)).unwrap();
        assert_eq!(applied["current"]["value"], json!(0.4));
        let again = tools.change_setting(&change(Some("0.5"), true)).unwrap();
        assert_eq!(
            (&again["removed"], &again["added"]),
            (&json!(["  threshold: 0.4"]), &json!(["  threshold: 0.5"]))
        );
        assert!(tools.change_setting(&change(Some("often"), false)).unwrap_err().contains("threshold"));
        assert_eq!(
            tools.change_setting(&change(None, false)).unwrap()["current"]["origin"]["kind"],
            "default"
        );
    }

    #[test]
    fn a_token_is_made_once_and_revoked() {
        let (_home, tools) = tools();
        let token = |name: &str| NewToken {
            name: name.to_owned(),
            owner: "ada".to_owned(),
            limits: TokenLimits::default(),
            operator: true,
        };
        let secret = tools.create_token(&token("desk")).unwrap();
        let book = tools.tokens().unwrap();
        assert!(book.find(&secret).is_some_and(|entry| entry.operator));
        assert!(tools.create_token(&token("desk")).unwrap_err().contains("already"));
        assert!(tools.create_token(&token("no name")).is_err());
        assert_eq!((tools.revoke_token("desk"), tools.revoke_token("desk")), (Ok(true), Ok(false)));
    }
}
