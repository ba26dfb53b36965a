//! `ralph fleet doctor`: checks the servers, the user's permissions and the workers.

use super::connection;
use crate::cli::fleet::FleetDoctorArgs;
use crate::engine::ExitCode;
use crate::fleet::block_on;
use crate::fleet::connection::FleetConnection;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{Exchange as _, PIECE_MAX, WorkerRecord};
use crate::fleet::monitor::storage_settings;
use crate::fleet::nats::{Health, NatsExchange, Role};
use crate::lifecycle::error::CommandError;
use crate::ui::age::now_ms;
use crate::ui::print::{print_json, print_styled};
use crate::ui::{StyledText, TextStyle, hang, tty};
use serde::Serialize;
use serde_json::json;

/// The oldest server that works, as major and minor version.
const VERSION_MIN: (u32, u32) = (2, 10);
/// The nodes of a cluster that survives the loss of one.
const NODES: usize = 3;
/// How far the clock of a worker may be off. Announcements are up to a heartbeat old.
const SKEW_MAX_MS: i64 = 30_000;
/// The free storage below which there is a warning.
const FREE_MIN: i64 = 1 << 30;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingLevel {
    Ok,
    /// It cannot be seen from here, or is only a fact.
    Note,
    Warning,
    /// Something must be fixed.
    Error,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct FleetFinding {
    level: FindingLevel,
    about: &'static str,
    text: String,
}

/// Everything that was found.
#[derive(Debug, Default)]
struct FleetReport(Vec<FleetFinding>);

impl FleetReport {
    fn add(&mut self, level: FindingLevel, about: &'static str, text: impl Into<String>) {
        let text = text.into();
        self.0.push(FleetFinding { level, about, text });
    }
}

pub(crate) fn doctor(args: &FleetDoctorArgs) -> Result<ExitCode, CommandError> {
    let connection = connection(&args.connection)?;
    let mut report = FleetReport::default();
    block_on(inspect(&connection, &args.monitor, &mut report))?;
    let is_ready = report.0.iter().all(|one| one.level != FindingLevel::Error);
    if args.json {
        let object = json!({
            "fleet": connection.display_urls(), "pool": connection.pool,
            "ready": is_ready, "findings": report.0,
        });
        print_json(&object.to_string())?;
    } else {
        print_styled(text(&connection, &report))?;
    }
    Ok(if is_ready {
        ExitCode::Success
    } else {
        ExitCode::Failure
    })
}

fn text(connection: &FleetConnection, report: &FleetReport) -> StyledText {
    let mut out = StyledText::new(tty::use_color());
    out.push(&format!(
        "{}, pool {}\n",
        connection.display_urls(),
        connection.pool
    ));
    for finding in &report.0 {
        let (mark, style) = match finding.level {
            FindingLevel::Ok => ("ok     ", TextStyle::Green),
            FindingLevel::Note => ("note   ", TextStyle::Dim),
            FindingLevel::Warning => ("warning", TextStyle::Yellow),
            FindingLevel::Error => ("error  ", TextStyle::Red),
        };
        out.push_styled(mark, style);
        let line = format!("  {:11}  {}", finding.about, finding.text);
        out.push(&format!("{}\n", hang(&line, tty::width(), 7, 22)));
    }
    out
}

async fn inspect(connection: &FleetConnection, monitors: &[String], report: &mut FleetReport) {
    let exchange = match NatsExchange::connect(connection).await {
        Ok(exchange) => exchange,
        Err(error) => return report.add(FindingLevel::Error, "connection", error.to_string()),
    };
    let health = exchange.health().await;
    servers(&health, report);
    if health.account.is_ok() {
        streams(&health, report);
    }
    storage(&health, monitors, report).await;
    permissions(&exchange, &health, report).await;
    match exchange.workers().await {
        Ok(found) => workers(&found, report),
        Err(FleetError::Other(_)) => {}
        Err(error) => report.add(FindingLevel::Warning, "workers", error.to_string()),
    }
}

fn servers(health: &Health, report: &mut FleetReport) {
    let Health {
        server_name,
        version,
        ..
    } = health;
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let (major, minor) = VERSION_MIN;
    if found < VERSION_MIN {
        report.add(
            FindingLevel::Error,
            "version",
            format!("{server_name} is nats-server {version}: ralph needs {major}.{minor} or newer"),
        );
    } else {
        let text = format!("{server_name} is nats-server {version}");
        report.add(FindingLevel::Ok, "version", text);
    }
    if health.max_payload < PIECE_MAX * 2 {
        let text = format!(
            "max_payload is {} bytes: set it to 1MB, the default",
            health.max_payload
        );
        report.add(FindingLevel::Error, "messages", text);
    }
    match &health.account {
        Ok(_) => report.add(FindingLevel::Ok, "JetStream", "enabled"),
        Err(error) => report.add(FindingLevel::Error, "JetStream", error.to_string()),
    }
    match &health.cluster {
        Some(name) if health.nodes >= NODES => {
            let text = format!("cluster {name} announces {} nodes", health.nodes);
            report.add(FindingLevel::Ok, "cluster", text);
        }
        Some(name) => report.add(
            FindingLevel::Warning,
            "cluster",
            format!(
                "cluster {name} announces {} of 3 nodes to clients",
                health.nodes
            ),
        ),
        None => report.add(
            FindingLevel::Warning,
            "cluster",
            "a single server: if its disk is lost, so is the fleet's state; use three for a team",
        ),
    }
    if !health.is_encrypted {
        let text = "the server does not require TLS: use it beyond the loopback";
        report.add(FindingLevel::Note, "TLS", text);
    }
}

fn streams(health: &Health, report: &mut FleetReport) {
    let mut missing = Vec::new();
    for stream in &health.streams {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                report.add(FindingLevel::Warning, "streams", error.to_string());
                continue;
            }
        };
        let name = &stream.name;
        let Some(found) = &stream.found else {
            missing.push(name.as_str());
            continue;
        };
        if found.config.allow_direct {
            report.add(
                FindingLevel::Error,
                "streams",
                format!("{name} has allow_direct, so that reads can be stale: `nats stream edit {name} --no-allow-direct`"),
            );
        }
        let replicas = found.config.num_replicas;
        if replicas < NODES && health.nodes >= NODES {
            report.add(
                FindingLevel::Warning,
                "streams",
                format!(
                    "{name} has {replicas} of 3 replicas: `nats stream edit {name} --replicas 3`"
                ),
            );
        }
        let cluster = found.cluster.iter();
        for peer in cluster.flat_map(|cluster| &cluster.replicas) {
            if peer.offline || !peer.current {
                let state = if peer.offline { "offline" } else { "behind" };
                let text = format!("{name}: the replica on {} is {state}", peer.name);
                report.add(FindingLevel::Warning, "streams", text);
            }
        }
    }
    let found = health.streams.iter().flatten();
    let found: Vec<_> = found.filter_map(|stream| stream.found.as_ref()).collect();
    if !missing.is_empty() {
        report.add(
            FindingLevel::Note,
            "streams",
            format!(
                "not created yet: {}; the first loop or worker creates them",
                missing.join(", ")
            ),
        );
    }
    if let Some(first) = found.first() {
        let messages: u64 = found.iter().map(|stream| stream.state.messages).sum();
        let bytes: u64 = found.iter().map(|stream| stream.state.bytes).sum();
        report.add(
            FindingLevel::Ok,
            "streams",
            format!(
                "{} streams with {} replicas, {messages} messages, {bytes} bytes",
                found.len(),
                first.config.num_replicas
            ),
        );
    }
}

