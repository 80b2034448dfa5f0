//! Summaries that one gateway prepared and another uses, through the record they share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use throughline_compaction::{Maker, Section, Summariser, SummaryDocument, SummaryFuture, SummaryRequest};
use throughline_engine::{
    Compressor, CompressorSetup, EngineEvent, Host, ManagedSession, ManualCompaction, OneSummariser,
    SessionSetup, Trigger,
};
use throughline_store::{Guard, GuardScope, Holder, LockRequest, Millis, Owner, SessionId, ViewItem};
use throughline_transcript::WireFormat;
use tokio::sync::Semaphore;

use crate::managed::support::{Stage, TestHost, holder, talk, talk_until_compacted};

/// The name under which a prepared summary is recorded.
const PREPARED: &str = "prepared_summary";

/// A model that writes a page of its own whenever it is allowed to.
struct Writer {
    words: &'static str,
    allowed: Semaphore,
    /// How often it was asked for a summary, ...
    asked: AtomicUsize,
    /// ... and to add what was said since to one.
    extended: AtomicUsize,
}

impl Writer {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Summariser for Writer {
    fn name(&self) -> &str {
        "writer"
    }

    fn maker(&self) -> Maker {
        Maker::Model
    }

    fn window_tokens(&self) -> Option<u64> {
        None
    }

    fn summarise<'a>(&'a self, request: SummaryRequest<'a>) -> SummaryFuture<'a> {
        Box::pin(async move {
            let count = if request.earlier.is_some() { &self.extended } else { &self.asked };
            count.fetch_add(1, Ordering::Relaxed);
            self.allowed.acquire().await.unwrap().forget();
            let mut document: SummaryDocument = request.earlier.cloned().unwrap_or_default();
            document.add(Section::Goal, self.words);
            Ok(document)
        })
    }
}

/// A process beside others, of which it knows by their leases.
struct Process {
    clock: Arc<TestHost>,
    number: u32,
    /// Whether the others are seen to be dead.
    others_are_dead: AtomicBool,
}

impl Host for Process {
    fn now_ms(&self) -> Millis {
        self.clock.now_ms()
    }

    fn random(&self) -> u32 {
        self.clock.random()
    }

    fn holder(&self) -> Holder {
        holder(self.number)
    }

    fn is_alive(&self, _: &Holder) -> bool {
        !self.others_are_dead.load(Ordering::Relaxed)
    }
}

/// A gateway on the record of a stage.
struct Gateway {
    setup: SessionSetup,
    process: Arc<Process>,
    writer: Arc<Writer>,
}

impl Gateway {
    fn new(stage: &Stage, number: u32, words: &'static str, allowed: usize) -> Self {
        let (allowed, asked, extended) = (Semaphore::new(allowed), AtomicUsize::new(0), AtomicUsize::new(0));
        let writer = Arc::new(Writer { words, allowed, asked, extended });
        let process = Arc::new(Process {
            clock: Arc::clone(&stage.host),
            number,
            others_are_dead: AtomicBool::new(false),
        });
        let summarisers = Arc::new(OneSummariser(Arc::<Writer>::clone(&writer)));
        let engine =
            Arc::new(Compressor::new(CompressorSetup { summarisers, ..CompressorSetup::by_rules() }));
        let host = Arc::<Process>::clone(&process);
        let setup = SessionSetup { engine, host, ..stage.setup.clone() };
        Self { setup, process, writer }
    }

    async fn begin(&self, stage: &Stage) -> ManagedSession {
        ManagedSession::create(self.setup.clone(), stage.new_session("s1")).await.unwrap()
    }

