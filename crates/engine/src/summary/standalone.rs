//! Standalone summary requests to any model: the compacted part is quoted as data, in several parts if the model's window is
//! too small.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use throughline_compaction::{
    Maker, Section, SummariseError, Summariser, SummaryDocument, SummaryFuture, SummaryKind, SummaryRequest,
};
use throughline_provider::{OutgoingCall, ProviderErrorKind, RequestComplaint, RequestLimits};
use throughline_redact::Redactor;
use throughline_tokens::{TextProfile, TokenModel};
use throughline_transcript::{Role, SharedText, WireFormat, decode_message, text_message};
use throughline_wire::{CapMember, Request, RequestParts, Streaming, System};

use super::answer_budget::answer_room;
use super::call::{SummaryCall, SummaryCaller};
use super::failure::RouteFailure;
use super::form::SummaryForm;
use super::parse::{Notes, SummaryDefect};
use super::prompt::SummaryBrief;
use super::quote_mark::QuoteMark;
use super::route::SummaryRoute;
use super::transcript::{RenderedTranscript, shortened};
use crate::limits::target::ModelTarget;
use crate::prompt::cached_prompt::CachedPrompt;

/// The limit of attempts per part: the first, a repetition, and one with a corrected parameter.
const MOST_TRIES: u32 = 3;
/// Percentage of the window reserved for errors of the estimate.
const MARGIN_PERCENT: u64 = 8;
/// Percentage of the window that a summary may use.
const SUMMARY_PERCENT: u64 = 25;
/// The minimum space for messages.
const LEAST_PART_TOKENS: u64 = 200;
/// The minimum budget of the summary of a part.
const LEAST_PART_BUDGET_TOKENS: u64 = 300;
/// The budget of all parts, as a percentage: parts repeat some facts, which merging removes.
const PART_BUDGET_PERCENT: u64 = 125;
/// Characters of the user's next message to quote, ...
const NEXT_CHARS: u64 = 700;
/// ... at most one per this many tokens of the window.
const NEXT_CHAR_TOKENS: u64 = 16;
/// A model with a window of at most this writes one section at a time: instructions for thirteen sections and an answer with all of them
/// would leave little space for messages, and such small models lose track of them.
const SMALL_WINDOW_TOKENS: u64 = 8_192;
/// The maximum size of such a section, as a percentage of the window.
const SMALL_SECTION_PERCENT: u64 = 8;
/// After an answer that was too long, the second attempt gets this percentage of the budget.
const SHORTER_PERCENT: u64 = 65;

/// A standalone request to one model.
pub(crate) struct StandaloneCall<'a> {
    pub(crate) route: &'a SummaryRoute,
    pub(crate) desk: &'a SummaryCaller<'a>,
    pub(crate) rendered: &'a RenderedTranscript,
    pub(crate) redactor: Option<&'a Redactor>,
    pub(crate) memory: Option<&'a str>,
    pub(crate) today: &'a str,
    pub(crate) window_tokens: u64,
    pub(crate) token_model: TokenModel,
    /// The call whose headers are sent along: the last one to the conversation's own model.
    pub(crate) extras: Option<&'a CachedPrompt>,
    /// All messages to summarise, possibly in more than one part.
    pub(crate) whole: Range<usize>,
    pub(crate) happened: Mutex<AttemptLog>,
}

/// Events while the parts were written.
#[derive(Debug, Default)]
pub(crate) struct AttemptLog {
    pub(crate) failure: Option<RouteFailure>,
    pub(crate) missing: Vec<Section>,
}

/// The texts of a prompt besides the messages.
struct PromptParts {
    earlier: Option<String>,
    next: Option<String>,
    focus: Option<String>,
    memory: Option<String>,
    manner: SummaryKind,
}

/// The parameters that differ between attempts.
struct StandaloneAttempt {
    budget_tokens: u64,
    problem: Option<String>,
    cap: Cap,
}

/// How the output limit is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    Usual,
    AtMost(u64),
    Unsaid,
}

