//! `throughline serve`: the gateway, as a person starts it.

mod access;
mod clients;
mod key;
mod log;
mod upstreams;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use throughline_config::Settings;
use throughline_engine::{
    Automatic, CallPolicy, Host, LockPolicy, LongResults, RecordPolicy, RouteHealth, ToolOutputPolicy,
};
use throughline_gateway::{Access, Gateway, GatewayLimits, GatewaySetup, Tls, Upstreams, serve};
use throughline_provider::{Client, ClientOptions, RetryLimits, TimeLimits};
use throughline_store::{IdLength, Owner, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config_cmd::{SettingFlag, load_settings};
use crate::context::Context;
use crate::engines::{EngineParts, Engines};
use crate::failure::{Exit, Failure, io_words, path_words};
use crate::host::ThisMachine;
use crate::online::{catalogue, proxy};
use crate::record::open_store;
use crate::serve::clients::Client as KnownClient;
use crate::serve::log::Log;

/// Stand between an existing agent and its model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline serve                                     Anthropic and OpenAI, with the client's own key
  throughline serve --upstream http://127.0.0.1:8080    everything to one server
  throughline serve --show claude-code                  how to point Claude Code at it

The agent sets its base URL to the gateway and notices nothing: requests pass as
they are until the window fills, then the oldest part is folded into a summary.
Everything is recorded; see `throughline sessions` and `throughline search`.")]
pub(crate) struct ServeArgs {
    /// Where to listen (for gateway.bind)
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// One server for every wire, whatever gateway.upstreams says
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Print how to point a client at the gateway, and nothing else
    #[arg(long, value_name = "CLIENT", value_enum)]
    show: Option<KnownClient>,
}

/// Carries out the command.
pub(crate) fn run(args: &ServeArgs, context: &Context) -> Result<(), Failure> {
    let flags: Vec<SettingFlag<'_>> =
        args.bind.iter().map(|bind| ("--bind", "gateway.bind", bind.clone())).collect();
    let settings = load_settings(context, &flags)?.settings;
    let address = address(&settings.gateway.bind)?;
    if let Some(client) = args.show {
        let is_tls = !settings.gateway.tls_cert.is_empty();
        return context.print(&client.how_to(&base_url(is_tls, address)));
    }
    let access = access::at(address, context)?;
    let tls = access::tls(&settings, context)?;
    if tls.is_none() && !address.ip().is_loopback() {
        context.warn("tokens and conversations travel in the clear; gateway.tls_cert and gateway.tls_key keep them secret");
    }
    let upstreams = upstreams::find(args.upstream.as_deref(), &settings, context)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
        Failure::new(Exit::Internal, "the machine gives no means to listen").because(io_words(&error))
    })?;
    runtime.block_on(listen(context, settings, upstreams, (address, access, tls)))
}

/// The address to listen on.
fn address(bind: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: String| {
        Failure::new(Exit::BadConfig, format!("`gateway.bind` is `{bind}`, which cannot be listened on"))
            .because(why)
            .hint("it reads HOST:PORT, as in 127.0.0.1:8790")
    };
    let mut found = bind.trim().to_socket_addrs().map_err(|error| wrong(io_words(&error)))?;
    found.next().ok_or_else(|| wrong("it names no address".to_owned()))
}

