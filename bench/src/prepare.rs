//! The time to prepare a call in a conversation of a million tokens: from a new message to the finished body, including the writes to the
//! record, in memory and on disk. The baseline, in the same run, builds the same body from scratch: every message is measured, hashed and
//! checked for cache marks, as if none were known.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throughline_engine::{
    Automatic, CallInput, CallPolicy, Compressor, CompressorSetup, Envelope, Host, IncomingMessage,
    LockPolicy, ManagedSession, ModelTarget, PieceSender, PriceSource, RecordPolicy, SessionSetup,
    ThresholdOrigin, ToolOutputPolicy, Upstream, UpstreamAnswer, UpstreamFuture,
};
use throughline_provider::{CacheMarks, CachePolicy, CacheSeller, CacheTtl, OutgoingCall, PieceHash};
use throughline_store::{
    Holder, IdLength, MemoryStore, Millis, NewSession, Origin, Owner, SessionId, SqliteStore, Store,
};
use throughline_testkit::big_transcript;
use throughline_tokens::{ContentProfile, LimitPolicy, TokenModel, Usage};
use throughline_transcript::{
    DecodeOptions, Message, RawJson, Role, SharedText, WireFormat, compact_json_string, decode,
    decode_message, text_message,
};
use throughline_wire::{Answer, AnswerDraft, Request, RequestParts, System};
use tokio_util::sync::CancellationToken;

const MESSAGES: usize = 3_000;
const BYTES: usize = 3_900_000;
const CALLS: usize = 200;
/// The number of warm-up calls.
const WARM_UP: usize = 20;
/// The interval, in calls, at which the body is built from scratch.
const SCRATCH_EVERY: usize = 5;
const MODEL: &str = "claude-opus-4-5";
const WINDOW_TOKENS: u64 = 8_000_000;
const SYSTEM_BYTES: usize = 20_000;
const TOOLS: usize = 24;
const LIMIT_MS: f64 = 3.0;

struct Machine;

impl Host for Machine {
    fn now_ms(&self) -> Millis {
        1_790_000_000_000
    }

