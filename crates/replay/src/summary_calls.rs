//! Summaries as requested from the conversation's own model: the real request, answered with the text of the rules.

use std::sync::Arc;
use std::time::Duration;

use throughline_compaction::{Account, Maker, RuleSummariser, Summariser, SummaryFuture, SummaryRequest};
use throughline_engine::{
    CompressRequest, ModelSummaries, OwnModel, SummariserSource, SummaryHost, SummarySetup,
};
use throughline_redact::Redactor;

use crate::fake_provider::FakeProvider;

/// Never reached: the answer is computed immediately.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Summaries requested from the conversation's own model, with answers written by rules.
pub(crate) struct RuleWrittenSummaries {
    models: ModelSummaries,
    provider: Arc<FakeProvider>,
}

impl RuleWrittenSummaries {
    pub(crate) fn new(provider: Arc<FakeProvider>) -> Self {
        let models = ModelSummaries::new(SummarySetup {
            routes: Vec::new(),
            own_model: OwnModel::First,
            time_limit: TIME_LIMIT,
            redactor: Some(Redactor::new()),
            host: Arc::<crate::fake_provider::ReplayClock>::clone(&provider.clock),
            health: Arc::default(),
        });
        Self { models, provider }
    }
}

impl SummariserSource for RuleWrittenSummaries {
    fn summariser_for(&self, request: &CompressRequest) -> Arc<dyn Summariser> {
        let asked = self.models.summariser_for(request);
        Arc::new(RuleWrittenSummariser { asked, provider: Arc::clone(&self.provider) })
    }

    fn summary_host(&self) -> Option<Arc<SummaryHost>> {
        self.models.summary_host()
    }
}

struct RuleWrittenSummariser {
    asked: Arc<dyn Summariser>,
    provider: Arc<FakeProvider>,
}

impl Summariser for RuleWrittenSummariser {
    fn name(&self) -> &str {
        self.asked.name()
    }

    fn maker(&self) -> Maker {
        self.asked.maker()
    }

    fn window_tokens(&self) -> Option<u64> {
        self.asked.window_tokens()
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move {
            let document = RuleSummariser.summarise(request.clone()).await?;
            self.provider.will_summarise(document.to_markdown());
            self.asked.summarise(request).await
        })
    }

    fn account(&self) -> Account {
        self.asked.account()
    }
}
