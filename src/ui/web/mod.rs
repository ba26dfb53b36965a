//! The web page of `ralph ui`: serves views of all loops to a browser, and a JSON API to scripts.
//!
//! The server reads files only, in a process of its own that never runs a loop: it is the one place
//! with an async runtime. Whatever changes a loop is done by the caller's [`Steer`] function.

mod access;
mod activity_rows;
mod assets;
mod history_json;
mod live;
mod loop_json;
mod overview;
mod patch;
mod routes;
mod stats_json;

use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use access::PageAccess;
use live::Overviews;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Where the page is served, and what it may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebOptions {
    pub(crate) listen: IpAddr,
    /// The port; `None` for the usual one, or any free one if that is taken.
    pub(crate) port: Option<u16>,
    /// Whether the page may pause, resume and stop loops, and send messages to them.
    pub(crate) control: bool,
}

/// What a page asks to do with a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SteeringRequest {
    Pause,
    Resume,
    Stop,
    /// Add this text to the next prompt.
    Say(String),
}

/// Carries out a request for the loop of this name, and returns a message about it. Called on a
/// thread of its own; it may wait.
pub(crate) type Steer =
    Arc<dyn Fn(&str, &SteeringRequest) -> Result<String, CommandError> + Send + Sync>;

/// The port if it is free: R, A, L, P on the keys of a phone.
const USUAL_PORT: u16 = 7257;

/// Everything that a request handler uses.
struct Web {
    state_dir: StateDir,
    access: PageAccess,
    steer: Option<Steer>,
    overviews: Overviews,
    streams: Arc<tokio::sync::Semaphore>,
    /// Held while statistics are added up, which reads every journal: one request at a time does.
    stats: tokio::sync::Mutex<()>,
}

/// Streams of events that may be open at the same time.
const STREAMS_MAX: usize = 64;

/// Serves the page until the process ends. Calls `ready` with the page's address, which contains the
/// token, once connections are accepted.
pub(crate) fn serve(
    state_dir: &StateDir,
    options: WebOptions,
    steer: Steer,
    ready: impl FnOnce(SocketAddr, &str),
) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Reads of files; a request waits until one of the threads is free.
        .max_blocking_threads(8)
        .build()
        .map_err(|error| CommandError::broken(format!("cannot start the server: {error}")))?;
    runtime.block_on(async {
        let listener = bind(options).await?;
        let address = listener.local_addr().map_err(CommandError::broken)?;
        let access = PageAccess::new(address)?;
        let url = access.url();
        let web = Arc::new(Web {
            state_dir: state_dir.clone(),
            access,
            steer: options.control.then_some(steer),
            overviews: Overviews::new(state_dir),
            streams: Arc::new(tokio::sync::Semaphore::new(STREAMS_MAX)),
            stats: tokio::sync::Mutex::default(),
        });
        tokio::spawn(live::scan_loops(Arc::clone(&web)));
        ready(address, &url);
        axum::serve(listener, routes::router(&web))
            .await
            .map_err(CommandError::broken)
    })
}

async fn bind(options: WebOptions) -> Result<tokio::net::TcpListener, CommandError> {
    let ip = options.listen;
    let wanted = options.port.unwrap_or(USUAL_PORT);
    let mut bound = tokio::net::TcpListener::bind((ip, wanted)).await;
    if bound.is_err() && options.port.is_none() {
        bound = tokio::net::TcpListener::bind((ip, 0)).await;
    }
    bound.map_err(|error| {
        let address = SocketAddr::new(ip, wanted);
        CommandError::broken(format!("cannot listen on {address}: {error}"))
            .with_hint("use --port 0 for any free port, or another --listen address")
    })
}