async fn listen(
    context: &Context,
    settings: Settings,
    upstreams: Upstreams,
    (address, access, tls): (SocketAddr, Access, Option<Tls>),
) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Exit::BadConfig, format!("cannot listen on {address}"))
            .because(io_words(&error))
            .hint("another gateway may be running there; --bind chooses another address")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    let context = Arc::new(context.clone());
    let store: Arc<dyn Store> = Arc::new(open_store(&context)?);
    let host: Arc<dyn Host> = Arc::new(ThisMachine::new(&context, "gateway"));
    let catalogue = catalogue(&context)?;
    let client = outgoing(&context, &upstreams)?;
    let parts = EngineParts {
        context: &context,
        settings: &settings,
        catalogue: &catalogue,
        store: store.as_ref(),
        host: Arc::clone(&host),
        client: &client,
        health: Arc::<RouteHealth>::default(),
        recall: None,
    };
    let (engines, problems) = Engines::find(parts).await?;
    problems.iter().chain(&engines.problem()).for_each(|problem| context.warn(problem));
    let collector = access::collector(&settings)?;
    context.print(&greeting(&context, &base_url(tls.is_some(), address), &upstreams))?;
    let gateway = &settings.gateway;
    let setup = GatewaySetup {
        store,
        owner: Owner::default(),
        host,
        catalogue: Arc::new(catalogue),
        client,
        upstreams,
        engine: Arc::new(move || engines.make()),
        policy: CallPolicy {
            automatic: if settings.compression.enabled { Automatic::On } else { Automatic::Off },
            record: if gateway.require_record { RecordPolicy::Require } else { RecordPolicy::GoOn },
            lock: LockPolicy::Compactions,
            ids: IdLength::Gateway,
        },
        tool_output: ToolOutputPolicy {
            long_results: if gateway.tool_budget { LongResults::SetAside } else { LongResults::LeftAlone },
            ..ToolOutputPolicy::default()
        },
        limits: GatewayLimits { body_bytes: gateway.max_body_bytes, ..GatewayLimits::default() },
        seal_key: key::seal_key(&context)?,
        events: Arc::new(Log::new(&context)),
        settings: Arc::new(settings),
    };
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(Arc::clone(&context), stop.clone()));
    let gateway = Gateway::new(setup);
    let demands_tokens = matches!(access, Access::Tokens(_));
    gateway.set_access(access);
    gateway.set_tls(tls);
    if let Some(collector) = collector {
        gateway.send_traces_to(collector);
    }
    tokio::spawn(access::follow(Arc::clone(&context), gateway.clone(), demands_tokens));
    serve(gateway, listener, stop).await;
    context.note("stopped; everything that was answered is recorded");
    Ok(())
}

/// Sends what clients ask on to upstreams.
fn outgoing(context: &Context, upstreams: &Upstreams) -> Result<Client, Failure> {
    // What runs on this machine is never behind a proxy.
    let all_local = upstreams.all.iter().all(|upstream| upstream.base.is_local());
    let options = ClientOptions {
        limits: TimeLimits::REMOTE,
        retries: RetryLimits::ONCE,
        proxy: proxy(context).filter(|_| !all_local),
        jitter_seed: context.random_bits(),
    };
    Client::new(options).map_err(|error| {
        Failure::new(Exit::BadConfig, "no connection can be set up").because(error.to_string())
    })
}

/// Where clients find it.
fn base_url(is_tls: bool, address: SocketAddr) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// What a person sees who starts it.
fn greeting(context: &Context, base_url: &str, upstreams: &Upstreams) -> String {
    let mut out = format!("Listening on {base_url}\n\nUpstreams:\n");
    for upstream in &upstreams.all {
        out.push_str(&upstreams::line(upstream));
    }
    out.push_str(&format!("\nRecord: {}\n", path_words(&context.record_path())));
    out.push_str("\nPoint your agent at it:\n");
    for client in KnownClient::value_variants() {
        out.push_str(&format!("  {:<12} {}\n", client.name(), client.in_short(base_url)));
    }
    out.push_str("\nCtrl-C finishes the answers that have begun, then stops.\n");
    out
}

/// Stops at the first signal; a second one ends the process at once, as it does anywhere.
async fn stop_on_signal(context: Arc<Context>, stop: CancellationToken) {
    wait_for_signal().await;
    context.note("finishing the answers that have begun; Ctrl-C again stops at once");
    stop.cancel();
    wait_for_signal().await;
    std::process::exit(i32::from(Exit::Internal.code()));
}

#[cfg(unix)]
async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    // A terminal that is closed is no reason to lose the answers that have begun.
    let (Ok(mut terminate), Ok(mut hang_up)) =
        (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

#[cfg(not(unix))]
async fn wait_for_signal() {
    let _ = tokio::signal::ctrl_c().await;
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
