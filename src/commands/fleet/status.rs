//! `ralph fleet status`: shows workers, the queue, and where loops run.

use super::connection;
use crate::cli::fleet::FleetStatusArgs;
use crate::engine::ExitCode;
use crate::fleet::block_on;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{Exchange, LoopRecord, WorkerRecord};
use crate::fleet::nats::NatsExchange;
use crate::lifecycle::error::CommandError;
use crate::ui::age::now_ms;
use crate::ui::fleet_table::{FleetLoopRow, FleetView, FleetWorkerRow, fleet_text};
use crate::ui::print::{print_json, print_styled};
use crate::ui::tty;
use serde_json::json;

pub(crate) fn status(args: &FleetStatusArgs) -> Result<ExitCode, CommandError> {
    let connection = connection(&args.connection)?;
    let (workers, queued, records) = block_on(async {
        let exchange = NatsExchange::open(&connection).await?;
        let workers = exchange.workers().await?;
        let queued = exchange.queued().await?;
        Ok::<_, FleetError>((workers, queued, exchange.records().await?))
    })??;
    let records: Vec<LoopRecord> = records.into_iter().map(|stored| stored.value).collect();
    if args.json {
        let loops: Vec<_> = records
            .iter()
            .map(|record| {
                let owner = owner(record, &workers);
                json!({
                    "name": record.name, "id": record.id, "state": state(record, owner),
                    "owner": record.owner, "epoch": record.epoch, "wanted": record.wanted,
                    "refused": record.refused, "submitted_by": record.submitted_by,
                    "submitted_ms": record.submitted_ms,
                    "lag_bytes": owner.map(|worker| worker.lag_bytes),
                })
            })
            .collect();
        let object = json!({
            "fleet": connection.display_urls(), "pool": connection.pool,
            "queued": queued, "workers": workers, "loops": loops,
        });
        print_json(&object.to_string())?;
        return Ok(ExitCode::Success);
    }
    let view = FleetView {
        pool: connection.pool.clone(),
        queued,
        workers: workers.iter().map(worker_row).collect(),
        loops: records
            .iter()
            .map(|record| {
                let owner = owner(record, &workers);
                FleetLoopRow {
                    name: record.name.clone(),
                    state: state(record, owner),
                    owner: record.owner.clone().unwrap_or_default(),
                    epoch: record.epoch,
                    lag_bytes: owner.map(|worker| worker.lag_bytes),
                    note: record.refused.clone().unwrap_or_default(),
                }
            })
            .collect(),
    };
    print_styled(fleet_text(&view, tty::width(), tty::use_color()))?;
    Ok(ExitCode::Success)
}

fn owner<'a>(record: &LoopRecord, workers: &'a [WorkerRecord]) -> Option<&'a WorkerRecord> {
    let owner = record.owner.as_ref()?;
    workers.iter().find(|worker| worker.id == *owner)
}

/// Returns where a loop is in its way through the fleet.
fn state(record: &LoopRecord, owner: Option<&WorkerRecord>) -> &'static str {
    match (record.wanted, &record.owner, owner) {
        (false, ..) => "idle",
        (true, None, _) => "queued",
        (true, Some(_), Some(_)) => "running",
        // Another worker gets it once the lease expires.
        (true, Some(_), None) => "lost",
    }
}

fn worker_row(worker: &WorkerRecord) -> FleetWorkerRow {
    let labels = worker.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    FleetWorkerRow {
        id: worker.id.clone(),
        host: worker.host.clone(),
        version: worker.version.clone(),
        used: worker.loops.len(),
        slots: worker.slots,
        seen_ms_ago: now_ms().saturating_sub(worker.at_ms).max(0),
        agents: worker.agents.join(" "),
        labels: labels.join(" "),
    }
}
