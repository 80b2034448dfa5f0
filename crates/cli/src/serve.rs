//! `throughline serve`: runs the gateway.

mod access;
mod changes;
mod configuration;
mod key;
mod log;
mod operator_tools;
mod peers;
pub(crate) mod private;
pub(crate) mod recall;
mod retention;
mod shared_home;
mod signals;
mod upstreams;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use throughline_config::Loaded;
use throughline_gateway::{AccessPolicy, Gateway, GatewayEvents, GatewayLimits, GatewaySetup, Upstreams};
use throughline_store::Owner;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::access_token_list::AccessTokenList;
use crate::app::App;
use crate::clients::{self, ClientProgram};
use crate::error::{CliError, Exit, io_words};
use crate::gateways;
use crate::home;
use crate::host::LocalHost;
use crate::meaning::make_vectors;
use crate::model_client::boxed;
use crate::record::{RecordPlace, RecordStore};
use crate::serve::configuration::{ConfigSource, Configuration};
use crate::serve::log::ServeLog;
use crate::serve::operator_tools::HomeTools;

/// The number of threads for store calls. Writes happen one at a time, and each thread takes memory.
const RECORD_THREADS: usize = 16;

/// Run the gateway: a local proxy between your agent and its model provider
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  throughline serve                                     Anthropic and OpenAI, with the client's own key
  throughline serve --upstream http://127.0.0.1:8080    everything to one server
  throughline serve --show claude                       how to point Claude Code at it
  throughline serve --show                              the clients that --show knows

Set the base URL of your agent to the gateway. Requests pass unchanged until the
window fills; then the oldest part is compacted into a summary. Everything is
recorded; see `throughline sessions` and `throughline search`.
`kill -HUP` reloads the configuration.")]
pub(crate) struct ServeArgs {
    /// Where to listen (for gateway.bind)
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// One server for every wire format, whatever gateway.upstreams says
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Print how to point a client at the gateway, and nothing else; without a name, a list of clients
    #[arg(
        long,
        value_name = "CLIENT",
        value_parser = clients::name_parser(),
        num_args = 0..=1,
        default_missing_value = clients::ALL
    )]
    show: Option<String>,
    /// Stop when no `throughline run` uses the gateway any more, by the lock file of this name
    #[arg(long, value_name = "NAME", hide = true)]
    for_runs: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &ServeArgs, app: &App) -> Result<(), CliError> {
    let loaded = configuration::settings(args, app)?;
    let settings = &loaded.settings;
    let address = address(&settings.gateway.bind)?;
    if let Some(name) = &args.show {
        let at = base_url(!settings.gateway.tls_cert.is_empty(), address);
        return app.print(
            &ClientProgram::named(name).map_or_else(|| clients::list(&at), |client| client.how_to(&at)),
        );
    }
    home::make_private(app)?;
    let access = access::at(address, &AccessTokenList::of(app)?)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().max_blocking_threads(RECORD_THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::Internal, "cannot start the async runtime").because(io_words(&error))
    })?;
    runtime.block_on(boxed(listen(args, app, loaded, (address, access))))
}

/// Parses the address to listen on.
fn address(bind: &str) -> Result<SocketAddr, CliError> {
    let wrong = |why: String| {
        CliError::new(
            Exit::BadConfig,
            format!("`gateway.bind` is `{bind}`, which is not an address to listen on"),
        )
        .because(why)
        .hint("it reads HOST:PORT, as in 127.0.0.1:8790")
    };
    let mut found = bind.trim().to_socket_addrs().map_err(|error| wrong(io_words(&error)))?;
    found.next().ok_or_else(|| wrong("it names no address".to_owned()))
}

