//! Conversations in a record, compacted by the engine through the managed call.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use throughline_compaction::{
    Maker, SummariseError, Summariser, SummaryDocument, SummaryFrame, SummaryFuture, SummaryRequest,
};
use throughline_engine::{
    Automatic, CallPolicy, CompactionResult, CompressRequest, Host, LockPolicy, ManagedSession,
    ManualCompaction, ModelAnswer, ModelQuestion, ModelTarget, PieceSender, PriceSource, RecordPolicy,
    SessionSetup, SummariserSource, ThresholdOrigin, ToolOutputPolicy, Upstream, UpstreamFailure,
    UpstreamFailureCause, UpstreamFuture,
};
use throughline_lcm::{LcmEngine, LcmLimits, LcmSetup, RecallLimits, RecallReader};
use throughline_provider::{CachePolicy, OutgoingCall};
use throughline_store::{
    CallNames, Holder, IdLength, Millis, NewMessage, NewSession, NodeLink, Origin, Owner, SessionId,
    SqliteStore, Store, SummaryId, ViewMessage,
};
use throughline_tokens::{ContentProfile, LimitPolicy, TokenModel};
use throughline_transcript::{Groups, Message, Violation, WireFormat};
use tokio_util::sync::CancellationToken;

/// A clock that goes on with every look, and numbers that only count up.
#[derive(Default)]
pub(crate) struct TestHost {
    passed_ms: AtomicI64,
    random: AtomicU32,
}

impl Host for TestHost {
    fn now_ms(&self) -> Millis {
        1_763_200_000_000 + self.passed_ms.fetch_add(1_000, Ordering::Relaxed)
    }

    fn random(&self) -> u32 {
        self.random.fetch_add(1, Ordering::Relaxed)
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "test".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

struct Nobody;

impl Upstream for Nobody {
    fn send<'a>(
        &'a self,
        _call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let mut nobody = UpstreamFailure::trouble(throughline_provider::ProviderError::of(
            throughline_provider::ProviderErrorKind::Interrupted,
        ));
        nobody.cause = UpstreamFailureCause::Cancelled;
        Box::pin(std::future::ready(Err(Box::new(nobody))))
    }
}

/// What a model for summaries does, call by call.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes this.
    Write(&'static str),
    /// Writes so many words.
    WriteLong(usize),
    /// Fails for now.
    Transient,
    /// Fails for good.
    Permanent,
}

/// A model for summaries that follows a script; afterwards it repeats the last act.
#[derive(Default)]
pub(crate) struct Script {
    acts: Mutex<Vec<Act>>,
    /// What it was shown, call by call: every word of the messages to be summarised.
    pub(crate) shown: Mutex<Vec<String>>,
    /// The tokens of that.
    pub(crate) sizes: Mutex<Vec<u64>>,
    /// Questions it was asked.
    pub(crate) questions: Mutex<Vec<String>>,
}

impl Script {
    pub(crate) fn new(acts: &[Act]) -> Arc<Self> {
        let mut acts = acts.to_vec();
        acts.reverse();
        Arc::new(Self { acts: Mutex::new(acts), ..Self::default() })
    }

    pub(crate) fn calls(&self) -> usize {
        self.shown.lock().unwrap().len()
    }

    fn next(&self) -> Act {
        let mut acts = self.acts.lock().unwrap();
        if acts.len() > 1 { acts.pop().unwrap() } else { acts.last().cloned().unwrap_or(Act::Permanent) }
    }
}

pub(crate) struct Scripted(pub(crate) Arc<Script>);

impl SummariserSource for Scripted {
    fn summariser_for(&self, request: &CompressRequest) -> Arc<dyn Summariser> {
        assert!(request.conversation.cached_prompt.is_none(), "a call that rides would see everything");
        Arc::new(Scripted(Arc::clone(&self.0)))
    }

    fn answer<'a>(
        &'a self,
        question: &'a ModelQuestion<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelAnswer, String>> + Send + 'a>> {
        self.0.questions.lock().unwrap().push(question.text.to_owned());
        let number =
            question.text.split("message ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("0");
        let text = format!("It was said in [{number}] and not in [999999].");
        Box::pin(std::future::ready(Ok(ModelAnswer { text, author: "scripted".to_owned() })))
    }
}

impl Summariser for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        let shown: Vec<&str> = request.summarised().map(|at| request.messages[at].json()).collect();
        self.0.shown.lock().unwrap().push(shown.join("\n"));
        self.0.sizes.lock().unwrap().push(request.summarised().map(|at| request.sizes[at]).sum());
        let written = match self.0.next() {
            Act::Write(markdown) => Ok(SummaryDocument::parse(markdown)),
            Act::WriteLong(words) => {
                Ok(SummaryDocument::parse(&format!("## Goal\n- {}\n", "word ".repeat(words))))
            }
            Act::Transient => Err(SummariseError::Transient("busy".to_owned())),
            Act::Permanent => Err(SummariseError::Permanent("gone".to_owned())),
        };
        Box::pin(std::future::ready(written))
    }
}

