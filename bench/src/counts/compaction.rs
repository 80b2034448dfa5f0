//! Compaction of a generated transcript of a megabyte: without any earlier work, and with everything gathered before.

use throughline_compaction::{Conversation, Ledger, Outcome};
use throughline_redact::Redactor;
use throughline_testkit::big_transcript;
use throughline_transcript::{DecodeOptions, Groups, Transcript, WireFormat, decode};

use super::workloads::Round;
use crate::measure::Estimator;

const BYTES: usize = 1_000_000;
const MESSAGES: usize = 600;

struct Stage {
    transcript: Transcript,
    estimator: Estimator,
    redactor: Redactor,
}

impl Stage {
    fn new() -> Result<Self, String> {
        let text = big_transcript(WireFormat::Anthropic, BYTES, MESSAGES, 7);
        let transcript =
            decode(text.into_bytes(), &DecodeOptions::default()).map_err(|error| error.to_string())?;
        Ok(Self { transcript, estimator: Estimator::default(), redactor: Redactor::new() })
    }

    fn gather(&self) -> (Groups, Ledger, Vec<u64>) {
        let groups = Groups::of(&self.transcript.messages);
        let count = |message: &_| self.estimator.message(message);
        let (ledger, sizes) =
            Ledger::gather(&self.transcript.messages, &groups, Some(&self.redactor), &count);
        (groups, ledger, sizes)
    }

    fn compact(&self, (groups, ledger, sizes): &(Groups, Ledger, Vec<u64>)) -> Result<(), String> {
        let budgets = self.estimator.budgets(sizes.iter().sum::<u64>() * 2, 0.20)?;
        let conversation = Conversation {
            wire_format: self.transcript.wire_format,
            messages: &self.transcript.messages,
            groups,
            sizes,
            ledger: Some(ledger),
            fixed_tokens: 0,
        };
        // Without a clock: the work of a round must not depend on the time.
        let attempt = self.estimator.compact(&conversation, &budgets, &self.redactor, &|| 0);
        match attempt.outcome {
            Outcome::Completed(_) => Ok(()),
            outcome => Err(format!("the transcript was not compacted: {outcome:?}")),
        }
    }
}

pub(super) fn cold() -> Result<Round, String> {
    let stage = Stage::new()?;
    Ok(Box::new(move || stage.compact(&stage.gather())))
}

pub(super) fn live() -> Result<Round, String> {
    let stage = Stage::new()?;
    let gathered = stage.gather();
    Ok(Box::new(move || stage.compact(&gathered)))
}
