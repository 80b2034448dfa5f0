//! Writes a JSON object member by member, in the order of the calls.

use throughline_transcript::write_json_string;

/// An object under construction.
pub(crate) struct ObjectWriter {
    out: String,
}

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self { out: String::from("{") }
    }

    /// A member of raw JSON.
    pub(crate) fn raw(mut self, name: &str, json: &str) -> Self {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        write_json_string(name, &mut self.out);
        self.out.push(':');
        self.out.push_str(json);
        self
    }

    /// A member that is a string.
    pub(crate) fn text(self, name: &str, text: &str) -> Self {
        let json = throughline_transcript::compact_json_string(text);
        self.raw(name, &json)
    }

    /// A member that is a string or `null`.
    pub(crate) fn text_or_null(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self.raw(name, "null"),
        }
    }

    /// A member that is a number.
    pub(crate) fn number(self, name: &str, number: u64) -> Self {
        self.raw(name, &number.to_string())
    }

    /// A member, when there is one.
    pub(crate) fn maybe(self, name: &str, json: Option<&str>) -> Self {
        match json {
            Some(json) => self.raw(name, json),
            None => self,
        }
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push('}');
        self.out
    }
}

/// A list of raw values.
pub(crate) fn list<T: AsRef<str>>(values: &[T]) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    ["[", &values.join(","), "]"].concat()
}
