//! `throughline open`: serves the gateway's page for the local record, to one user and while the command runs.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use throughline_gateway::{
    AccessPolicy, AccessTokens, Gateway, GatewayEvent, GatewayEvents, GatewayLimits, GatewaySetup, SealKey,
    TokenLimits,
};
use throughline_store::Owner;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::configuration::{self, ConfigSource, Configuration};
use super::log::ServeLog;
use super::operator_tools::HomeTools;
use super::{RECORD_THREADS, ServeArgs, signals};
use crate::app::App;
use crate::error::{CliError, Exit, io_words};
use crate::host::LocalHost;
use crate::model_client::boxed;
use crate::record::{OpenRecord, RecordStore};

/// The name of the only token.
const TOKEN_NAME: &str = "open";

/// Look at the record in a browser: what fills the context, what was compacted, what it costs
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  throughline open
  throughline open last
  throughline open --print

Starts a server on a free port of this machine, for you alone: the address
contains a code that can be used once. The server ends with Ctrl-C or with the
terminal. A gateway (`throughline serve`) has the same page at /ui/.")]
pub(crate) struct OpenArgs {
    /// A conversation to show: its id, the beginning of one, its title, or `last`
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Print the address and start no browser
    #[arg(long)]
    print: bool,
}

/// Runs the command.
pub(crate) fn run(args: &OpenArgs, app: &App) -> Result<(), CliError> {
    let page = match &args.id {
        None => String::new(),
        Some(reference) => {
            let record = OpenRecord::open_to_read(app, reference)?;
            format!("conversations/{}", record.tip(reference)?.id)
        }
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().max_blocking_threads(RECORD_THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::Internal, "cannot start the async runtime").because(io_words(&error))
    })?;
    runtime.block_on(boxed(serve(args, app, &page)))
}

async fn serve(args: &OpenArgs, app: &App, page: &str) -> Result<(), CliError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    let (listener, address) = listener.map_err(|error| {
        CliError::new(Exit::Internal, "cannot listen on this machine").because(io_words(&error))
    })?;
    let no_randomness = || {
        CliError::new(Exit::Internal, "cannot create a token").because("the system's random source failed")
    };
    let app = Arc::new(app.clone());
    let serve_args = ServeArgs { bind: None, upstream: None, show: None, for_runs: None };
    let loaded = configuration::settings(&serve_args, &app)?;
    let record = RecordStore::open(&app)?;
    let source = ConfigSource {
        args: serve_args,
        app: Arc::clone(&app),
        log: Arc::new(ServeLog::new(&app, loaded.settings.gateway.log)),
        store: record.shared(),
        record: record.clone(),
        host: Arc::new(LocalHost::new(&app, "open")),
        health: Arc::default(),
    };
    let bound = loaded.settings.gateway.bind.clone();
    let Configuration { config, .. } = source.configuration(loaded).await?;
    let setup = GatewaySetup {
        store: Arc::clone(&source.store),
        owner: Owner::default(),
        host: Arc::clone(&source.host),
        limits: GatewayLimits::default(),
        // With a new key, cookies of earlier runs are invalid.
        seal_key: SealKey::generate().ok_or_else(no_randomness)?,
        // The page itself shows the events.
        events: Arc::new(|_: GatewayEvent| {}) as Arc<dyn GatewayEvents>,
    };
    let gateway = Gateway::new(setup, config);
    let mut book = AccessTokens::default();
    let random = AccessTokens::random_bytes().ok_or_else(no_randomness)?;
    let secret =
        book.add(TOKEN_NAME, Owner::default().as_str(), &random, app.now().ms, TokenLimits::default());
    let secret = secret
        .map_err(|error| CliError::new(Exit::Internal, "cannot create a token").because(error.to_string()))?;
    book.make_operator(TOKEN_NAME);
    gateway.set_access(AccessPolicy::Tokens(book));
    let changed = Arc::<Notify>::default();
    gateway.set_operator_tools(Arc::new(HomeTools {
        app: Arc::clone(&app),
        store: record,
        changed: Arc::clone(&changed),
    }));
    let code = gateway.one_time_code(&secret).ok_or_else(no_randomness)?;
    // Browsers do not send the fragment of a URL.
    let url = format!("http://{address}/ui/{page}#login={code}");
    app.print(&format!("{url}\n"))?;
    if !args.print && !start_browser(&app, &url) {
        app.note("no browser could be started; open the address above in one");
    }
    app.note("the address counts once; press Ctrl-C to stop");
    let stop = CancellationToken::new();
    tokio::spawn(signals::follow_changes(source, gateway.clone(), bound, changed));
    tokio::spawn(signals::stop_on_any(stop.clone()));
    gateway.serve(listener, stop).await;
    Ok(())
}

/// Starts the user's browser; `false` if there is none.
fn start_browser(app: &App, url: &str) -> bool {
    let usual: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["open"]]
    } else if cfg!(windows) {
        &[&["rundll32", "url.dll,FileProtocolHandler"]]
    } else {
        &[&["xdg-open"], &["wslview"]]
    };
    let own: Option<Vec<&str>> = app.variable("BROWSER").map(|browser| vec![browser]);
    let candidates = own.iter().map(Vec::as_slice).chain(usual.iter().copied());
    candidates.filter_map(|words| words.split_first()).any(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(arguments).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}
