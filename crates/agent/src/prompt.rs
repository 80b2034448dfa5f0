//! The system prompt: built once per conversation, in a fixed order, and sent unchanged from then on.
//!
//! The most stable parts come first: the agent's role, its tools, the basics; then the project files, the notes, and finally the date. No
//! part depends on the model, the time of day or the fill of the window.
//!
//! Not for: finding files, clocks, or instructions for one turn only.

/// A project file with instructions for agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// The name shown to the model.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The parts of a system prompt.
#[derive(Clone, Debug, Default)]
pub struct PromptParts<'a> {
    /// The folder the agent works in.
    pub folder: &'a str,
    /// The operating system.
    pub system: &'a str,
    /// The names of the tools.
    pub tools: &'a [String],
    /// The project files, the most general first.
    pub files: &'a [ContextFile],
    /// The contents of `MEMORY.md`.
    pub memory: &'a str,
    /// The contents of `USER.md`.
    pub user: &'a str,
    /// The date, such as `2026-11-16`.
    pub date: &'a str,
}

/// The longest part of a file that is included, in characters: a prompt is paid for with every call.
const MAX_FILE_CHARS: usize = 20_000;

const IDENTITY: &str = include_str!("prompts/identity.md");
const TRUST: &str = include_str!("prompts/trust.md");

/// Advice about tools that their schemas do not contain.
const TOOL_GUIDANCE: [(&str, &str); 7] = [
    ("read_file", "read_file shows line numbers; they are not part of the file. Read long files in pieces."),
    (
        "write_file",
        "write_file replaces a whole file. For changes within one, patch is safer and easier to review.",
    ),
    (
        "patch",
        "patch needs old_text exactly as it stands in the file, with enough around it to be found once.",
    ),
    ("search_files", "search_files finds names and content faster than a command does; start there."),
    (
        "terminal",
        "terminal runs commands with sh and no keyboard: pass options instead of waiting for questions. Servers and long \
         work go to the background.",
    ),
    (
        "memory",
        "memory keeps notes for later conversations: what the person prefers, how their projects work, what was learnt the \
         hard way. Not what is being done right now.",
    ),
    (
        "recall",
        "recall finds everything that was ever said or printed in this conversation, word for word, also what a summary has \
         replaced and results that were set aside. Use it before you guess at details from before, and before you ask the \
         person again.",
    ),
];

impl PromptParts<'_> {
    /// Renders the prompt.
    #[must_use]
    pub fn render(&self) -> String {
        let mut sections = vec![IDENTITY.trim().to_owned()];
        let has = |name: &str| self.tools.iter().any(|tool| tool == name);
        let guidance: Vec<String> =
            TOOL_GUIDANCE.iter().filter(|(name, _)| has(name)).map(|(_, text)| format!("- {text}")).collect();
        if !guidance.is_empty() {
            sections.push(format!("Your tools:\n{}", guidance.join("\n")));
        }
        sections.push(TRUST.trim().to_owned());
        sections.push(format!("The folder you work in is {} on {}.", self.folder, self.system));
        for file in self.files {
            sections.push(quoted("project-file", &file.name, &file.text));
        }
        if !self.memory.trim().is_empty() {
            sections.push(quoted("memory", "MEMORY.md", self.memory));
        }
        if !self.user.trim().is_empty() {
            sections.push(quoted("memory", "USER.md", self.user));
        }
        sections.push(format!("The date is {}.", self.date));
        sections.join("\n\n")
    }
}

/// Encloses a text in tags that the text cannot close.
fn quoted(tag: &str, name: &str, text: &str) -> String {
    let closing = format!("</{tag}");
    let text = text.trim().replace(&closing, &format!("< /{tag}"));
    let mut kept = text.as_str();
    let mut note = String::new();
    if let Some((end, _)) = text.char_indices().nth(MAX_FILE_CHARS) {
        kept = text.get(..end).unwrap_or_default();
        let left_out = text.chars().count() - MAX_FILE_CHARS;
        note = format!("\n[{left_out} more characters; read_file shows all of it]");
    }
    format!("<{tag} name=\"{name}\">\n{kept}{note}\n</{tag}>")
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