    async fn open(&self) -> ManagedSession {
        ManagedSession::open(self.setup.clone(), &SessionId::from_text("s1")).await.unwrap()
    }
}

/// What is recorded as prepared.
fn recorded(stage: &Stage) -> Option<Guard> {
    let scope = GuardScope::Chain(Owner::default(), SessionId::from_text("s1"));
    stage.store.guard(&scope, PREPARED, stage.host.now_ms()).unwrap()
}

async fn eventually(is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to be");
}

/// Whether the last compaction used what was prepared.
fn used_prepared(stage: &Stage) -> bool {
    let completed = |event: EngineEvent| match event {
        EngineEvent::CompactionCompleted { report, .. } => Some(report.prepared),
        _ => None,
    };
    stage.told().into_iter().filter_map(completed).next_back().unwrap()
}

/// The summaries that the view of the newest session shows.
fn summaries(stage: &Stage) -> Vec<String> {
    let owner = Owner::default();
    let items = stage.store.view_items(&owner, &stage.tip()).unwrap();
    let shown = items.into_iter().filter_map(|item| match item {
        ViewItem::Summary { summary, .. } => Some(stage.store.summary(&owner, summary).unwrap().document),
        _ => None,
    });
    shown.collect()
}

/// Goes on until a summary is being prepared or was.
async fn until_asked(stage: &Stage, gateway: &Gateway, session: &mut ManagedSession) {
    let mut turn = 1_000;
    while gateway.writer.asked() == 0 {
        talk(stage, session, turn).await;
        // The preparation asks the record first.
        tokio::time::sleep(Duration::from_millis(5)).await;
        turn += 1;
        assert!(turn < 1_100, "nothing was prepared");
    }
}

#[tokio::test]
async fn a_summary_of_a_gateway_that_died_is_used_by_another() {
    for wire_format in WireFormat::ALL {
        let stage = Stage::new(wire_format, 16_000);
        let first = Gateway::new(&stage, 1, "Written at the first gateway.", 1);
        let mut session = first.begin(&stage).await;
        until_asked(&stage, &first, &mut session).await;
        eventually(|| recorded(&stage).is_some()).await;
        drop(session);
        let second = Gateway::new(&stage, 2, "Written at the second gateway.", 100);
        let mut session = second.open().await;
        talk_until_compacted(&stage, &mut session, 1).await;
        assert!(used_prepared(&stage), "{wire_format}");
        assert_eq!((first.writer.asked(), second.writer.asked()), (1, 0), "{wire_format}");
        let [summary] = &summaries(&stage)[..] else { panic!("one summary is shown") };
        assert!(summary.contains("Written at the first gateway."), "{summary}");
        // It was used, and is not there any more.
        assert_eq!(recorded(&stage), None);
    }
}

#[tokio::test]
async fn a_gateway_waits_for_the_summary_that_another_prepares_and_pays_for_none() {
    let stage = Stage::new(WireFormat::Anthropic, 16_000);
    let first = Gateway::new(&stage, 1, "Written at the first gateway.", 0);
    let mut session = first.begin(&stage).await;
    until_asked(&stage, &first, &mut session).await;
    let second = Gateway::new(&stage, 2, "Written at the second gateway.", 100);
    let mut other = second.open().await;
    // As long as there is room, nobody waits.
    let mut turn = 0;
    while other.pressure().of_threshold_permille() < 1_200 {
        talk(&stage, &mut other, turn).await;
        turn += 1;
    }
    assert_eq!(second.writer.asked(), 0, "the first gateway prepares it");
    // A compaction that was asked for does; the summary is finished then.
    let compacting = tokio::spawn(async move { other.compact(ManualCompaction::default()).await });
    let begun = |event: &EngineEvent| matches!(event, EngineEvent::CompactionStarted { trigger } if *trigger == Trigger::Manual);
    eventually(|| stage.told().iter().any(begun)).await;
    first.writer.allowed.add_permits(1);
    compacting.await.unwrap();
    assert!(used_prepared(&stage));
    assert_eq!((first.writer.asked(), second.writer.asked()), (1, 0));
    drop(session);
    assert!(stage.store.locks().unwrap().is_empty());
}

#[tokio::test]
async fn a_gateway_that_died_while_it_prepared_holds_nobody_up() {
    let stage = Stage::new(WireFormat::Chat, 16_000);
    let first = Gateway::new(&stage, 1, "Written at the first gateway.", 0);
    let mut session = first.begin(&stage).await;
    until_asked(&stage, &first, &mut session).await;
    assert_eq!(stage.store.locks().unwrap().len(), 1);
    let second = Gateway::new(&stage, 2, "Written at the second gateway.", 100);
    second.process.others_are_dead.store(true, Ordering::Relaxed);
    let mut other = second.open().await;
    talk_until_compacted(&stage, &mut other, 1).await;
    assert!(second.writer.asked() >= 1);
    assert!(summaries(&stage)[0].contains("Written at the second gateway."));
}

/// A process that takes its time to find out that another one is dead.
struct SlowLook {
    clock: Arc<TestHost>,
    begun: Barrier,
    ended: Barrier,
}

impl Host for SlowLook {
    fn now_ms(&self) -> Millis {
        self.clock.now_ms()
    }

