//! The recorded client's own prompts: the content of each of its calls, with its own compactions and cache marks.

use throughline_provider::{
    CacheMarks, CachePolicy, MarkComplaint, MarkLayout, PrefixCache, UnmarkedRequest,
};
use throughline_tokens::{ContentProfile, TokenModel};
use throughline_transcript::{Message, RawJson, Role, WireFormat, text_message};
use throughline_wire::{Request, RequestError, RequestParts};

use crate::bill::{Bill, Purpose, SummaryCost, Tariff};
use crate::fixed_prompt::FixedPrompt;
use crate::recording::Recording;

/// The replacement for the recorded client's own request for a summary.
const INSTRUCTION: &str =
    "Summarise the conversation so far, so that the work can go on from the summary alone.";

/// Why a prompt could not be priced.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// It cannot be encoded.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A provider would refuse its marks.
    #[error(transparent)]
    Marks(#[from] MarkComplaint),
}

/// A call of the recorded client.
struct BaselineCall {
    /// The JSON of its messages.
    prompt: Vec<String>,
    purpose: Purpose,
    answered_tokens: u64,
    at_ms: i64,
}

/// The data that is the same for every call.
pub(crate) struct Baseline<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) fixed: &'a FixedPrompt,
    pub(crate) policy: CachePolicy,
    pub(crate) token_model: &'a TokenModel,
    pub(crate) tariff: &'a Tariff,
    pub(crate) summaries: SummaryCost,
}

impl Baseline<'_> {
    /// Prices every call as the recorded client made it.
    pub(crate) fn bill(&self, mut cache: PrefixCache) -> Result<Bill, PromptError> {
        let mut bill = Bill::default();
        let bare: Vec<String> = self
            .recording
            .messages
            .iter()
            .map(|message| CacheMarks::removed_from(message.json()).into_owned())
            .collect();
        let request = self.request()?;
        let mut compactions = self.recording.compactions.iter().peekable();
        let mut last_prompt: Option<Vec<String>> = None;
        for call in &self.recording.calls {
            while let Some(compaction) = compactions.next_if(|next| next.message <= call.answer.start) {
                bill.compactions += 1;
                if let (SummaryCost::ByModel, Some(mut prompt)) = (self.summaries, last_prompt.take()) {
                    prompt.push(text_message(self.recording.wire_format, Role::User, INSTRUCTION));
                    let answered_tokens = self.summary_tokens(compaction.message, &compaction.view);
                    let (purpose, at_ms) = (Purpose::Summary, compaction.at_ms);
                    let asked = BaselineCall { prompt, purpose, answered_tokens, at_ms };
                    self.book(&mut bill, &mut cache, &request, &asked)?;
                }
            }
            let (start, view) = self.recording.view_of(call);
            let said = bare.get(start..call.answer.start).unwrap_or_default();
            let prompt: Vec<String> =
                view.iter().map(|message| message.json().to_owned()).chain(said.iter().cloned()).collect();
            let answer = self.recording.messages.get(call.answer.clone()).unwrap_or_default();
            let answered_tokens = answer.iter().map(|message| self.size(message)).sum();
            let mut asked =
                BaselineCall { prompt, purpose: Purpose::Conversation, answered_tokens, at_ms: call.at_ms };
            self.book(&mut bill, &mut cache, &request, &asked)?;
            asked.prompt.extend(bare.get(call.answer.clone()).unwrap_or_default().iter().cloned());
            last_prompt = Some(asked.prompt);
        }
        Ok(bill)
    }

    fn size(&self, message: &Message) -> u64 {
        self.token_model.estimate_content(&ContentProfile::of_message(message))
    }

    /// Tokens of the client's own summary.
    fn summary_tokens(&self, place: usize, view: &[Message]) -> u64 {
        match view {
            [] => self.recording.messages.get(place).map_or(0, |message| self.size(message)),
            view => view.iter().map(|message| self.size(message)).sum(),
        }
    }

    /// Returns the request without messages, marked as the client marks: system prompt and end.
    fn request(&self) -> Result<Request, RequestError> {
        let text = self.fixed.text();
        let mut request = Request::build(
            self.recording.wire_format,
            &self.fixed.parts(&self.tariff.model, &text),
            Vec::new(),
        )?;
        match self.policy {
            CachePolicy::Marks { layout: MarkLayout::Anthropic, ttl, .. } => {
                let marks = CacheMarks { layout: MarkLayout::Anthropic, ttl };
                let system = request.system().map(|system| system.0.to_owned());
                let marked = marks.place(&UnmarkedRequest {
                    system: system.as_deref().map(RawJson),
                    notes_after_system: 0,
                    tools: None,
                    has_automatic_mark: false,
                    messages: &[],
                });
                if let Some(system) = marked.system {
                    request.set_member("system", &system)?;
                }
                let mark = format!(r#"{{"type":"ephemeral","ttl":"{ttl}"}}"#);
                request.set_member("cache_control", &mark)?;
            }
            CachePolicy::Key => request.set_member("prompt_cache_key", "\"recorded\"")?,
            CachePolicy::Marks { .. } | CachePolicy::Unmarked => {}
        }
        Ok(request)
    }

    /// Prices one prompt.
    fn book(
        &self,
        bill: &mut Bill,
        cache: &mut PrefixCache,
        request: &Request,
        asked: &BaselineCall,
    ) -> Result<(), PromptError> {
        let mut body = request.with_messages(asked.prompt.iter().map(String::as_str));
        if let CachePolicy::Marks { layout: MarkLayout::ChatParts, ttl, .. } = self.policy {
            let messages = Request::decode(WireFormat::Chat, body)?.messages().to_vec();
            let mut bare =
                Request::build(WireFormat::Chat, &RequestParts::new(&self.tariff.model), Vec::new())?;
            body = CacheMarks { layout: MarkLayout::ChatParts, ttl }.encode(&mut bare, &messages, 0).0;
        }
        let priced = cache.ask(&Request::decode(self.recording.wire_format, body)?, asked.at_ms)?;
        cache.answer_began(&priced, asked.at_ms);
        let mut reported = priced.reported;
        reported.usage.output = asked.answered_tokens;
        bill.book(self.tariff, asked.purpose, reported, priced.fixed_tokens, asked.at_ms);
        Ok(())
    }
}
