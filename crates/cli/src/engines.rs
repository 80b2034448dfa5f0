//! Chooses the engine of a conversation from the settings: `context.engine`, and the models that write summaries.

pub(crate) mod manifest;
mod services;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline_compaction::{PruneRules, RuleSummariser};
use throughline_config::{EngineFallback, LcmSettings, Settings};
use throughline_engine::{
    Compressor, CompressorSetup, ContextEngine, EngineDirectory, EngineError, Host, ModelSummaries,
    OnSummaryFailure, OneSummariser, OwnModel, Registry, RegistryError, RouteHealth, SummariserSource,
    SummarySetup, learnt_window,
};
use throughline_gateway::EngineSource;
use throughline_lcm::{LcmEngine, LcmLimits, LcmSetup, RecallLimits, RecallToolset};
use throughline_models::{ClientOwners, RouteSearch, SummarySettings};
use throughline_plugin::{EngineBounds, EngineHealth, FallbackEngine, ProcessEngine, UnavailableEngine};
use throughline_provider::Client;
use throughline_redact::Redactor;
use throughline_store::{GuardScope, Owner, Store};
use throughline_tokens::Catalogue;

use crate::app::App;
use crate::engines::manifest::{problem_with, read_manifest};
use crate::engines::services::Services;
use crate::error::{CliError, Exit};
use crate::files::engine_directories;

/// The hint for engines that cannot be used.
const ASK_PLUGINS: &str = "`throughline plugins` lists the engines and their problems";

/// How long a client's call waits for a summary that a model is writing.
const CLIENT_WAIT: Duration = Duration::from_secs(2);

/// The words for the model of a conversation, if there are many conversations.
const OWN_MODEL: &str = "the conversation's own model";

/// The inputs for creating engines.
pub(crate) struct EngineParts<'a> {
    pub(crate) app: &'a App,
    pub(crate) settings: &'a Settings,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) client: &'a Client,
    /// The recent results of routes to summary models.
    pub(crate) health: Arc<RouteHealth>,
    /// The hint that tells the model how to look up compacted messages, if it can.
    pub(crate) recall: Option<String>,
}

/// The additional inputs of the lossless engine.
#[derive(Clone)]
struct LosslessParts {
    store: Arc<dyn Store>,
    host: Arc<dyn Host>,
    limits: LcmLimits,
}

/// Creates the engines of conversations.
#[derive(Clone)]
pub(crate) struct Engines {
    compressor: CompressorSetup,
    lossless: LosslessParts,
    summaries: Option<SummarySetup>,
    name: String,
    fallback: EngineFallback,
    directories: Vec<EngineDirectory>,
    health: Arc<EngineHealth>,
    app: Arc<App>,
    /// Whether clients belong to one owner or to several.
    owners: ClientOwners,
    /// The owner of the first conversation that an engine was created for.
    first_owner: Arc<Mutex<Option<Owner>>>,
}

impl Engines {
    /// Resolves the models that write summaries. Also returns the problems of those that cannot be used.
    pub(crate) async fn find(parts: EngineParts<'_>) -> Result<(Self, Vec<String>), CliError> {
        let wishes = SummarySettings::of(parts.settings);
        Self::with_summaries_by(wishes, parts).await
    }

    /// Does the same for conversations that use the clients' keys. The conversation's own model writes summaries with the client's key,
    /// if the settings and the owners of access tokens allow it. No call waits long for it.
    pub(crate) async fn find_for_clients(
        parts: EngineParts<'_>,
        owners: ClientOwners,
    ) -> Result<(Self, Vec<String>), CliError> {
        let wishes = SummarySettings::for_clients(parts.settings, owners);
        let (mut engines, problems) = Self::with_summaries_by(wishes, parts).await?;
        if engines.summaries.as_ref().is_some_and(|setup| setup.own_model == OwnModel::ByClientKey) {
            engines.compressor.summary_wait = Some(CLIENT_WAIT);
        }
        engines.owners = owners;
        Ok((engines, problems))
    }