    fn random(&self) -> u32 {
        self.clock.random()
    }

    fn holder(&self) -> Holder {
        holder(2)
    }

    fn is_alive(&self, _: &Holder) -> bool {
        self.begun.wait();
        self.ended.wait();
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_nobody_waits_for_any_more_is_released_when_it_is_taken() {
    let stage = Stage::new(WireFormat::Chat, 16_000);
    let clock = Arc::clone(&stage.host);
    let look = Arc::new(SlowLook { clock, begun: Barrier::new(2), ended: Barrier::new(2) });
    let host = Arc::<SlowLook>::clone(&look);
    let setup = SessionSetup { host, ..stage.setup.clone() };
    let mut session = ManagedSession::create(setup, stage.new_session("s1")).await.unwrap();
    for turn in 0..4 {
        talk(&stage, &mut session, turn).await;
    }
    let chain = stage.store.session(&Owner::default(), &SessionId::from_text("s1")).unwrap().chain;
    let now_ms = stage.host.now_ms();
    let of_another = LockRequest {
        name: LockRequest::conversation_name(chain),
        holder: holder(1),
        now_ms,
        expires_ms: now_ms + 600_000,
    };
    stage.store.lock(&of_another, &|_| true).unwrap();
    let compacting = tokio::spawn(async move { session.compact(ManualCompaction::default()).await });
    let until = |barrier: fn(&SlowLook) -> &Barrier| {
        let look = Arc::clone(&look);
        tokio::task::spawn_blocking(move || {
            barrier(&look).wait();
        })
    };
    until(|look| &look.begun).await.unwrap();
    compacting.abort();
    assert!(compacting.await.unwrap_err().is_cancelled());
    until(|look| &look.ended).await.unwrap();
    eventually(|| stage.store.locks().unwrap().is_empty()).await;
}

/// A change to what is recorded.
type Spoil = fn(&mut serde_json::Value);

#[tokio::test]
async fn a_summary_of_other_messages_another_model_or_another_session_is_not_used() {
    let spoil: [(&str, Spoil); 5] = [
        ("other messages", |value| value["content"]["content"] = "00".into()),
        ("another model", |value| value["content"]["model"] = "another-model".into()),
        ("another session", |value| value["session"] = "s0".into()),
        ("another engine", |value| value["engine"] = "another-engine".into()),
        ("a later form", |value| value["content"]["kind"] = "later".into()),
    ];
    for (what, spoil) in spoil {
        let stage = Stage::new(WireFormat::Anthropic, 16_000);
        let first = Gateway::new(&stage, 1, "Written at the first gateway.", 1);
        let mut session = first.begin(&stage).await;
        until_asked(&stage, &first, &mut session).await;
        eventually(|| recorded(&stage).is_some()).await;
        drop(session);
        let mut guard = recorded(&stage).unwrap();
        spoil(&mut guard.value);
        let scope = GuardScope::Chain(Owner::default(), SessionId::from_text("s1"));
        stage.store.set_guard(&scope, PREPARED, Some(&guard)).unwrap();
        let second = Gateway::new(&stage, 2, "Written at the second gateway.", 100);
        let mut session = second.open().await;
        talk_until_compacted(&stage, &mut session, 1).await;
        assert!(second.writer.asked() >= 1, "{what}");
        let shown = summaries(&stage);
        assert!(shown.iter().all(|summary| !summary.contains("first gateway")), "{what}: {shown:?}");
    }
}

#[tokio::test]
async fn an_undone_compaction_leaves_nothing_prepared_behind() {
    let stage = Stage::new(WireFormat::Responses, 16_000);
    let gateway = Gateway::new(&stage, 1, "Written at the gateway.", 100);
    let mut session = gateway.begin(&stage).await;
    talk_until_compacted(&stage, &mut session, 1).await;
    assert_eq!(recorded(&stage), None);
    session.undo().await.unwrap();
    assert_eq!(recorded(&stage), None);
}
