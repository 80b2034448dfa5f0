//! A question to the summary models about texts that are quoted with it.
//!
//! Not for: choosing the texts, or using the answer.

use std::sync::Mutex;

use throughline_tokens::{TextProfile, TokenModel};

use super::answer_budget::answer_room;
use super::call::{CallPurpose, CallTotals, SummaryCaller};
use super::failure::RouteFailure;
use super::form::SummaryForm;
use super::source::{ModelAnswer, ModelQuestion};
use super::standalone::{Cap, plain_call};
use super::summariser::ModelSummaries;

impl ModelSummaries {
    /// Asks the models in order until one answers.
    pub(super) async fn ask(&self, question: &ModelQuestion<'_>) -> Result<ModelAnswer, String> {
        let mut problem = "no model is there to be asked".to_owned();
        let (setup, summary_host) = self.parts();
        let host = setup.host.as_ref();
        // The model's provider may not be the conversation's, so secrets are masked.
        let text =
            setup.redactor.as_ref().map_or_else(|| question.text.into(), |it| it.redact(question.text));
        let desk = SummaryCaller {
            summary_host,
            session: question.session,
            host,
            priority: question.priority,
            tally: Mutex::new(CallTotals::default()),
        };
        for route in self.routes() {
            let target = &route.target;
            let window_tokens = target.policy.window_tokens;
            let model = TokenModel::for_model(&target.model, target.wire_format);
            let estimate = |text: &str| model.estimate(&TextProfile::of(text));
            let answer_tokens = answer_room(question.answer_tokens, &target.model, window_tokens);
            let key = route.key(SummaryForm::Standalone);
            let texts = (question.instructions, text.as_ref());
            let asked = match plain_call(&route, window_tokens, texts, answer_tokens, Cap::Usual) {
                Ok((call, answer_tokens)) => {
                    let errand = CallPurpose {
                        task: question.task,
                        failed: "no answer".to_owned(),
                        prompt_tokens: estimate(texts.0).saturating_add(estimate(texts.1)),
                        answer_tokens,
                    };
                    desk.send(&route, call, &errand, |answer| match answer.text().trim() {
                        "" => Err(RouteFailure::NotWritable("the answer was empty".to_owned())),
                        text => Ok(text.to_owned()),
                    })
                    .await
                }
                Err(failure) => Err(failure),
            };
            match asked {
                Ok(text) => {
                    setup.health.worked(&key);
                    return Ok(ModelAnswer { text, author: target.model.clone() });
                }
                Err(failure) => {
                    problem = format!("{route}: {failure}");
                    setup.health.failed(key, &failure, host.now_ms());
                }
            }
        }
        Err(setup.redactor.as_ref().map_or(problem.clone(), |it| it.redact(&problem).into_owned()))
    }
}
