//! Opens the parts of a conversation from the settings: record, model, engine, tools, prompt.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_agent::{
    AgentEvents, AgentSetup, ApprovalMode, Approver, MemoryFiles, OutputLimit, PromptParts, SaveMemory,
    ToolBox, Workspace, context_files,
};
use throughline_config::{Settings, WindowSetting};
use throughline_engine::{
    Automatic, CallPolicy, ContextEngine, Host, LockPolicy, ModelTarget, RecordPolicy, RouteHealth,
    SessionSetup, ToolOutputPolicy, learnt_window,
};
use throughline_models::{ModelAtEndpoint, ModelFactSources, ModelSpec, learnt_scope};
use throughline_provider::{Client, Endpoint, EndpointError, EndpointKind};
use throughline_store::{IdLength, Millis, NewSession, Origin, Owner, SessionId, Store};
use throughline_tokens::Catalogue;
use throughline_transcript::WireFormat;
use throughline_wire::Request;

use super::args::ChatArgs;
use crate::app::App;
use crate::engines::{EngineParts, Engines};
use crate::error::{CliError, Exit, io_words};
use crate::host::LocalHost;
use crate::meaning::{automatic_recall, make_vectors};
use crate::model_catalogue::catalogue;
use crate::model_client::{client, configured_slots, not_configured};
use crate::record::{RecordStore, refused};
use crate::settings::load_settings;

/// The number of ids that are tried for a new conversation.
const ID_ATTEMPTS: usize = 8;
/// How the model looks up compacted messages.
const RECALL: &str =
    "Use the tool recall: query searches every word of this conversation, message reads one by its number.";

/// Runs a command line of the program, given without the program's name.
pub(crate) type RunCommand = fn(&App, &[&str]) -> Result<(), CliError>;

/// The state that all conversations of a run share.
pub(super) struct ChatSetup {
    pub(super) app: Arc<App>,
    pub(super) settings: Settings,
    /// The window that `model.context_length` sets.
    window: Option<WindowSetting>,
    pub(super) catalogue: Catalogue,
    pub(super) store: Arc<dyn Store>,
    pub(super) owner: Owner,
    pub(super) folder: PathBuf,
    asking: ApprovalMode,
    /// Runs slash commands that are commands of the program.
    pub(super) run_command: RunCommand,
    host: Arc<LocalHost>,
    health: Arc<RouteHealth>,
}

/// A model with the endpoint to call it at.
#[derive(Clone)]
pub(super) struct ConnectedModel {
    pub(super) at: ModelAtEndpoint,
    pub(super) target: ModelTarget,
    pub(super) output_cap_tokens: Option<u64>,
}

/// The models, approvals and events of a conversation.
#[derive(Clone)]
pub(super) struct Frontend {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) events: Arc<dyn AgentEvents>,
}

/// The error if no endpoint serves a model. `held_on` is the wire format of an existing conversation.
fn not_reachable(error: &EndpointError, held_on: Option<WireFormat>) -> CliError {
    match (error, held_on) {
        (EndpointError::WireNotSpoken { provider, .. }, Some(wire)) => CliError::new(
            Exit::BadConfig,
            format!("this conversation uses the {wire} wire format, which {provider} does not support"),
        )
        .because(format!("its requests cannot be translated into a wire format of {provider} either"))
        .hint(format!(
            "use a model whose server supports the {wire} or chat wire format: `throughline chat --resume ID --model openrouter:NAME`"
        ))
        .hint("or start a new conversation; this one stays searchable"),
        _ => not_configured(error),
    }
}

impl ChatSetup {
    /// Loads settings and opens the record; calls no model yet.
    pub(super) fn open(app: &Arc<App>, args: &ChatArgs, run_command: RunCommand) -> Result<Self, CliError> {
        let provider = args.provider.iter().map(|name| ("--provider", "model.provider", name.clone()));
        let flags: Vec<_> = provider.collect();
        let loaded = load_settings(app, &flags)?;
        let (window, settings) = (loaded.window_setting(), loaded.settings);
        let folder = std::env::current_dir().map_err(|error| {
            CliError::new(Exit::InputUnreadable, "cannot determine the current directory")
                .because(io_words(&error))
        })?;
        let store = RecordStore::open(app)?;
        // Search reports a failing embedding model itself; a warning here would interrupt the conversation.
        make_vectors(app, &settings, &store, |_| ());
        let asking = match (args.yolo, app.can_ask) {
            (true, _) => ApprovalMode::Never,
            (false, true) => ApprovalMode::Always,
            (false, false) => ApprovalMode::Nobody,
        };
        Ok(Self {
            catalogue: catalogue(app)?,
            settings,
            window,
            store: store.shared(),
            owner: Owner::default(),
            folder,
            asking,
            run_command,
            host: Arc::new(LocalHost::new(app, "chat")),
            health: Arc::default(),
            app: Arc::clone(app),
        })
    }