async fn listen(
    args: &ServeArgs,
    app: &App,
    loaded: Loaded,
    (address, access): (SocketAddr, AccessPolicy),
) -> Result<(), CliError> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        CliError::new(Exit::BadConfig, format!("cannot listen on {address}"))
            .because(io_words(&error))
            .hint("another program uses it, perhaps another gateway (`throughline status`); --bind chooses another address")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    let app = Arc::new(app.clone());
    let (bound, form) = (loaded.settings.gateway.bind.clone(), loaded.settings.gateway.log);
    let any_user = loaded.settings.gateway.any_user;
    let seal_keys = loaded.settings.gateway.seal_keys.clone();
    let drain = Duration::from_secs(loaded.settings.gateway.drain_seconds as u64);
    let stop_time = Duration::from_secs(loaded.settings.gateway.stop_seconds as u64);
    let log = Arc::new(ServeLog::new(&app, form));
    let store = RecordStore::open(&app)?;
    let problems = Arc::clone(&log);
    make_vectors(&app, &loaded.settings, &store, move |problem| problems.warn(problem));
    let source = ConfigSource {
        args: args.clone(),
        app: Arc::clone(&app),
        log: Arc::clone(&log),
        store: store.shared(),
        record: store.clone(),
        host: Arc::new(LocalHost::new(&app, "gateway")),
        health: Arc::default(),
    };
    let Configuration { config, tls, collector, summaries } = source.configuration(loaded).await?;
    if tls.is_none() && !address.ip().is_loopback() {
        app.warn("tokens and conversations are sent unencrypted; set gateway.tls_cert and gateway.tls_key to use TLS");
    }
    let base_url = base_url(tls.is_some(), address);
    let (others, running) = shared_home::announce(&store, source.host.as_ref());
    let running = Arc::new(running);
    let fleet = store.fleet();
    match &fleet {
        None => shared_home::tell(&app, &others),
        Some(_) if seal_keys.is_empty() => app.warn(
            "gateway.seal_keys is not set: other gateways on this database cannot open the sealed data that clients of this one keep",
        ),
        Some(_) => {}
    }
    let record = RecordPlace::of(&app)?.words();
    app.print(&greeting(
        &record,
        &base_url,
        &config.upstreams,
        &summaries,
        &access_words(&access, any_user),
    ))?;
    let setup = GatewaySetup {
        store: Arc::clone(&source.store),
        owner: Owner::default(),
        host: Arc::clone(&source.host),
        limits: GatewayLimits { stop_time, ..GatewayLimits::default() },
        seal_key: key::seal_key(&app, &seal_keys)?,
        events: Arc::clone(&log) as Arc<dyn GatewayEvents>,
    };
    let gateway = Gateway::new(setup, config);
    let demands_tokens = matches!(access, AccessPolicy::Tokens(_));
    let checks_users = !any_user && address.ip().is_loopback();
    gateway.set_peer_check(checks_users.then(peers::check).flatten());
    gateway.set_access(access);
    let token_changes = Arc::<Notify>::default();
    if let Some(fleet) = fleet {
        let holder = source.host.holder();
        let name = format!("{}/{}/{}", holder.host, holder.process_id, holder.process_start);
        let events = changes::listen(fleet.as_ref(), Arc::clone(&token_changes), Arc::clone(&log));
        gateway.join_fleet(Arc::clone(&fleet), &name, events);
        let (running, host) = (Arc::downgrade(&running), Arc::clone(&source.host));
        tokio::spawn(shared_home::keep_count(running, fleet, host, gateway.clone()));
    }
    gateway.set_tls(tls);
    gateway.send_traces_to(collector).await;
    let changed = Arc::<Notify>::default();
    gateway.set_operator_tools(Arc::new(HomeTools {
        app: Arc::clone(&app),
        store: store.clone(),
        changed: Arc::clone(&changed),
    }));
    tokio::spawn(retention::follow(Arc::clone(&app), store.clone(), Arc::clone(&log)));
    tokio::spawn(access::follow(
        (Arc::clone(&app), store.clone()),
        Arc::clone(&log),
        gateway.clone(),
        demands_tokens,
        token_changes,
    ));
    let stop = CancellationToken::new();
    let registration =
        gateways::register(&app, &base_url, args.upstream.as_deref(), args.for_runs.as_deref())?;
    let _registration = match &args.for_runs {
        Some(name) => {
            let (folder, name) = (gateways::folder(&app), name.clone());
            tokio::spawn(gateways::stop_when_unused(folder, name, registration, stop.clone()));
            None
        }
        None => Some(registration),
    };
    tokio::spawn(signals::follow(source, gateway.clone(), bound, changed, (stop.clone(), drain)));
    gateway.serve(listener, stop).await;
    log.note(&log.summary());
    log.note(log.ending());
    Ok(())
}

/// The base URL for clients.
fn base_url(is_tls: bool, address: SocketAddr) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Describes who may use the gateway.
fn access_words(access: &AccessPolicy, any_user: bool) -> String {
    match access {
        AccessPolicy::Tokens(book) if book.entries().is_empty() => {
            "none: every access token is revoked; create one with `throughline token new NAME`".to_owned()
        }
        AccessPolicy::Tokens(book) => format!("{} access tokens", book.entries().len()),
        AccessPolicy::Unconfirmed => "none: the list of access tokens cannot be read".to_owned(),
        AccessPolicy::ThisMachine if any_user || !peers::can_tell() => {
            "every user of this machine, without an access token; `throughline token new NAME` restricts it"
                .to_owned()
        }
        AccessPolicy::ThisMachine => "programs of this user, without an access token".to_owned(),
    }
}

/// The lines at the start of the gateway.
fn greeting(record: &str, base_url: &str, upstreams: &Upstreams, summaries: &str, access: &str) -> String {
    let mut out = format!("Listening on {base_url}\n\nUpstreams:\n");
    for upstream in &upstreams.all {
        out.push_str(&upstreams::line(upstream));
    }
    out.push_str(&format!("\nRecord: {}\n", record));
    out.push_str(&format!("Summaries: {summaries}\n"));
    out.push_str(&format!("Access: {access}\n"));
    out.push_str(&format!("Page: {base_url}/ui/\n"));
    out.push_str("\nPoint your agent at it:\n");
    out.push_str(&clients::list(base_url));
    out.push_str("\nCtrl-C finishes open requests, then stops.\n");
    out
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