impl StandaloneCall<'_> {
    /// Returns the events.
    pub(crate) fn into_happened(self) -> AttemptLog {
        self.happened.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the prompt tokens needed to summarise everything, and the number of calls.
    pub(crate) fn size(&self, request: &SummaryRequest<'_>) -> (u64, u64) {
        let parts = throughline_compaction::split_span(request, self).map_or(1, |parts| parts.len() as u64);
        let messages: u64 = self.whole.clone().map(|message| self.reads_tokens(request, message)).sum();
        let tokens = messages.saturating_add(self.overhead_tokens(request).saturating_mul(parts));
        if self.is_small() {
            // Two sections of every part, and one more of the first and of the last.
            return (tokens.saturating_mul(2), parts.saturating_mul(2).saturating_add(2));
        }
        (tokens, parts)
    }

    fn masked(&self, text: &str) -> String {
        self.redactor.map_or_else(|| text.to_owned(), |redactor| redactor.redact(text).into_owned())
    }

    fn around(&self, request: &SummaryRequest<'_>) -> PromptParts {
        // The user's last message, if it is not compacted, shows what matters.
        let last = request.messages.iter().enumerate().rfind(|(_, message)| message.is_human());
        let next =
            last.filter(|(index, _)| !request.plan.summarised().any(|summarised| summarised == *index));
        let next = next.and_then(|(_, message)| message.human_words()).filter(|words| !words.is_empty());
        let next_chars = NEXT_CHARS.min(self.window_tokens / NEXT_CHAR_TOKENS) as usize;
        PromptParts {
            earlier: request.earlier.map(|earlier| self.masked(&earlier.to_markdown())),
            next: next.map(|words| shortened(&self.masked(&words), next_chars)),
            focus: request.focus.map(|focus| self.masked(focus)),
            memory: self.memory.map(|memory| self.masked(memory)),
            manner: request.manner,
        }
    }

    /// Returns the size of the largest summary that this model can write at once.
    fn most_budget(&self, request: &SummaryRequest<'_>) -> u64 {
        request.budget_tokens.min(self.window_tokens.saturating_mul(SUMMARY_PERCENT) / 100)
    }

    fn answer_tokens(&self, budget_tokens: u64) -> u64 {
        let most = self.window_tokens.saturating_mul(2 * SUMMARY_PERCENT) / 100;
        answer_room(budget_tokens, &self.route.target.model, self.window_tokens).min(most)
    }

    fn is_small(&self) -> bool {
        self.window_tokens <= SMALL_WINDOW_TOKENS
    }

    /// Returns the tokens of a prompt besides the messages.
    fn overhead_tokens(&self, request: &SummaryRequest<'_>) -> u64 {
        let around = self.around(request);
        let mark = QuoteMark::draw(&|| 0, std::iter::empty());
        if self.is_small() {
            let brief = self.brief(&mark, self.section_tokens(), &around, None);
            let text = brief.small_request("", Section::CompletedActions);
            return self.estimate(&brief.small_system()).saturating_add(self.estimate(&text));
        }
        let brief = self.brief(&mark, self.most_budget(request), &around, None);
        let text = brief.apart_request(around.earlier.as_deref(), "", around.next.as_deref());
        self.estimate(&brief.apart_system()).saturating_add(self.estimate(&text))
    }

    fn estimate(&self, text: &str) -> u64 {
        self.token_model.estimate(&TextProfile::of(text))
    }

    fn brief<'b>(
        &'b self,
        mark: &'b QuoteMark,
        budget_tokens: u64,
        around: &'b PromptParts,
        problem: Option<&'b str>,
    ) -> SummaryBrief<'b> {
        SummaryBrief {
            mark,
            budget_tokens,
            today: self.today,
            focus: around.focus.as_deref(),
            manner: around.manner,
            memory: around.memory.as_deref(),
            problem,
        }
    }

    /// Returns the budget for the summary of a part: its share of the whole, and a little more.
    fn part_budget(&self, request: &SummaryRequest<'_>) -> u64 {
        let most = self.most_budget(request);
        if request.span == self.whole {
            return most;
        }
        let tokens =
            |span: Range<usize>| span.map(|message| self.reads_tokens(request, message)).sum::<u64>();
        let (part, whole) = (tokens(request.span.clone()), tokens(self.whole.clone()).max(1));
        let carried = request.earlier.map_or(0, |earlier| (request.count_tokens)(&earlier.to_markdown()));
        let new = request.budget_tokens.saturating_sub(carried);
        let share = new.saturating_mul(part) / whole * PART_BUDGET_PERCENT / 100;
        share.saturating_add(carried).max(LEAST_PART_BUDGET_TOKENS).min(most)
    }

    fn section_tokens(&self) -> u64 {
        self.window_tokens.saturating_mul(SMALL_SECTION_PERCENT) / 100
    }

    /// Summarises a part with a small model: section by section, and only those that require understanding. Rules write the others, and
    /// those that the model could not write.
    async fn part_by_section(&self, request: &SummaryRequest<'_>) -> Result<SummaryDocument, RouteFailure> {
        let around = self.around(request);
        let mut sections = vec![Section::CompletedActions, Section::KeyDecisions];
        if request.span.start == self.whole.start {
            sections.insert(0, Section::Goal);
        }
        if request.span.end == self.whole.end {
            sections.push(Section::InProgress);
        }
        let mut written = SummaryDocument::default();
        let mut failure = None;
        for section in sections {
            match self.section(request, &around, section).await {
                Ok(part) => {
                    for entry in part.entries(section) {
                        written.entries_mut(section).push(entry.clone());
                    }
                }
                Err(RouteFailure::Defect(defect)) => {
                    self.log().missing.push(section);
                    failure = Some(RouteFailure::Defect(defect));
                }
                // The server is down or the request is too large: the next section would fail too.
                Err(other) => return Err(other),
            }
        }
        match failure {
            Some(failure) if written.is_empty() => Err(failure),
            _ if written.is_empty() => Err(RouteFailure::Defect(SummaryDefect::SaysNothing)),
            _ => {
                if let Some(earlier) = request.earlier {
                    carry_rules(&mut written, earlier);
                }
                Ok(written)
            }
        }
    }

    /// Writes one section with a small model.
    async fn section(
        &self,
        request: &SummaryRequest<'_>,
        around: &PromptParts,
        section: Section,
    ) -> Result<SummaryDocument, RouteFailure> {
        let mut cap = Cap::Usual;
        loop {
            let host = self.desk.host;
            let beside = around.focus.as_deref().into_iter();
            let mark = QuoteMark::draw(&|| host.random(), self.rendered.texts().chain(beside));
            let brief = self.brief(&mark, self.section_tokens(), around, None);
            let transcript = self.transcript(request, &mark)?;
            let texts = (brief.small_system(), brief.small_request(&transcript, section));
            let (call, prompt_tokens, answer_tokens) = self.written(&texts, self.section_tokens(), cap)?;
            let ask = SummaryCall {
                route: self.route,
                form: SummaryForm::Standalone,
                call,
                prompt_tokens,
                answer_tokens,
                judge: &|document| is_shorter(document, request, &self.whole),
            };
            let failure = match self.desk.ask_section(ask, section).await {
                Ok(document) => return Ok(document),
                Err(failure) => failure,
            };
            match self.mended_cap(&failure).filter(|mended| *mended != cap && cap == Cap::Usual) {
                Some(mended) => cap = mended,
                None => return Err(failure),
            }
        }
    }

    fn log(&self) -> MutexGuard<'_, AttemptLog> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the transcript of a part.
    fn transcript(&self, request: &SummaryRequest<'_>, mark: &QuoteMark) -> Result<String, RouteFailure> {
        let room = self.part_tokens(request).unwrap_or(0);
        let written = self.rendered.within(request.span.clone(), mark, room, &self.token_model);
        written.ok_or_else(|| RouteFailure::WindowTooSmall {
            window_tokens: self.window_tokens,
            needed_tokens: request.span.clone().map(|message| self.reads_tokens(request, message)).sum(),
        })
    }

    /// Returns a call with these instructions and this text, with the sizes of its prompt and answer.
    fn written(
        &self,
        (system, text): &(String, String),
        budget_tokens: u64,
        cap: Cap,
    ) -> Result<(OutgoingCall, u64, u64), RouteFailure> {
        let answer_tokens = self.answer_tokens(budget_tokens);
        let (call, answer_tokens) =
            plain_call(self.route, self.window_tokens, (system, text), answer_tokens, cap)?;
        let call = match self.extras {
            Some(prompt) => OutgoingCall {
                headers: prompt.extras().headers.clone(),
                query: prompt.extras().query.clone(),
                ..call
            },
            None => call,
        };
        Ok((call, self.estimate(system).saturating_add(self.estimate(text)), answer_tokens))
    }

    async fn part(&self, request: &SummaryRequest<'_>) -> Result<SummaryDocument, RouteFailure> {
        if self.is_small() {
            return self.part_by_section(request).await;
        }
        let around = self.around(request);
        let mut next =
            StandaloneAttempt { budget_tokens: self.part_budget(request), problem: None, cap: Cap::Usual };
        let mut second_tries = 0;
        for left in (0..MOST_TRIES).rev() {
            let failure = match self.once(request, &around, &next).await {
                Ok(notes) => return Ok(self.finished(notes, request)),
                Err(failure) => failure,
            };
            if let Some(cap) = self.mended_cap(&failure).filter(|cap| *cap != next.cap && left > 0) {
                next.cap = cap;
                continue;
            }
            let wait = failure.second_try().filter(|_| second_tries == 0 && left > 0);
            let Some(wait) = wait else { return Err(failure) };
            second_tries += 1;
            tokio::time::sleep(wait).await;
            if let RouteFailure::Defect(unfit) = &failure {
                next.problem = Some(unfit.to_string());
                if matches!(unfit, SummaryDefect::CutOff | SummaryDefect::LongerThanSource { .. }) {
                    next.budget_tokens = next.budget_tokens.saturating_mul(SHORTER_PERCENT) / 100;
                }
            }
        }
        Err(RouteFailure::NotWritable("no try was left".to_owned()))
    }

    /// Returns the output limit that a refusal asks for.
    fn mended_cap(&self, failure: &RouteFailure) -> Option<Cap> {
        let RouteFailure::Trouble(trouble) = failure else { return None };
        match &trouble.kind {
            ProviderErrorKind::OutputCapTooLarge { largest_cap_tokens: Some(most), .. } => {
                Some(Cap::AtMost(*most))
            }
            ProviderErrorKind::MalformedRequest {
                complaint: RequestComplaint::UnknownParameter { name: Some(name) },
            } if self.route.target.wire_format != WireFormat::Anthropic && name.contains("max") => {
                Some(Cap::Unsaid)
            }
            _ => None,
        }
    }

    async fn once(
        &self,
        request: &SummaryRequest<'_>,
        around: &PromptParts,
        this: &StandaloneAttempt,
    ) -> Result<Notes, RouteFailure> {
        let host = self.desk.host;
        let beside = [&around.earlier, &around.next, &around.focus, &around.memory];
        let beside = beside.into_iter().flatten().map(String::as_str);
        let mark = QuoteMark::draw(&|| host.random(), self.rendered.texts().chain(beside));
        let brief = self.brief(&mark, this.budget_tokens, around, this.problem.as_deref());
        let transcript = self.transcript(request, &mark)?;
        let text = brief.apart_request(around.earlier.as_deref(), &transcript, around.next.as_deref());
        let texts = (brief.apart_system(), text);
        let (call, prompt_tokens, answer_tokens) = self.written(&texts, this.budget_tokens, this.cap)?;
        let ask = SummaryCall {
            route: self.route,
            form: SummaryForm::Standalone,
            call,
            prompt_tokens,
            answer_tokens,
            judge: &|document| is_shorter(document, request, &self.whole),
        };
        self.desk.ask(ask).await
    }

    fn finished(&self, notes: Notes, request: &SummaryRequest<'_>) -> SummaryDocument {
        let mut document = notes.document;
        if let Some(earlier) = request.earlier {
            carry_rules(&mut document, earlier);
        }
        self.log().missing.extend(notes.missing);
        document
    }
}

