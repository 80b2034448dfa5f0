//! The shortened text under construction, for every kind of content.

/// The beginning of every mark of an omission. A text that contains one was shortened before, or by another program.
pub(crate) const MARK: &str = "[left out: ";

/// A shortened text before it is compared with the original.
pub(super) struct Draft {
    pub(super) text: String,
    /// A description of the omissions.
    pub(super) left_out: String,
}