    /// Whether tools need approval.
    pub(super) fn asking(&self) -> ApprovalMode {
        self.asking
    }

    /// The specification of the named or configured model.
    pub(super) fn wish(&self, model: Option<&str>) -> ModelSpec {
        let main = ModelSpec { window: self.window.clone(), ..ModelSpec::main(&self.settings) };
        model.map_or_else(|| main.clone(), |name| main.named(name))
    }

    /// The endpoint for a model.
    pub(super) fn endpoint(&self, wish: &ModelSpec) -> Result<Endpoint, EndpointError> {
        wish.endpoint(|name| self.app.variable(name).map(str::to_owned))
    }

    /// The endpoint for a model in a conversation with a wire format: in that format, or in one its requests can be translated to.
    fn reach(&self, wish: &ModelSpec, held_on: WireFormat) -> Result<Endpoint, EndpointError> {
        let on = |wire: WireFormat| self.endpoint(&ModelSpec { wire: Some(wire), ..wish.clone() });
        let reachable = |spoken: &WireFormat| *spoken == held_on || Request::can_translate(held_on, *spoken);
        // A wire format that the user set is used as it is.
        if let Some(spoken) = wish.wire.filter(reachable) {
            return on(spoken);
        }
        // Custom servers are only assumed to support every wire format. They certainly support the one that a new conversation would use.
        let usual = self.endpoint(wish)?;
        if usual.kind.wires_are_assumed() && reachable(&usual.wire) {
            return Ok(usual);
        }
        match on(held_on) {
            Err(EndpointError::WireNotSpoken { prefix, provider, wire }) => {
                let kind = EndpointKind::parse(provider);
                let spoken = kind.into_iter().flat_map(EndpointKind::wires).copied().find(reachable);
                spoken.map_or(Err(EndpointError::WireNotSpoken { prefix, provider, wire }), on)
            }
            reached => reached,
        }
    }

    /// Resolves a model for a conversation: one with an existing wire format, or a new one. The endpoint is asked for the window only if
    /// no better source has it, because the user waits.
    pub(super) async fn connect(
        &self,
        wish: &ModelSpec,
        held_on: Option<WireFormat>,
    ) -> Result<ConnectedModel, CliError> {
        let reached = held_on.map_or_else(|| self.endpoint(wish), |wire| self.reach(wish, wire));
        let endpoint = reached.map_err(|error| not_reachable(&error, held_on))?;
        let client = client(&self.app, &endpoint)?;
        if wish.is_at_main_server(&self.settings) {
            let slots = configured_slots(self.settings.model.parallel_requests);
            client.slots().configure(&endpoint, slots);
        }
        let learnt = learnt_window(self.store.as_ref(), &learnt_scope(&endpoint, &wish.model), self.now_ms())
            .map_err(refused)?;
        let before =
            ModelFactSources { settings: &self.settings, catalogue: &self.catalogue, said: None, learnt };
        let is_known = !endpoint.base.is_local() && self.catalogue.of(&wish.model).facts.entry.is_some();
        let at = if is_known {
            ModelAtEndpoint::of(wish, Some(endpoint), &before)
        } else {
            ModelAtEndpoint::look_up(wish, endpoint, &client, &before).await
        };
        let target = at
            .target(&client)
            .ok_or_else(|| CliError::new(Exit::BadConfig, "no endpoint serves the model"))?;
        let target = self.put_on(held_on.unwrap_or(at.wire), target);
        Ok(ConnectedModel {
            output_cap_tokens: at.output_cap_tokens(self.settings.model.max_tokens),
            target,
            at,
        })
    }

    /// Adapts a model to the conversation's wire format, if it is called in another one.
    fn put_on(&self, held_on: WireFormat, target: ModelTarget) -> ModelTarget {
        let (app, model, spoken) = (Arc::clone(&self.app), target.model.clone(), target.wire_format);
        let left_out = Arc::new(move |what: &str| {
            app.warn(&format!("{model} is called in the {spoken} wire format, which cannot carry {what}"));
        });
        let host: Arc<dyn Host> = Arc::<LocalHost>::clone(&self.host);
        target.for_wire(held_on, &host, left_out)
    }

    /// Returns the fallback models, and the problems of those that cannot be used.
    async fn alternatives(
        &self,
        wish: &ModelSpec,
        wire_format: WireFormat,
    ) -> (Vec<ModelTarget>, Vec<String>) {
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for other in wish.fallbacks(&self.settings) {
            match self.connect(&other, Some(wire_format)).await {
                Ok(connected) => found.push(connected.target),
                Err(failure) => problems.push(format!(
                    "{} cannot be used as a fallback: {}",
                    other.model,
                    failure.words()
                )),
            }
        }
        (found, problems)
    }