impl Summariser for StandaloneCall<'_> {
    fn name(&self) -> &str {
        &self.route.target.model
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        Some(self.window_tokens)
    }

    fn part_tokens(&self, request: &SummaryRequest<'_>) -> Option<u64> {
        let margin = self.window_tokens.saturating_mul(MARGIN_PERCENT) / 100;
        let most = if self.is_small() { self.section_tokens() } else { self.most_budget(request) };
        let answer = self.answer_tokens(most);
        let room = self
            .window_tokens
            .saturating_sub(margin)
            .saturating_sub(answer)
            .saturating_sub(self.overhead_tokens(request));
        Some(if room < LEAST_PART_TOKENS { 0 } else { room })
    }

    fn reads_tokens(&self, _request: &SummaryRequest<'_>, message: usize) -> u64 {
        self.rendered.tokens(message, &self.token_model)
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move {
            self.part(&request).await.map_err(|failure| {
                let words = failure.to_string();
                self.log().failure = Some(failure);
                // The kind of failure is recorded above.
                SummariseError::Permanent(words)
            })
        })
    }
}

/// Returns the name of the output limit at an endpoint; `None` if the endpoint accepts none.
pub(crate) fn cap_member(target: &ModelTarget) -> Option<CapMember> {
    match target.wire_format {
        // Codex subscriptions accept no output limit.
        _ if target.provider == "openai-codex" => None,
        // Only OpenAI requires the new name.
        WireFormat::Chat if target.provider != "openai" => Some(CapMember::MaxTokens),
        wire_format => Some(CapMember::usual(wire_format)),
    }
}

