//! Tests of a client's prompt.

use throughline_tokens::Family;

use super::*;

fn fitted(client: &ClientPrompt, called: &[&str], tokens: u64) -> (Vec<String>, FixedSplit) {
    let called = called.iter().map(|name| (*name).to_owned()).collect();
    let model = TokenModel::of(Family::Claude);
    let (system, tools, split) = client.fitted(&called, tokens, &model);
    assert!(RawJson(&system).as_text().is_some());
    let name = |tool: RawJson<'_>| tool.get("name").unwrap().as_text().unwrap().into_owned();
    (RawJson(&tools).elements().map(name).collect(), split)
}

#[test]
fn generated_tools_fill_the_prompt_up_to_the_size_that_was_reported() {
    let (names, split) = fitted(&ClientPrompt::claude_code(), &["Bash"], 60_000);
    let sum = split.system_tokens + split.tools_tokens + split.generated_tokens;
    assert!((58_000..=60_000).contains(&sum), "{split:?}");
    assert!(names.contains(&"Workflow".to_owned()) && split.generated_tools > 10);
    let (_, alone) = fitted(&ClientPrompt::claude_code().without_generated_tools(), &["Bash"], 60_000);
    assert_eq!(alone.generated_tools, 0);
    assert_eq!((alone.system_tokens, alone.tools_tokens), (split.system_tokens, split.tools_tokens));
}

#[test]
fn a_smaller_prompt_has_the_tools_that_were_called() {
    let (names, split) = fitted(&ClientPrompt::claude_code(), &["Workflow", "mcp__linear__create"], 24_000);
    for name in ["Workflow", "mcp__linear__create"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    assert!(names.len() < TOOLS.len(), "{names:?}");
    assert!(split.system_tokens + split.tools_tokens <= 24_000 || names.len() == 2, "{split:?}");
}