    /// Returns the engine for one conversation, and the problems that the user should know.
    async fn engine(&self, client: &Client) -> Result<(Arc<dyn ContextEngine>, Vec<String>), CliError> {
        let parts = EngineParts {
            app: &self.app,
            settings: &self.settings,
            catalogue: &self.catalogue,
            store: Arc::clone(&self.store),
            host: Arc::<LocalHost>::clone(&self.host),
            client,
            health: Arc::clone(&self.health),
            recall: Some(RECALL.to_owned()),
        };
        let (engines, problems) = Engines::find(parts).await?;
        Ok((engines.make(&Owner::default()), problems))
    }

    /// Returns the setup of the agent for the conversation of a session.
    pub(super) async fn agent_setup(
        &self,
        connected: &ConnectedModel,
        wish: &ModelSpec,
        session: &SessionId,
        frontend: Frontend,
    ) -> Result<AgentSetup, CliError> {
        let wire_format = connected.target.wire_format;
        let endpoint = connected.at.endpoint.as_ref();
        let endpoint =
            endpoint.ok_or_else(|| CliError::new(Exit::BadConfig, "no endpoint serves the model"))?;
        let (engine, mut problems) = self.engine(&client(&self.app, endpoint)?).await?;
        let (alternatives, cannot) = self.alternatives(wish, wire_format).await;
        problems.extend(cannot);
        problems.iter().for_each(|problem| self.app.warn(problem));
        let limit = OutputLimit::of(&connected.target.policy);
        Ok(AgentSetup {
            session: SessionSetup {
                store: Arc::clone(&self.store),
                owner: self.owner.clone(),
                engine,
                host: Arc::<LocalHost>::clone(&self.host),
                events: Arc::new(|_| {}),
                target: connected.target.clone(),
                alternatives,
                policy: CallPolicy {
                    automatic: if self.settings.compression.enabled { Automatic::On } else { Automatic::Off },
                    record: RecordPolicy::GoOn,
                    lock: LockPolicy::WholeSession,
                    ids: IdLength::Local,
                    recall: automatic_recall(&self.settings),
                },
                tool_output: ToolOutputPolicy::default(),
            },
            tools: self.tools(session, &limit)?,
            limit,
            asking: self.asking,
            approver: frontend.approver,
            events: frontend.events,
            output_cap_tokens: connected.output_cap_tokens,
            save_memory: match self.settings.compression.save_memory {
                true => SaveMemory::AtCompaction,
                false => SaveMemory::Never,
            },
        })
    }

    fn tools(&self, session: &SessionId, limit: &OutputLimit) -> Result<ToolBox, CliError> {
        let workspace = Workspace::new(&self.folder).map_err(|error| {
            CliError::new(Exit::InputUnreadable, "cannot work in this folder").because(io_words(&error))
        })?;
        let recall = (Arc::clone(&self.store), self.owner.clone(), session.clone());
        Ok(ToolBox::of_workspace(workspace, self.memory(), recall, limit))
    }

    /// The notes that are part of every prompt.
    pub(super) fn memory(&self) -> MemoryFiles {
        MemoryFiles::new(&self.app.home)
    }

    /// The system prompt for a new conversation, with advice about these tools.
    pub(super) fn prompt(&self, tools: &ToolBox) -> String {
        let memory = self.memory();
        let note = |text: Result<String, throughline_agent::ToolError>| {
            text.unwrap_or_else(|error| {
                self.app.warn(&format!("notes are left out: {error}"));
                String::new()
            })
        };
        let files = context_files(&self.folder);
        let tools: Vec<String> = tools.schemas().into_iter().map(|tool| tool.name).collect();
        (PromptParts {
            folder: &self.folder.display().to_string(),
            system: std::env::consts::OS,
            tools: &tools,
            files: &files,
            memory: &note(memory.memory()),
            user: &note(memory.user()),
            date: &self.app.now().date(self.now_ms()),
        })
        .render()
    }

    /// Returns a new conversation.
    pub(super) fn new_session(&self, connected: &ConnectedModel) -> NewSession {
        let now_ms = self.now_ms();
        // Ids have few random digits, so an id may already be taken.
        let mut ids = std::iter::repeat_with(|| self.app.new_session_id(now_ms)).take(ID_ATTEMPTS);
        let free = ids.find(|id| self.store.session(&self.owner, id).is_err());
        NewSession {
            id: free.unwrap_or_else(|| self.app.new_session_id(now_ms)),
            owner: self.owner.clone(),
            link: None,
            started_ms: now_ms,
            model: Some(connected.at.model.clone()),
            title: None,
            origin: Origin {
                program: "chat".to_owned(),
                key: None,
                project: Some(self.folder.display().to_string()),
            },
            wire_format: connected.target.wire_format,
        }
    }

    pub(super) fn now_ms(&self) -> Millis {
        self.app.now().ms
    }
}