/// Builds a request from instructions and a text in the model's wire format, with this output limit.
pub(crate) fn plain_call(
    route: &SummaryRoute,
    window_tokens: u64,
    (system, text): (&str, &str),
    answer_tokens: u64,
    cap: Cap,
) -> Result<(OutgoingCall, u64), RouteFailure> {
    let target = &route.target;
    let wire_format = target.wire_format;
    let answer_tokens = if let Cap::AtMost(most) = cap { answer_tokens.min(most) } else { answer_tokens };
    let name = cap_member(target).filter(|_| cap != Cap::Unsaid);
    let parameters: &[(&str, &str)] =
        if wire_format == WireFormat::Responses { &[("store", "false")] } else { &[] };
    let parts = RequestParts {
        system: Some(System::Text(system)),
        streaming: Streaming::Streamed,
        output_cap: name.map(|name| (name, answer_tokens)),
        parameters,
        ..RequestParts::new(&target.model)
    };
    let message = decode_message(SharedText::new(text_message(wire_format, Role::User, text)));
    let request = Request::build(wire_format, &parts, message.into_iter().collect())
        .map_err(|error| RouteFailure::NotWritable(error.to_string()))?;
    let request_limits =
        RequestLimits { output_cap_tokens: request.output_cap_tokens(), window_tokens: Some(window_tokens) };
    let body = request.encode();
    Ok((
        OutgoingCall { request_limits, ..OutgoingCall::new(wire_format, Streaming::Streamed, body) },
        answer_tokens,
    ))
}

