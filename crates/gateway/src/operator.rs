//! Operations for the operator that only the program around a gateway can implement, because it knows the settings file, the list of
//! tokens and the file of the record.
//!
//! All of them block; the gateway calls them on threads for blocking work. Errors are messages for the operator.

use serde_json::Value;

use crate::auth::access_tokens::{AccessTokens, TokenLimits};

/// An access token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The name of the token.
    pub name: String,
    /// The owner whose conversations the holder sees.
    pub owner: String,
    /// The limits on its use.
    pub limits: TokenLimits,
    /// Whether it is an operator's token.
    pub operator: bool,
}

/// A change of one setting.
#[derive(Clone, Debug)]
pub struct SettingChange {
    /// The key of the setting, such as `compression.threshold`.
    pub key: String,
    /// The new value; `None` removes the setting from the file.
    pub value: Option<String>,
    /// Whether to report the change without making it.
    pub preview: bool,
}

/// The operator's tools of the program around a gateway.
pub trait OperatorTools: Send + Sync {
    /// The state of the record: whether it is sound, the findings, its size.
    fn record_health(&self) -> Result<Value, String>;
    /// The context engines: built-in, installed and configured ones, and the problems of each.
    fn engines(&self) -> Result<Value, String>;
    /// Every setting with its value, its origin and its description.
    fn settings(&self) -> Result<Value, String>;
    /// Changes a setting, or reports the change that a preview would make.
    fn change_setting(&self, change: &SettingChange) -> Result<Value, String>;
    /// The list of access tokens.
    fn tokens(&self) -> Result<AccessTokens, String>;
    /// Creates a token and returns its text. Only a hash is stored, so the text cannot be read again.
    fn create_token(&self, token: &NewToken) -> Result<String, String>;
    /// Removes a token. Returns `false` if there is none of this name.
    fn revoke_token(&self, name: &str) -> Result<bool, String>;
}
