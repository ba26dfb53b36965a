//! `ralph worker`: runs loops of the fleet on this machine.

use super::connection;
use super::submit::{host_name, labels};
use crate::cli::fleet::WorkerArgs;
use crate::config::{Config, LayerStack};
use crate::engine::ExitCode;
use crate::fleet::block_on;
use crate::fleet::nats::NatsExchange;
use crate::fleet::worker::{LeaseTimes, WorkerNews, WorkerOptions, work_until_signal};
use crate::lifecycle::create::random_id;
use crate::lifecycle::error::CommandError;
use crate::os::program;
use crate::store::StateDir;
use crate::store::dir::create_dir;
use crate::ui::print::{print_message, warn};
use std::path::Path;

pub(crate) fn worker(args: &WorkerArgs) -> Result<ExitCode, CommandError> {
    let connection = connection(&args.connection)?;
    let state_dir = StateDir::locate()?;
    let host = host_name();
    let id = format!("{host}-{}", random_id()?);
    let root = state_dir.root().join("fleet").join("work");
    create_dir(&root).map_err(CommandError::broken)?;
    let options = WorkerOptions {
        id,
        host,
        slots: args.slots,
        labels: labels(&args.label)?,
        agents: installed_agents(),
        root,
        times: LeaseTimes {
            ack_wait: connection.ack_wait,
            heartbeat: connection.heartbeat,
            offline_grace: connection.offline_grace,
        },
    };
    let pool = &connection.pool;
    print_message(&format!(
        "worker {} serves the pool {pool} with {} slots\n",
        options.id, options.slots
    ));
    block_on(async {
        let exchange = NatsExchange::open(&connection).await?;
        work_until_signal(exchange, options, Box::new(show)).await
    })?
    .map_err(CommandError::broken)?;
    print_message("worker stopped: its loops were handed back\n");
    Ok(ExitCode::Success)
}

fn show(news: WorkerNews) {
    match news {
        WorkerNews::Claimed { name, epoch: 1 } => {
            print_message(&format!("{name}: started\n"));
        }
        WorkerNews::Claimed { name, epoch } => {
            print_message(&format!("{name}: continued (owner number {epoch})\n"));
        }
        WorkerNews::Left { name, why } => print_message(&format!("{name}: {why}\n")),
        WorkerNews::Problem(why) => warn(why),
    }
}

/// Returns the programs of known agents that are installed here.
fn installed_agents() -> Vec<String> {
    let presets =
        Config::new(LayerStack::defaults()).map_or_else(|_| Vec::new(), |config| config.presets);
    let programs = presets
        .into_iter()
        .filter_map(|(_, preset)| preset.command.into_iter().next());
    let is_installed = |name: &String| program::find(name, Path::new("/")).is_some();
    programs.filter(is_installed).collect()
}