/// Whether a summary is shorter than what it replaces. For a part, only the text counts: its headings are those of the whole.
pub(crate) fn is_shorter(
    document: &SummaryDocument,
    request: &SummaryRequest<'_>,
    whole: &Range<usize>,
) -> Result<(), SummaryDefect> {
    let count = |document: &SummaryDocument| (request.count_tokens)(&document.to_markdown());
    let frame = if request.span == *whole { 0 } else { count(&SummaryDocument::default()) };
    let tokens = count(document).saturating_sub(frame);
    let sizes = request.summarised().filter_map(|message| request.sizes.get(message));
    let source_tokens = sizes.sum::<u64>().saturating_add(request.earlier.map_or(0, count));
    if tokens < source_tokens {
        return Ok(());
    }
    Err(SummaryDefect::LongerThanSource { tokens, source_tokens })
}

/// Copies the user's rules from the earlier notes unchanged, whatever the model made of them.
pub(crate) fn carry_rules(document: &mut SummaryDocument, earlier: &SummaryDocument) {
    let single_spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = single_spaced(&document.to_markdown());
    let lost: Vec<String> = earlier
        .entries(Section::Constraints)
        .iter()
        .filter(|entry| !told.contains(&single_spaced(&entry.text)))
        .map(|entry| entry.text.clone())
        .collect();
    let rules = document.entries_mut(Section::Constraints);
    rules.splice(0..0, lost.into_iter().map(throughline_compaction::Entry::plain));
}