/// A conversation in a record.
pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) host: Arc<TestHost>,
    pub(crate) limits: LcmLimits,
    pub(crate) window_tokens: u64,
    pub(crate) wire_format: WireFormat,
    pub(crate) model: Option<Arc<Script>>,
    pub(crate) tip: SessionId,
    names: CallNames,
}

/// Preface, closing line and end of notes, at the most.
const AROUND_TOKENS: u64 = 500;

pub(crate) fn owner() -> Owner {
    Owner::default()
}

impl Stage {
    pub(crate) fn new(wire_format: WireFormat, window_tokens: u64, limits: LcmLimits) -> Self {
        Self::over(Arc::new(SqliteStore::in_memory().unwrap()), wire_format, window_tokens, limits)
    }

    pub(crate) fn over(
        store: Arc<dyn Store>,
        wire_format: WireFormat,
        window_tokens: u64,
        limits: LcmLimits,
    ) -> Self {
        let tip = SessionId::from_text("first");
        let new = NewSession {
            id: tip.clone(),
            owner: owner(),
            link: None,
            started_ms: 1,
            model: None,
            title: None,
            origin: Origin { program: "test".to_owned(), key: None, project: None },
            wire_format,
        };
        store.open_session(new, None).unwrap();
        Self::again(store, wire_format, window_tokens, limits, tip)
    }

    /// A conversation that is there already.
    pub(crate) fn again(
        store: Arc<dyn Store>,
        wire_format: WireFormat,
        window_tokens: u64,
        limits: LcmLimits,
        tip: SessionId,
    ) -> Self {
        let host = Arc::new(TestHost::default());
        // Ids of sessions come from the clock and these; a process that was killed used some.
        host.random.store(1_000_000 * u32::from(tip.as_str() != "first"), Ordering::Relaxed);
        let names = CallNames::default();
        Self { store, host, limits, window_tokens, wire_format, model: None, tip, names }
    }

    pub(crate) fn append(&mut self, messages: &[Message]) {
        let model = TokenModel::for_model("claude-sonnet-4-5", self.wire_format);
        let new = messages.iter().map(|message| NewMessage {
            tokens: model.estimate_content(&ContentProfile::of_message(message)),
            at_ms: self.host.now_ms(),
            tools: self.names.tools_of(message),
            message: message.clone(),
            rendition: None,
        });
        let new: Vec<NewMessage> = new.collect();
        self.store.append(&owner(), &self.tip, new).unwrap();
    }

    fn target(&self) -> ModelTarget {
        ModelTarget {
            model: "claude-sonnet-4-5".to_owned(),
            provider: "anthropic".to_owned(),
            endpoint: "http://127.0.0.1".to_owned(),
            wire_format: self.wire_format,
            policy: LimitPolicy::for_window(self.window_tokens),
            window_origin: String::new(),
            threshold_origin: ThresholdOrigin::General,
            cache: CachePolicy::Unmarked,
            price_source: PriceSource::of_seller("anthropic".to_owned()),
            cache_minimum_tokens: None,
            upstream: Arc::new(Nobody),
        }
    }

    pub(crate) fn engine(&self) -> LcmEngine {
        let host: Arc<dyn Host> = Arc::<TestHost>::clone(&self.host);
        let mut setup = LcmSetup::by_rules(Arc::clone(&self.store), owner(), host);
        setup.limits = self.limits.clone();
        setup.redactor = Some(throughline_redact::Redactor::new());
        if let Some(model) = &self.model {
            setup.summarisers = Arc::new(Scripted(Arc::clone(model)));
        }
        LcmEngine::new(setup)
    }

    pub(crate) async fn open(&self) -> ManagedSession {
        ManagedSession::open(self.setup(), &self.tip).await.unwrap()
    }

    pub(crate) fn setup(&self) -> SessionSetup {
        SessionSetup {
            store: Arc::clone(&self.store),
            owner: owner(),
            engine: Arc::new(self.engine()),
            host: Arc::<TestHost>::clone(&self.host),
            events: Arc::new(|_event| {}),
            target: self.target(),
            alternatives: Vec::new(),
            policy: CallPolicy {
                automatic: Automatic::On,
                record: RecordPolicy::Require,
                lock: LockPolicy::Compactions,
                ids: IdLength::Local,
                recall: None,
            },
            tool_output: ToolOutputPolicy::default(),
        }
    }

    /// Compacts, as a person would ask for it.
    pub(crate) async fn fold(&mut self) -> CompactionResult {
        let mut session = self.open().await;
        let result = session.compact(ManualCompaction::default()).await;
        self.tip = session.id().clone();
        result
    }

    pub(crate) fn recall(&self) -> RecallLimits {
        self.limits.recall.clone()
    }

