//! Operations that only the program around a gateway can do, because it knows the settings file, the list of tokens and the
//! file of the record.
//!
//! All of them block and run off the threads that serve requests. Errors are messages for the operator.

use serde_json::Value;

use crate::auth::access_tokens::{AccessTokens, TokenLimits};

/// A token to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What to call it.
    pub name: String,
    /// Whose conversations its holder sees.
    pub owner: String,
    /// How much its holder may use.
    pub limits: TokenLimits,
    /// Whether it is an operator's.
    pub operator: bool,
}

/// A change of one setting.
#[derive(Clone, Debug)]
pub struct SettingChange {
    /// The setting, such as `compression.threshold`.
    pub key: String,
    /// Its new value; `None` takes it out of the file.
    pub value: Option<String>,
    /// Only say what would change.
    pub preview: bool,
}

/// What the program around a gateway does for its operator.
pub trait OperatorTools: Send + Sync {
    /// The state of the record: whether it is well, the findings, its size.
    fn record_health(&self) -> Result<Value, String>;
    /// The context engines there are: built in, installed, in use, and what is wrong with each.
    fn engines(&self) -> Result<Value, String>;
    /// Every setting with its value, its origin and what it is for.
    fn settings(&self) -> Result<Value, String>;
    /// Changes a setting, or says what would change.
    fn change_setting(&self, change: &SettingChange) -> Result<Value, String>;
    /// The tokens there are.
    fn tokens(&self) -> Result<AccessTokens, String>;
    /// Makes a token and returns it; this is the only time it is seen.
    fn create_token(&self, token: &NewToken) -> Result<String, String>;
    /// Takes a token away; `false` when there is none of that name.
    fn revoke_token(&self, name: &str) -> Result<bool, String>;
}