    async fn with_summaries_by(
        wishes: Option<SummarySettings>,
        parts: EngineParts<'_>,
    ) -> Result<(Self, Vec<String>), CliError> {
        let EngineParts { app, settings, catalogue, store, host, client, health, recall } = parts;
        let redactor = settings.security.redact_secrets.then(Redactor::new);
        let mut problems = Vec::new();
        let summaries = match wishes {
            None => None,
            Some(wishes) => {
                let variable = |name: &str| app.variable(name).map(str::to_owned);
                let learnt =
                    |scope: &GuardScope| learnt_window(store.as_ref(), scope, host.now_ms()).ok().flatten();
                let search =
                    RouteSearch { settings, catalogue, client, variable: &variable, learnt: &learnt };
                let found = search.find(&wishes).await;
                problems = found.problems;
                Some(SummarySetup {
                    routes: found.routes,
                    own_model: wishes.own_model,
                    time_limit: settings.auxiliary.compression.timeout,
                    redactor: redactor.clone(),
                    host: Arc::clone(&host),
                    health,
                })
            }
        };
        let compression = &settings.compression;
        let on_failure = match compression.abort_on_summary_failure {
            true => OnSummaryFailure::Abort,
            false => OnSummaryFailure::UseRules,
        };
        let prune = PruneRules {
            result_min_chars: compression.prune_min_chars,
            argument_max_chars: compression.argument_max_chars,
        };
        let compressor =
            CompressorSetup { on_failure, prune, redactor, recall, ..CompressorSetup::by_rules() };
        let (name, directories) = (settings.context.engine.clone(), engine_directories(&app.home));
        let (fallback, app) = (settings.context.fallback, Arc::new(app.clone()));
        let health = Arc::<EngineHealth>::default();
        let lossless = LosslessParts { store, host, limits: lcm_limits(&settings.lcm) };
        let (owners, first_owner) = (ClientOwners::One, Arc::default());
        let mut engines = Self {
            compressor,
            lossless,
            summaries,
            name,
            fallback,
            directories,
            health,
            app,
            owners,
            first_owner,
        };
        match engines.try_make(&Owner::default()) {
            // A broken engine must not stop a conversation; an unknown name is a mistake in the settings.
            Ok(_) | Err(RegistryError::Broken { .. }) => {}
            Err(error @ RegistryError::Unknown { .. }) if engines.fallback != EngineFallback::Nobody => {
                problems.push(format!(
                    "{error}; `{}` is used instead, as `context.fallback` says",
                    Compressor::NAME
                ));
                engines.name = Compressor::NAME.to_owned();
            }
            Err(error) => return Err(CliError::new(Exit::BadConfig, error.to_string()).hint(ASK_PLUGINS)),
        }
        Ok((engines, problems))
    }

    /// Creates the engine for a new conversation of an owner.
    pub(crate) fn make(&self, owner: &Owner) -> Arc<dyn ContextEngine> {
        if self.is_another_owner(owner) {
            return Self { summaries: None, ..self.clone() }.make_for(owner);
        }
        self.make_for(owner)
    }

    /// Whether a token of a second owner was created after the start. In that case rules write summaries, as if it had existed at the
    /// start.
    fn is_another_owner(&self, owner: &Owner) -> bool {
        let mut first = self.first_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let asks_own = self.summaries.as_ref().is_some_and(|setup| setup.own_model == OwnModel::ByClientKey);
        asks_own && first.get_or_insert_with(|| owner.clone()) != owner
    }

    fn make_for(&self, owner: &Owner) -> Arc<dyn ContextEngine> {
        self.try_make(owner).unwrap_or_else(|problem| match problem {
            RegistryError::Broken { why, .. } => self.absent(&why),
            other => self.absent(&other.to_string()),
        })
    }

    /// The problem of the selected engine, as far as it is visible without starting it.
    pub(crate) fn problem(&self) -> Option<String> {
        let directory = self.directories.iter().find(|directory| directory.name == self.name.trim())?;
        let problem = problem_with(&self.app, directory)?;
        let name = &directory.name;
        Some(format!(
            "the context engine `{name}` is broken: {problem}; nothing is compacted until it is repaired"
        ))
    }

    fn try_make(&self, owner: &Owner) -> Result<Arc<dyn ContextEngine>, RegistryError> {
        let (own, lossless, owner) = (self.clone(), self.clone(), owner.clone());
        Registry::new(Arc::new(move || own.built_in()))
            .with_built_in(LcmEngine::NAME, Arc::new(move || lossless.lossless(&owner)))
            .select(&self.name, &self.directories, &|directory| self.installed(directory))
    }

    /// Replaces an engine that cannot be created.
    fn absent(&self, why: &str) -> Arc<dyn ContextEngine> {
        self.with_fallback(Arc::new(UnavailableEngine::new(self.name.trim(), why)))
    }

    /// Creates the engine of a directory for one conversation.
    fn installed(&self, directory: &EngineDirectory) -> Result<Arc<dyn ContextEngine>, String> {
        let manifest = read_manifest(directory)?;
        let launch = manifest.launch(&directory.path, Path::is_file);
        let routes = self.summaries.as_ref().map(|setup| setup.routes.clone()).unwrap_or_default();
        let services = Services::new(&self.app, &directory.name, routes);
        let bounds = EngineBounds::default();
        let engine = ProcessEngine::new(&directory.name, launch, bounds, Arc::new(services));
        let engine = engine.sharing(&self.health).masking(self.compressor.redactor.clone());
        Ok(self.with_fallback(Arc::new(engine)))
    }

    /// Adds the built-in engine as a fallback if the settings ask for one.
    fn with_fallback(&self, engine: Arc<dyn ContextEngine>) -> Arc<dyn ContextEngine> {
        if self.fallback == EngineFallback::Nobody {
            return engine;
        }
        let app = Arc::clone(&self.app);
        let stepped_in = Arc::new(move |error: &EngineError| {
            app.warn(&format!("{error}; using the built-in engine"));
        });
        Arc::new(FallbackEngine::new(engine, self.built_in(), stepped_in))
    }

