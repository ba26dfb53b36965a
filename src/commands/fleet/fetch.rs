//! `ralph fetch` and `ralph rm --fleet`: bring a loop's work home, and remove a loop from the fleet.

use super::connection;
use crate::cli::RmArgs;
use crate::cli::fleet_target::FetchArgs;
use crate::commands::open_loop::for_each;
use crate::engine::ExitCode;
use crate::fleet::block_on;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{CodeSource, Exchange as _, LoopRecord, Stored};
use crate::fleet::mirror::{LoopScratch, fetch_repository};
use crate::fleet::nats::NatsExchange;
use crate::git::transfer;
use crate::lifecycle::error::CommandError;
use crate::store::StateDir;
use crate::ui::print::print_message;
use std::path::Path;

pub(crate) fn fetch(args: &FetchArgs) -> Result<ExitCode, CommandError> {
    let connection = connection(&args.target.flags())?;
    let here = std::env::current_dir().map_err(CommandError::broken)?;
    let scratch = LoopScratch::create(&StateDir::locate()?)?;
    block_on(async {
        let exchange = NatsExchange::connect(&connection).await?;
        let record = find(&exchange, &args.name).await?.value;
        let from = fetch_repository(&exchange, &record, &scratch, Some(&here)).await?;
        let branch = &record.checkout.branch;
        transfer::fetch_loop(&here, &from, branch, &record.id).map_err(|error| {
            CommandError::usage(
                format!("cannot fetch {branch}: {error}"),
                format!(
                    "run it in a clone of the loop's repository; if {branch} has commits of its own or is checked out, rename it or switch to another branch first"
                ),
            )
        })?;
        print_message(&format!("fetched {branch}\n"));
        if let Some(newest) = uncommitted(&from, &record) {
            print_message(&format!(
                "its newest files are not committed; to see them, run `git diff {branch} {newest}`\n"
            ));
        }
        Ok(ExitCode::Success)
    })?
}

/// Returns the newest checkpoint if its files differ from those of the loop's branch.
fn uncommitted(repository: &Path, record: &LoopRecord) -> Option<String> {
    let refs = transfer::loop_refs(repository, &record.checkout.branch, &record.id).ok()?;
    let number = |name: &str| name.rsplit('/').next()?.parse::<u32>().ok();
    let own = refs
        .iter()
        .filter(|(name, _)| name.starts_with("refs/ralph/"));
    let newest = own
        .filter_map(|(name, commit)| Some((number(name)?, name, commit)))
        .max()?;
    let tip = refs
        .iter()
        .find(|(name, _)| name.starts_with("refs/heads/"));
    let tip_tree = tip.and_then(|(_, commit)| transfer::tree_of(repository, commit));
    let is_other = tip_tree != transfer::tree_of(repository, newest.2);
    is_other.then(|| newest.1.clone())
}

pub(crate) fn rm(args: &RmArgs) -> Result<ExitCode, CommandError> {
    if args.ended || args.worktree || args.keep_worktree || args.keep_files {
        return Err(CommandError::usage(
            "with --fleet, `ralph rm` takes only names, --force and --dry-run",
            "name the loops; `ralph ls --fleet` lists them",
        ));
    }
    let connection = connection(&args.fleet.flags())?;
    let state_dir = StateDir::locate()?;
    block_on(async {
        let exchange = NatsExchange::connect(&connection).await?;
        let mut found = Vec::new();
        for name in &args.names {
            found.push(find(&exchange, name).await?);
        }
        let mut results = Vec::new();
        for stored in found {
            results.push(remove(&exchange, &stored, args, &state_dir).await);
        }
        for_each(results, |result| result)
    })?
}

async fn remove(
    exchange: &NatsExchange,
    Stored { value, revision }: &Stored<LoopRecord>,
    args: &RmArgs,
    state_dir: &StateDir,
) -> Result<ExitCode, CommandError> {
    let name = &value.name;
    if let Some(owner) = &value.owner {
        return Err(CommandError::usage(
            format!("the loop {name:?} is running on {owner}"),
            format!("stop it first: ralph stop {name} --fleet"),
        ));
    }
    if value.wanted && !args.force {
        return Err(CommandError::usage(
            format!("the loop {name:?} is queued"),
            "--force removes it from the queue too",
        ));
    }
    if !args.force && has_unfetched_work(exchange, value, state_dir).await? {
        return Err(CommandError::usage(
            format!("the work of {name:?} is only in the fleet"),
            format!(
                "run `ralph fetch {name} --fleet` in its repository first, or remove it with --force"
            ),
        ));
    }
    if args.dry_run {
        print_message(&format!("would remove {name} from the fleet\n"));
        return Ok(ExitCode::Success);
    }
    exchange.delete_loop(value, *revision).await?;
    print_message(&format!("removed {name} from the fleet\n"));
    Ok(ExitCode::Success)
}

/// Returns whether the loop has changed files that the user's repository does not have.
async fn has_unfetched_work(
    exchange: &NatsExchange,
    record: &LoopRecord,
    state_dir: &StateDir,
) -> Result<bool, CommandError> {
    let here = std::env::current_dir().map_err(CommandError::broken)?;
    let scratch = LoopScratch::create(state_dir)?;
    let repository = fetch_repository(exchange, record, &scratch, Some(&here)).await?;
    let (CodeSource::Bundle { commit, .. } | CodeSource::Remote { commit, .. }) = &record.code;
    let base = transfer::tree_of(&repository, commit);
    let refs = transfer::loop_refs(&repository, &record.checkout.branch, &record.id);
    let refs = refs.map_err(CommandError::broken)?;
    Ok(refs.iter().any(|(_, commit)| {
        transfer::tree_of(&repository, commit) != base && !transfer::has_commit(&here, commit)
    }))
}

async fn find(exchange: &NatsExchange, name: &str) -> Result<Stored<LoopRecord>, CommandError> {
    let stored = exchange.record(name).await.map_err(|error| match error {
        // Not a name that a loop can have.
        FleetError::Other(why) => CommandError::usage(why, "`ralph ls --fleet` lists all loops"),
        error => error.into(),
    })?;
    stored.ok_or_else(|| {
        CommandError::usage(
            format!("the fleet has no loop {name:?} in this pool"),
            "`ralph ls --fleet` lists all loops",
        )
    })
}
