//! Checks with whole conversations, as a host runs them.

use throughline_engine::{CompactionResult, ManualCompaction};
use throughline_transcript::WireFormat;

use super::check::{CheckResult, CheckVerdict, ConformanceCheck, MakeEngine};
use super::harness::SessionHarness;

/// The number of exchanges within which a window of this size must have been compacted this often.
const MOST_EXCHANGES: usize = 80;
const COMPACTIONS: u64 = 3;

const VIEW: &str = "`view`: places that exist, in order, each once; no tool call without its result and no result without \
                    its call; what the wire demands of roles; smaller than what was there; the last human message as it is";
const KEEP: &str = "`keep_messages`: exactly so many of the newest stay";
const FORCE: &str = "`force`: below the threshold too; `focus`: what most of the summary shall be about";
const RESTART: &str = "when a process has ended and is started again, `initialize`, `update_model` and `session_started` come \
                       before anything else";
const BOUNDARY: &str = "`boundary`: `compression`, `undo`, `redo`, `elsewhere`";

pub(super) async fn all(make: MakeEngine<'_>) -> Vec<ConformanceCheck> {
    let long = |wire_format| long_conversation(make, wire_format);
    vec![
        ConformanceCheck::of(
            "holds a long conversation on the chat wire",
            VIEW,
            long(WireFormat::Chat).await,
        ),
        ConformanceCheck::of(
            "holds a long conversation on the responses wire",
            VIEW,
            long(WireFormat::Responses).await,
        ),
        ConformanceCheck::of(
            "holds a long conversation on the anthropic wire",
            VIEW,
            long(WireFormat::Anthropic).await,
        ),
        ConformanceCheck::of("compacts when a person asks for it", FORCE, by_hand(make).await),
        ConformanceCheck::of("keeps as many of the newest messages as requested", KEEP, keeping(make).await),
        ConformanceCheck::of("continues in another process", RESTART, taken_up(make).await),
        ConformanceCheck::of("continues after an undo", BOUNDARY, undone(make).await),
    ]
}

/// Continues until the conversation has been compacted this often.
async fn talk_until(stage: &mut SessionHarness, compactions: u64) -> Result<(), String> {
    for exchanges in 0.. {
        if stage.session.compactions() >= compactions {
            break;
        }
        if exchanges >= MOST_EXCHANGES {
            return Err(format!(
                "after {exchanges} exchanges it has compacted {} times, where {compactions} were due",
                stage.session.compactions()
            ));
        }
        stage.talk().await?;
    }
    Ok(())
}

async fn long_conversation(make: MakeEngine<'_>, wire_format: WireFormat) -> CheckResult {
    let mut stage = SessionHarness::open(wire_format, make).await?;
    talk_until(&mut stage, COMPACTIONS).await?;
    stage.check_record()?;
    Ok(CheckVerdict::Passed)
}

async fn by_hand(make: MakeEngine<'_>) -> CheckResult {
    let mut stage = SessionHarness::open(WireFormat::Chat, make).await?;
    for _ in 0..8 {
        stage.talk().await?;
    }
    let wish = ManualCompaction { focus: Some("the bridge".to_owned()), ..ManualCompaction::default() };
    let result = stage.session.compact(wish).await;
    let verdict = answered(result)?;
    stage.check_events()?;
    stage.talk().await?;
    stage.check_record()?;
    Ok(verdict)
}

async fn keeping(make: MakeEngine<'_>) -> CheckResult {
    let mut stage = SessionHarness::open(WireFormat::Chat, make).await?;
    for _ in 0..8 {
        stage.talk().await?;
    }
    let (before, exchanges) = (stage.view(), 2);
    let kept = stage.session.messages_of_last(exchanges);
    let wish = ManualCompaction { keep_exchanges: Some(exchanges), ..ManualCompaction::default() };
    let result = stage.session.compact(wish).await;
    let verdict = answered(result)?;
    stage.check_events()?;
    let after = stage.view();
    if verdict == CheckVerdict::Passed
        && !after.ends_with(before.get(before.len() - kept..).unwrap_or_default())
    {
        let same = before.iter().rev().zip(after.iter().rev()).take_while(|(was, is)| was == is).count();
        return Err(format!("of the {kept} newest messages it kept {same}"));
    }
    if verdict == CheckVerdict::Passed && after.len() > kept + 4 {
        return Err(format!("beside the {kept} messages to be kept it left {}", after.len() - kept));
    }
    Ok(verdict)
}

async fn taken_up(make: MakeEngine<'_>) -> CheckResult {
    let mut stage = SessionHarness::open(WireFormat::Anthropic, make).await?;
    talk_until(&mut stage, 1).await?;
    let mut stage = stage.take_up(make).await?;
    talk_until(&mut stage, 2).await?;
    stage.check_record()?;
    Ok(CheckVerdict::Passed)
}

async fn undone(make: MakeEngine<'_>) -> CheckResult {
    let mut stage = SessionHarness::open(WireFormat::Chat, make).await?;
    // Well below the threshold, so that there is space for everything afterwards.
    for _ in 0..8 {
        stage.talk().await?;
    }
    let verdict = answered(stage.session.compact(ManualCompaction::default()).await)?;
    if verdict != CheckVerdict::Passed {
        return Ok(verdict);
    }
    let compacted = stage.session.messages().len();
    stage.session.undo().await.map_err(|error| format!("the compaction cannot be undone: {error}"))?;
    if stage.session.messages().len() <= compacted {
        return Err("nothing came back".to_owned());
    }
    stage.talk().await?;
    stage.check_record()?;
    Ok(verdict)
}

/// Checks the result of a compaction requested by the user: a view, or a message.
fn answered(result: CompactionResult) -> CheckResult {
    match result {
        CompactionResult::Completed(_) => Ok(CheckVerdict::Passed),
        CompactionResult::NoOp { detail, .. } => {
            Ok(CheckVerdict::LeftOut { why: format!("there is nothing it would compact: {detail}") })
        }
        CompactionResult::Aborted { detail, .. } => Err(detail),
        CompactionResult::Blocked(block) => Err(block.detail),
        CompactionResult::Locked { holder, .. } => Err(format!("it is locked by {holder}")),
    }
}