    fn random(&self) -> u32 {
        7
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "bench".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// Answers at once, and stores the time and the size of the request.
struct Stopwatch {
    wire_format: WireFormat,
    asked: Mutex<Option<(Instant, usize)>>,
}

impl Stopwatch {
    fn asked(&self) -> Option<(Instant, usize)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Upstream for Stopwatch {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let now = (Instant::now(), call.body.len());
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        let usage = Usage { input: call.body.len() as u64 / 4, output: 12, ..Usage::default() };
        let draft = AnswerDraft::text("Done; the tests pass.").with_usage(usage);
        let body = draft.to_response(self.wire_format);
        let unanswered = throughline_engine::UpstreamFailure::trouble(
            throughline_provider::ProviderError::of(throughline_provider::ProviderErrorKind::Unknown),
        );
        let received = Answer::decode(self.wire_format, body.as_bytes())
            .map(|answer| UpstreamAnswer { answer, first_content: None })
            .map_err(|_| Box::new(unanswered));
        Box::pin(std::future::ready(received))
    }
}

/// Runs the benchmark and formats the table.
pub(crate) fn run() -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().map_err(told)?;
    let mut out = String::from(
        "From one new message to a body ready to be sent, in a conversation of a million tokens\n\n",
    );
    let _ = writeln!(
        out,
        "{:<11} {:<10} {:>9} {:>8} | {:>7} {:>7} {:>8} | {:>11} {:>7} {:>6}",
        "wire",
        "record",
        "tokens",
        "body MB",
        "p50 ms",
        "p95 ms",
        "worst ms",
        "scratch p50",
        "p95 ms",
        "ratio"
    );
    let mut holds = true;
    for wire_format in WireFormat::ALL {
        for on_disk in [false, true] {
            let folder = tempfile::tempdir().map_err(told)?;
            let store: Arc<dyn Store> = if on_disk {
                Arc::new(SqliteStore::open(&folder.path().join("record.db"), Machine.now_ms()).map_err(told)?)
            } else {
                Arc::new(MemoryStore::new())
            };
            let figures = runtime.block_on(measure(wire_format, store))?;
            let (p50, p95) = (percentile(&figures.times, 50), percentile(&figures.times, 95));
            let scratch = percentile(&figures.scratch, 50);
            // Waiting for the disk is not part of preparing a call, so it has no limit.
            holds &= on_disk || p50 < LIMIT_MS;
            let _ = writeln!(
                out,
                "{:<11} {:<10} {:>9} {:>8.1} | {:>7.2} {:>7.2} {:>8.2} | {:>11.2} {:>7.2} {:>5.0}x",
                wire_format.name(),
                if on_disk { "on disk" } else { "in memory" },
                figures.tokens,
                figures.body_bytes as f64 / 1e6,
                p50,
                p95,
                percentile(&figures.times, 100),
                scratch,
                percentile(&figures.scratch, 95),
                scratch / p50.max(0.001),
            );
        }
    }
    let verdict = if holds { "holds" } else { "MISSED" };
    let _ = writeln!(out, "\nUnder {LIMIT_MS} ms at the median, the disk aside: {verdict}");
    Ok(out)
}

struct Figures {
    tokens: u64,
    body_bytes: usize,
    /// Sorted times.
    times: Vec<Duration>,
    /// Sorted times from scratch.
    scratch: Vec<Duration>,
}

fn percentile(times: &[Duration], percent: usize) -> f64 {
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

async fn measure(wire_format: WireFormat, store: Arc<dyn Store>) -> Result<Figures, String> {
    let upstream = Arc::new(Stopwatch { wire_format, asked: Mutex::new(None) });
    let mut session = open(wire_format, store, Arc::<Stopwatch>::clone(&upstream)).await?;
    let fixed = Fixed::new(wire_format);
    let envelope = Envelope::build(wire_format, &fixed.parts()).map_err(told)?;
    let json = big_transcript(wire_format, BYTES, MESSAGES, 5);
    let messages = decode(json.into_bytes(), &DecodeOptions::default()).map_err(told)?.messages;
    let incoming = messages.into_iter().map(IncomingMessage::from).collect();
    session.call(CallInput::new(envelope.clone(), incoming)).await.map_err(told)?;
    let (mut times, mut scratch) = (Vec::with_capacity(CALLS), Vec::new());
    let mut body_bytes = 0;
    for number in 0..WARM_UP + CALLS {
        let question = message(wire_format, number)?;
        let input = CallInput::new(envelope.clone(), vec![question.into()]);
        let began = Instant::now();
        session.call(input).await.map_err(told)?;
        let (asked, bytes) = upstream.asked().ok_or("the upstream was not asked")?;
        if number < WARM_UP {
            continue;
        }
        times.push(asked.duration_since(began));
        body_bytes = bytes;
        if number % SCRATCH_EVERY == 0 {
            let began = Instant::now();
            let bytes = from_scratch(wire_format, &fixed, session.messages())?;
            scratch.push(began.elapsed());
            // Apart from the answer that was added since, the body must be the same.
            let grown = bytes.abs_diff(body_bytes);
            if grown > 1_000 {
                return Err(format!("from scratch the body has {bytes} bytes, prepared {body_bytes}"));
            }
        }
    }
    times.sort_unstable();
    scratch.sort_unstable();
    Ok(Figures { tokens: session.pressure().tokens, body_bytes, times, scratch })
}

/// Computes everything that a call is prepared from: sizes, the threshold, hashes, marks, the body.
fn from_scratch(wire_format: WireFormat, fixed: &Fixed, messages: &[Message]) -> Result<usize, String> {
    let token_model = TokenModel::for_model(MODEL, wire_format);
    let fixed_profile =
        ContentProfile::of_system(&fixed.system_json) + ContentProfile::of_tools(&fixed.tools);
    let sizes =
        messages.iter().map(|message| token_model.estimate_content(&ContentProfile::of_message(message)));
    let tokens: u64 = sizes.sum::<u64>() + token_model.estimate_content(&fixed_profile);
    if tokens >= WINDOW_TOKENS / 2 {
        return Err("the conversation is over the threshold".to_owned());
    }
    let hashes: Vec<PieceHash> = messages.iter().map(|message| PieceHash::of(message.json())).collect();
    let mut request = Request::build(wire_format, &fixed.parts(), Vec::new()).map_err(told)?;
    let body = match cache(wire_format) {
        CachePolicy::Marks { layout, ttl, .. } => {
            CacheMarks { layout, ttl }.encode(&mut request, messages, 0).0
        }
        _ => request.with_messages(messages.iter().map(Message::json)),
    };
    black_box((hashes, tokens));
    Ok(black_box(body).len())
}

fn cache(wire_format: WireFormat) -> CachePolicy {
    let seller = match wire_format {
        WireFormat::Anthropic => CacheSeller::Anthropic,
        WireFormat::Chat => CacheSeller::OpenRouter,
        WireFormat::Responses => CacheSeller::OpenAi,
    };
    CachePolicy::of(seller, wire_format, MODEL, CacheTtl::FiveMinutes)
}

async fn open(
    wire_format: WireFormat,
    store: Arc<dyn Store>,
    upstream: Arc<dyn Upstream>,
) -> Result<ManagedSession, String> {
    let setup = SessionSetup {
        store,
        owner: Owner::default(),
        engine: Arc::new(Compressor::new(CompressorSetup::by_rules())),
        host: Arc::new(Machine),
        events: Arc::new(|_event| {}),
        target: ModelTarget {
            model: MODEL.to_owned(),
            provider: "bench".to_owned(),
            endpoint: "http://127.0.0.1".to_owned(),
            wire_format,
            // Far from any threshold, so that the measured call changes nothing.
            policy: LimitPolicy::for_window(WINDOW_TOKENS),
            window_origin: String::new(),
            threshold_origin: ThresholdOrigin::General,
            cache: cache(wire_format),
            price_source: PriceSource::of_seller("bench".to_owned()),
            cache_minimum_tokens: None,
            upstream,
        },
        alternatives: Vec::new(),
        policy: CallPolicy {
            automatic: Automatic::On,
            record: RecordPolicy::Require,
            lock: LockPolicy::Compactions,
            ids: IdLength::Local,
            recall: None,
        },
        tool_output: ToolOutputPolicy::default(),
    };
    let new = NewSession {
        id: SessionId::from_text("bench"),
        owner: Owner::default(),
        link: None,
        started_ms: Machine.now_ms(),
        model: Some(MODEL.to_owned()),
        title: None,
        origin: Origin { program: "bench".to_owned(), key: None, project: None },
        wire_format,
    };
    ManagedSession::create(setup, new).await.map_err(told)
}

/// The part before the messages, as long as that of a coding agent.
struct Fixed {
    system: String,
    system_json: String,
    tools: String,
}

impl Fixed {
    fn new(wire_format: WireFormat) -> Self {
        let rule = "Keep to the style of the repository and run the tests before you say that you are done. ";
        let system = rule.repeat(SYSTEM_BYTES / rule.len());
        let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"Where the file is"},"offset":{"type":"integer"}}}"#;
        let about =
            "Reads a file and numbers its lines; large files are read in pieces by offset. ".repeat(12);
        let tool = |number: usize| match wire_format {
            WireFormat::Anthropic => {
                format!(r#"{{"name":"tool_{number}","description":"{about}","input_schema":{schema}}}"#)
            }
            WireFormat::Chat => format!(
                r#"{{"type":"function","function":{{"name":"tool_{number}","description":"{about}","parameters":{schema}}}}}"#
            ),
            WireFormat::Responses => format!(
                r#"{{"type":"function","name":"tool_{number}","description":"{about}","parameters":{schema}}}"#
            ),
        };
        let tools = format!("[{}]", (0..TOOLS).map(tool).collect::<Vec<_>>().join(","));
        let system_json = compact_json_string(&system);
        Self { system, system_json, tools }
    }

    fn parts(&self) -> RequestParts<'_> {
        RequestParts {
            system: Some(System::Text(&self.system)),
            tools: Some(RawJson(&self.tools)),
            ..RequestParts::new(MODEL)
        }
    }
}

fn message(wire_format: WireFormat, number: usize) -> Result<Message, String> {
    let text = format!("Question {number}: does `prepare` look at more than it has to? ").repeat(60);
    let json = text_message(wire_format, Role::User, &text);
    decode_message(SharedText::new(json)).ok_or_else(|| "the question is no message".to_owned())
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