    /// Describes who writes summaries.
    pub(crate) fn authors(&self) -> String {
        let name = self.name.trim();
        if self.directories.iter().any(|directory| directory.name == name) {
            return format!("as the engine {name} has them");
        }
        let Some(setup) = &self.summaries else {
            let why = match self.owners {
                ClientOwners::One => {
                    "by rules; auxiliary.compression.provider: auto has the model write them"
                }
                ClientOwners::Several => {
                    "by rules, since access tokens have several owners; auxiliary.compression.provider: main has the model write them"
                }
            };
            return why.to_owned();
        };
        if setup.own_model == OwnModel::ByClientKey {
            return "by the conversation's own model with the client's key, else by rules; \
                    auxiliary.compression.provider: rules turns that off"
                .to_owned();
        }
        let mut authors: Vec<&str> = setup.routes.iter().map(|route| route.target.model.as_str()).collect();
        match setup.own_model {
            OwnModel::First | OwnModel::ByClientKey => authors.insert(0, OWN_MODEL),
            OwnModel::Last => authors.push(OWN_MODEL),
            OwnModel::Never => {}
        }
        authors.push("rules");
        format!("by {}", authors.join(", else by "))
    }

    /// Returns the engines for a host that calls the model itself: rules replace the conversation's own model.
    pub(crate) fn without_own_model(mut self) -> Self {
        self.summaries = self.summaries.filter(|setup| !setup.routes.is_empty());
        self
    }

    /// Returns engines for previews, which summarise by rules and store nothing.
    pub(crate) fn for_previews(&self) -> Vec<(&'static str, EngineSource)> {
        let (own, lossless) = (self.clone(), self.clone());
        let rules = Arc::new(OneSummariser(Arc::new(RuleSummariser)));
        let compressor = move |_: &Owner| -> Arc<dyn ContextEngine> {
            let summarisers = Arc::clone(&rules) as Arc<dyn SummariserSource>;
            Arc::new(Compressor::new(CompressorSetup { summarisers, ..own.compressor.clone() }))
        };
        let lcm = move |owner: &Owner| -> Arc<dyn ContextEngine> {
            let LosslessParts { store, host, limits } = lossless.lossless.clone();
            let CompressorSetup { on_failure, prune, redactor, .. } = lossless.compressor.clone();
            let by_rules = LcmSetup::by_rules(store, owner.clone(), host);
            Arc::new(LcmEngine::for_preview(LcmSetup { on_failure, prune, redactor, limits, ..by_rules }))
        };
        vec![(Compressor::NAME, Arc::new(compressor)), (LcmEngine::NAME, Arc::new(lcm))]
    }

    /// Creates the built-in engine.
    pub(crate) fn built_in(&self) -> Arc<dyn ContextEngine> {
        let summarisers = self.summarisers();
        Arc::new(Compressor::new(CompressorSetup { summarisers, ..self.compressor.clone() }))
    }

    /// Creates the lossless engine for a conversation of an owner.
    fn lossless(&self, owner: &Owner) -> Arc<dyn ContextEngine> {
        let LosslessParts { store, host, limits } = self.lossless.clone();
        let CompressorSetup { on_failure, prune, redactor, .. } = self.compressor.clone();
        let by_rules = LcmSetup::by_rules(store, owner.clone(), host);
        // Its leaves are written while a call waits.
        let asks_own = self.summaries.as_ref().is_some_and(|setup| setup.own_model == OwnModel::ByClientKey);
        let summarisers = if asks_own { by_rules.summarisers.clone() } else { self.summarisers() };
        Arc::new(LcmEngine::new(LcmSetup { summarisers, on_failure, prune, redactor, limits, ..by_rules }))
    }

    /// Whether a configured model can answer questions, independent of the conversation.
    pub(crate) fn answers_questions(&self) -> bool {
        self.summaries.as_ref().is_some_and(|setup| !setup.routes.is_empty())
    }

    /// Returns the tools with which a model looks up an owner's conversations.
    pub(crate) fn recaller(&self, owner: &Owner) -> RecallToolset {
        let LosslessParts { store, limits, .. } = self.lossless.clone();
        let redactor = self.compressor.redactor.clone();
        RecallToolset::new(store, owner.clone(), limits.recall, self.summarisers(), redactor)
    }

    /// The summarisers for one conversation.
    fn summarisers(&self) -> Arc<dyn SummariserSource> {
        match &self.summaries {
            None => Arc::new(OneSummariser(Arc::new(RuleSummariser))),
            Some(setup) => Arc::new(ModelSummaries::new(setup.clone())),
        }
    }
}

/// The configured limits of the lossless engine and its tools.
pub(crate) fn lcm_limits(settings: &LcmSettings) -> LcmLimits {
    LcmLimits {
        chunk_tokens: settings.chunk_tokens as u64,
        fan_in: settings.fan_in,
        nodes_tokens: settings.nodes_tokens,
        older_percent: settings.older_percent as u64,
        condensed_percent: settings.condensed_percent as u64,
        recall: RecallLimits {
            expand_tokens: settings.expand_tokens as u64,
            grep_hits: settings.grep_hits,
            query_tokens: settings.query_tokens as u64,
            answer_tokens: settings.answer_tokens as u64,
        },
    }
}
