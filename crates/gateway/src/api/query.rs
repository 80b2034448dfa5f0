//! Query strings. Unknown parameters are an error, so that a misspelt limit is not ignored.

use std::str::FromStr;

use super::error::ApiError;

/// Query parameters by name.
#[derive(Debug, Default)]
pub(super) struct Query {
    values: Vec<(String, String)>,
}

impl Query {
    /// Parses parameters. Each may occur once and must be in `known`.
    pub(super) fn parse(text: Option<&str>, known: &[&str]) -> Result<Self, ApiError> {
        let mut values: Vec<(String, String)> = Vec::new();
        for (name, value) in url::form_urlencoded::parse(text.unwrap_or_default().as_bytes()) {
            if !known.contains(&name.as_ref()) {
                let shown: String = name.chars().take(40).collect();
                return Err(ApiError::invalid(format!("unknown query parameter `{shown}`")));
            }
            if values.iter().any(|(other, _)| *other == name) {
                return Err(ApiError::invalid(format!("`{name}` is given twice")));
            }
            if value.contains('\0') {
                return Err(ApiError::invalid(format!("`{name}` contains a NUL character")));
            }
            values.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self { values })
    }

    /// The value of a parameter, if it is present.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The value of a numeric parameter within `least..=most`, if it is present.
    pub(super) fn number<N: FromStr + PartialOrd + std::fmt::Display>(
        &self,
        name: &str,
        least: N,
        most: N,
    ) -> Result<Option<N>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        // `parse` would also accept a leading plus sign.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<N>() {
            Ok(number) if is_plain && number >= least && number <= most => Ok(Some(number)),
            _ => Err(ApiError::invalid(format!("`{name}` must be a whole number from {least} to {most}"))),
        }
    }

    /// The value of a boolean parameter; `false` if it is absent.
    pub(super) fn switch(&self, name: &str) -> Result<bool, ApiError> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiError::invalid(format!("`{name}` must be true or false"))),
        }
    }
}