async fn storage(health: &Health, monitors: &[String], report: &mut FleetReport) {
    if let Ok(account) = &health.account {
        let max = account.limits.max_storage.unwrap_or(-1);
        let free = max.saturating_sub(account.storage as i64);
        if max < 0 {
            let text =
                "the account has no limit; the free space of the disks cannot be seen from here";
            report.add(FindingLevel::Note, "storage", text);
        } else if free < FREE_MIN {
            let text = format!("{free} of {max} bytes are left");
            report.add(FindingLevel::Warning, "storage", text);
        } else {
            report.add(
                FindingLevel::Ok,
                "storage",
                format!("{free} of {max} bytes are left"),
            );
        }
    }
    if monitors.is_empty() {
        report.add(
            FindingLevel::Note,
            "sync",
            "sync_interval cannot be seen from here: set it to always on every server, or confirmed data can be lost \
             in a power failure; --monitor HOST:PORT checks it",
        );
    }
    for monitor in monitors {
        match storage_settings(monitor).await {
            Ok(settings) if settings.sync_always => {
                let text = format!("{monitor}: sync_interval is always");
                report.add(FindingLevel::Ok, "sync", text);
            }
            Ok(settings) => report.add(
                FindingLevel::Warning,
                "sync",
                format!(
                    "{monitor}: sync_interval is {} s; set it to always, or confirmed data can be lost in a power failure",
                    settings.sync_interval / 1_000_000_000
                ),
            ),
            Err(error) => report.add(FindingLevel::Error, "sync", error.to_string()),
        }
    }
}

async fn permissions(exchange: &NatsExchange, health: &Health, report: &mut FleetReport) {
    let mut streams = health.streams.iter().flatten();
    // Without streams, no server would answer.
    if !streams.all(|stream| stream.found.is_some()) {
        return;
    }
    for role in Role::ALL {
        let name = role.name();
        match exchange.try_role(role).await {
            Ok(refused) if refused.is_empty() => {
                report.add(FindingLevel::Ok, "permissions", format!("you may {name}"));
            }
            Ok(refused) => report.add(
                FindingLevel::Note,
                "permissions",
                format!(
                    "you may not {name}: the server refuses to {}",
                    refused.join(", ")
                ),
            ),
            Err(error) => {
                let text = format!("{name}: {error}");
                report.add(FindingLevel::Warning, "permissions", text);
            }
        }
    }
}

fn workers(workers: &[WorkerRecord], report: &mut FleetReport) {
    if workers.is_empty() {
        let text = "none: `ralph worker` on any machine starts one";
        return report.add(FindingLevel::Warning, "workers", text);
    }
    for worker in workers {
        let agents = if worker.agents.is_empty() {
            "no agent is installed".to_owned()
        } else {
            worker.agents.join(", ")
        };
        let level = if worker.agents.is_empty() {
            FindingLevel::Warning
        } else {
            FindingLevel::Ok
        };
        let (id, slots) = (&worker.id, worker.slots);
        let text = format!("{id} (ralph {}, {slots} slots): {agents}", worker.version);
        report.add(level, "workers", text);
        let skew_ms = now_ms().saturating_sub(worker.at_ms);
        // An announcement from the future, or older than any that is still there.
        if !(-SKEW_MAX_MS..=SKEW_MAX_MS + 30_000).contains(&skew_ms) {
            let seconds = skew_ms / 1000;
            let text = format!("the clock of {id} differs from this one by about {seconds} s");
            report.add(FindingLevel::Warning, "clock", text);
        }
    }
}
