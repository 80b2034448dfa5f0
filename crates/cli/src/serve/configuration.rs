//! Converts settings to the configuration of a gateway, at its start and at each reload.

use std::sync::Arc;
use std::time::Duration;

use throughline_config::Loaded;
use throughline_engine::{
    Automatic, CallPolicy, Host, LockPolicy, LongResults, RecordPolicy, RouteHealth, ToolOutputPolicy,
};
use throughline_gateway::{Gateway, GatewayConfig, RecallConfig, RecallOffer, TenantPaths, Tls, Upstreams};
use throughline_lcm::LcmEngine;
use throughline_provider::{BaseUrl, Client, ClientOptions, RetryLimits, TimeLimits};
use throughline_store::{IdLength, Owner, Store};
use throughline_transcript::WireFormat;

use crate::access_token_list::AccessTokenList;
use crate::app::App;
use crate::engines::{EngineParts, Engines};
use crate::error::{CliError, Exit};
use crate::meaning::automatic_recall;
use crate::model_catalogue::catalogue;
use crate::model_client::{configured_slots, proxy};
use crate::record::RecordStore;
use crate::serve::log::ServeLog;
use crate::serve::{ServeArgs, access, recall, upstreams};
use crate::settings::{SettingFlag, load_settings};

/// The sources of a configuration.
pub(super) struct ConfigSource {
    pub(super) args: ServeArgs,
    pub(super) app: Arc<App>,
    pub(super) log: Arc<ServeLog>,
    /// The record, which may contain the access tokens.
    pub(super) record: RecordStore,
    /// The same record as a shared store, for the gateway.
    pub(super) store: Arc<dyn Store>,
    pub(super) host: Arc<dyn Host>,
    /// The recent results of routes to summary models, which survive a reload.
    pub(super) health: Arc<RouteHealth>,
}

/// A checked configuration.
pub(super) struct Configuration {
    pub(super) config: GatewayConfig,
    pub(super) tls: Option<Tls>,
    pub(super) collector: Option<BaseUrl>,
    /// Describes who writes summaries.
    pub(super) summaries: String,
}

/// Loads the settings, with the flags of the command.
pub(super) fn settings(args: &ServeArgs, app: &App) -> Result<Loaded, CliError> {
    let flags: Vec<SettingFlag<'_>> =
        args.bind.iter().map(|bind| ("--bind", "gateway.bind", bind.clone())).collect();
    load_settings(app, &flags)
}

impl ConfigSource {
    /// Converts settings. Everything is checked before anything changes.
    pub(super) async fn configuration(&self, loaded: Loaded) -> Result<Configuration, CliError> {
        let app = &self.app;
        let (window, settings) = (loaded.window_setting(), loaded.settings);
        let upstreams = upstreams::find(self.args.upstream.as_deref(), &settings, app)?;
        let tls = access::tls(&settings, app)?;
        let collector = access::collector(&settings)?;
        let tenant_paths = TenantPaths::with(&settings.gateway.tenant_paths).map_err(|why| {
            CliError::new(Exit::BadConfig, "`gateway.tenant_paths` cannot be used").because(why)
        })?;
        let catalogue = catalogue(app)?;
        let client = outgoing(app, &upstreams)?;
        for upstream in &upstreams.all {
            let own = settings.gateway.upstreams.get(&upstream.name);
            let slots = own.map_or(settings.model.parallel_requests, |own| own.parallel_requests);
            let wire = upstream.wires.first().copied().unwrap_or(WireFormat::Chat);
            client.slots().configure(&upstream.endpoint(wire), configured_slots(slots));
        }
        // Notes of the lossless engine are of little use to a model that cannot open them.
        let recalls = settings.gateway.recall || settings.context.engine.trim() == LcmEngine::NAME;
        let parts = EngineParts {
            app,
            settings: &settings,
            catalogue: &catalogue,
            store: Arc::clone(&self.store),
            host: Arc::clone(&self.host),
            client: &client,
            health: Arc::clone(&self.health),
            recall: recalls.then(|| recall::HINT.to_owned()),
        };
        let (engines, problems) =
            Engines::find_for_clients(parts, access::owners(&AccessTokenList::with(app, &self.record))?)
                .await?;
        problems.iter().chain(&engines.problem()).for_each(|problem| self.log.warn(problem));
        let summaries = engines.authors();
        let gateway = &settings.gateway;
        let tools = recall::tools(engines.clone(), Arc::clone(&self.store));
        let offer = if recalls { RecallOffer::Agents } else { RecallOffer::Nobody };
        let recall = RecallConfig::new(tools, offer, gateway.recall_rounds, gateway.recall_tokens as u64)
            .with_reading(recall::READ_SET_ASIDE);
        let config = GatewayConfig {
            catalogue: Arc::new(catalogue),
            client,
            upstreams,
            preview_engines: engines.for_previews(),
            engine: Arc::new(move |owner: &Owner| engines.make(owner)),
            policy: CallPolicy {
                automatic: if settings.compression.enabled { Automatic::On } else { Automatic::Off },
                record: if gateway.require_record { RecordPolicy::Require } else { RecordPolicy::GoOn },
                lock: LockPolicy::Compactions,
                ids: IdLength::Gateway,
                recall: automatic_recall(&settings),
            },
            tool_output: ToolOutputPolicy {
                long_results: if gateway.tool_budget { LongResults::Store } else { LongResults::LeftAlone },
                ..if recalls { recall::tool_output() } else { ToolOutputPolicy::default() }
            },
            recall,
            tenant_paths,
            body_bytes: gateway.max_body_bytes,
            silence: gateway.stall_seconds.map(|seconds| Duration::from_secs(seconds as u64)),
            settings: Arc::new(settings),
            window,
        };
        Ok(Configuration { config, tls, collector, summaries })
    }

    /// Reloads the configuration. An invalid one changes nothing.
    pub(super) async fn reload(&self, gateway: &Gateway, bound: &str) {
        let read = async {
            let settings = settings(&self.args, &self.app)?;
            let is_elsewhere = settings.settings.gateway.bind != bound;
            Ok::<_, CliError>((self.configuration(settings).await?, is_elsewhere))
        };
        match read.await {
            Ok((Configuration { config, tls, collector, .. }, is_elsewhere)) => {
                if is_elsewhere {
                    self.log.warn("gateway.bind has changed; restart the gateway to apply it");
                }
                gateway.set_config(config);
                gateway.set_tls(tls);
                gateway.send_traces_to(collector).await;
                self.log.note("the configuration was reloaded and applies from the next request on");
            }
            Err(failure) => {
                self.log.warn(&format!(
                    "the configuration was not reloaded, and the previous one stays in effect: {}",
                    failure.whole_on_one_line()
                ));
            }
        }
    }
}

/// Creates the client for requests to upstreams.
fn outgoing(app: &App, upstreams: &Upstreams) -> Result<Client, CliError> {
    // A proxy is not used for servers on this machine.
    let all_local = upstreams.all.iter().all(|upstream| upstream.base.is_local());
    let options = ClientOptions {
        limits: TimeLimits::REMOTE,
        retries: RetryLimits::ONCE,
        proxy: proxy(app).filter(|_| !all_local),
        jitter_seed: app.random_bits(),
    };
    let client = Client::new(options).map_err(|error| {
        CliError::new(Exit::BadConfig, "cannot set up the HTTP client").because(error.to_string())
    })?;
    Ok(client.with_slots(app.slots.clone()))
}