    pub(crate) fn with_recall<T>(&self, act: impl FnOnce(RecallReader<'_>) -> T) -> T {
        let limits = self.recall();
        act(RecallReader { store: self.store.as_ref(), owner: &owner(), limits: &limits })
    }

    pub(crate) fn shown(&self) -> Vec<ViewMessage> {
        self.store.view(&owner(), &self.tip, None).unwrap()
    }

    /// The text of the notes in view.
    pub(crate) fn notes(&self) -> String {
        let found = self.shown().iter().find_map(|item| match item {
            ViewMessage::Summary { json, .. } => Some(json.clone()),
            _ => None,
        });
        let message = throughline_transcript::decode_message_text(found.unwrap()).unwrap();
        assert!(SummaryFrame::find(&message).is_some(), "{}", message.text());
        message.text().into_owned()
    }

    pub(crate) fn view_tokens(&self) -> u64 {
        self.shown().iter().map(ViewMessage::tokens).sum()
    }

    /// Every rule that nodes and views must keep, whatever happened.
    pub(crate) fn check(&self) {
        let mut links: HashMap<SummaryId, NodeLink> = HashMap::new();
        let all = self.store.nodes_since(&owner(), &self.tip, SummaryId(0)).unwrap();
        let summaries = self.store.summaries(&owner(), &self.tip).unwrap();
        for head in &all {
            let link = NodeLink {
                owner: owner().as_str().to_owned(),
                sources: head.sources.clone(),
                node: Some(head.node.clone()),
                top: Vec::new(),
            };
            links.insert(head.id, link);
        }
        for summary in &summaries {
            let link = NodeLink {
                owner: owner().as_str().to_owned(),
                sources: summary.sources.clone(),
                node: None,
                top: summary.top_nodes(),
            };
            links.insert(summary.id, link);
        }
        assert_eq!(NodeLink::problems(&links), []);
        self.check_covered();
        let messages: Vec<Message> = self
            .shown()
            .iter()
            .map(|item| throughline_transcript::decode_message_text(item.json().to_owned()).unwrap())
            .collect();
        let broken = Violation::find(self.wire_format, &messages, &Groups::of(&messages));
        assert!(broken.is_empty(), "{broken:?}");
    }

    /// The nodes in view fit the room that is set for them, and all notes little more: where work stood, and what is said
    /// around them.
    pub(crate) fn check_fits(&self) {
        let room = self.limits.nodes_tokens.unwrap();
        let top = self.with_recall(|recall| recall.top_nodes(&self.tip).unwrap());
        let nodes: u64 = top.iter().map(|node| node.node.tokens).sum();
        assert!(nodes <= room, "{nodes} tokens of nodes where {room} are allowed");
        for item in self.shown() {
            if let ViewMessage::Summary { .. } = item {
                let tokens = item.tokens();
                assert!(tokens <= 2 * room + AROUND_TOKENS, "{tokens} tokens of notes with room for {room}");
            }
        }
    }

    /// Every message is in view or reached from it in at most three expansions, and never both.
    fn check_covered(&self) {
        let shown: Vec<u64> = self.shown().iter().filter_map(|item| item.message().map(|m| m.seq)).collect();
        let said = self.store.transcript(&owner(), &self.tip).unwrap();
        self.with_recall(|recall| {
            let top = recall.top_nodes(&self.tip).unwrap();
            for message in &said {
                let covering = top.iter().filter(|node| node.covers(&message.session, message.seq)).count();
                let in_view = usize::from(shown.contains(&message.seq));
                assert_eq!(covering + in_view, 1, "message {} of {}", message.seq, said.len());
                if in_view == 1 {
                    continue;
                }
                let node = top.iter().find(|node| node.covers(&message.session, message.seq)).unwrap();
                let steps = steps_to(&recall, &self.tip, node.id, message.seq);
                assert!(steps <= 3, "{steps} expansions to message {}", message.seq);
            }
        });
    }
}

/// Expansions from a node until a message is shown, each told where to look by nothing but its number.
fn steps_to(recall: &RecallReader<'_>, session: &SessionId, node: SummaryId, seq: u64) -> usize {
    use throughline_lcm::{ExpandQuery, ExpandedItem};
    let mut node = node;
    for step in 1..=4 {
        let ask = ExpandQuery { node: Some(node), from: Some(seq), ..ExpandQuery::default() };
        let page = recall.expand(session, &ask).unwrap();
        let mut next = None;
        for item in &page.items {
            match item {
                ExpandedItem::Message { message, .. } if *message == seq => return step,
                ExpandedItem::Node { head, .. }
                    if head.sources.iter().any(|run| (run.first_seq..run.end_seq).contains(&seq)) =>
                {
                    next = Some(head.id);
                }
                _ => {}
            }
        }
        node = next.unwrap_or_else(|| panic!("message {seq} is nowhere under {node}: {page:?}"));
    }
    5
}
