//! The shortened text under construction, for every kind of content.

/// Begins every mark of something left out. A text that holds one was shortened before, or by somebody else.
pub(crate) const MARK: &str = "[left out: ";

/// A shortened text before it was compared with the whole.
pub(super) struct Draft {
    pub(super) text: String,
    /// What was left out, in words.
    pub(super) left_out: String,
}
