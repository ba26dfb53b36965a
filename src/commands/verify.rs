//! `ralph verify`: proves the result of a loop again, from its name or from a receipt.

use super::open_loop::open_as_operator;
use super::receipt::receipt_of;
use super::trust::consent::is_ci;
use crate::cli::receipt::VerifyArgs;
use crate::engine::ExitCode;
use crate::engine::receipt::Receipt;
use crate::git::checkout_top;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::exemptions;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::trust::is_inside_loop;
use crate::lifecycle::verify::{Verification, read_receipt};
use crate::process::warden::{SupervisorExit, run_guarded};
use crate::store::{StateDir, is_valid_name};
use crate::ui::print::{ask, can_ask, note, print_json, print_message, print_notice, report_error};
use crate::ui::tty::use_color;
use crate::ui::{print::print_styled, verify_text};
use std::path::Path;
use std::time::Duration;

/// The time between SIGTERM and SIGKILL for what a killed process leaves behind.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, CommandError> {
    if is_valid_name(&args.what) {
        verify_loop(args)
    } else {
        verify_receipt(args)
    }
}

fn verify_loop(args: &VerifyArgs) -> Result<ExitCode, CommandError> {
    let handle = open_as_operator(&args.what)?;
    let receipt = receipt_of(&handle)?;
    let (state_dir, dir, state) = (&handle.state_dir, &handle.dir, &handle.view.state);
    // Until the checks have ended, neither this loop nor another may change the files.
    let locks = LoopLocks::acquire(state_dir, dir, &state.plan)?;
    let verification = Verification::of_loop(state_dir, dir, state, receipt)?;
    let exit = run(&verification, state_dir, args.json);
    drop(locks);
    exit
}

fn verify_receipt(args: &VerifyArgs) -> Result<ExitCode, CommandError> {
    let path = Path::new(&args.what);
    let receipt = read_receipt(path)?;
    let current = std::env::current_dir().map_err(CommandError::broken)?;
    let top = checkout_top(&current).ok_or_else(|| {
        CommandError::usage(
            format!("{} is not in a git repository", current.display()),
            "run this command in a clone of the loop's repository",
        )
    })?;
    let state_dir = StateDir::locate()?;
    let verification = Verification::of_receipt(&state_dir, top.to_owned(), receipt)?;
    settle_trust(&verification.receipt, args, top)?;
    run(&verification, &state_dir, args.json)
}

/// Settles whether the commands of a receipt may run. A receipt can come from anyone.
fn settle_trust(receipt: &Receipt, args: &VerifyArgs, top: &Path) -> Result<(), CommandError> {
    // An agent can set flags and variables.
    if is_inside_loop() {
        return Err(CommandError::usage(
            "an agent cannot run the commands of a receipt",
            "ask a person to run `ralph verify` outside the loop",
        ));
    }
    if args.trust {
        return Ok(());
    }
    if is_ci() {
        note(format!(
            "trusting the commands of {} because CI is set",
            args.what
        ));
        return Ok(());
    }
    let commands = verify_text::commands(receipt, &args.what, top);
    if !can_ask() {
        print_notice(&commands);
        return Err(CommandError::usage(
            format!("the commands of {} are not trusted", args.what),
            "read them, then pass --trust",
        ));
    }
    print_notice(&commands);
    if ask("Run them? [y/N] ") {
        return Ok(());
    }
    Err(CommandError::usage(
        format!("the commands of {} are not trusted", args.what),
        "nothing was run",
    ))
}

/// Runs the verification in a process of its own, and deletes everything that it wrote, even if that
/// process is killed.
fn run(
    verification: &Verification,
    state_dir: &StateDir,
    json: bool,
) -> Result<ExitCode, CommandError> {
    let run = || run_in_process(verification, json).unwrap_or_else(report_error);
    let exit = run_guarded(run, GRACE, &exemptions(state_dir)).map_err(CommandError::broken);
    verification.clean_up();
    match exit? {
        SupervisorExit::Exited(code) => Ok(code),
        SupervisorExit::Killed { signal, .. } => {
            report_error(CommandError::broken(format!(
                "the verification was killed by signal {signal}"
            )));
            Ok(ExitCode::from_signal(signal))
        }
    }
}

fn run_in_process(verification: &Verification, json: bool) -> Result<ExitCode, CommandError> {
    let color = use_color();
    if !json {
        print_message(&verify_text::heading(&verification.receipt));
    }
    let report = verification.run(&mut |check| {
        if !json {
            let _ = print_styled(verify_text::check(check, color));
        }
    });
    verification.clean_up();
    let Some(report) = report? else {
        return Ok(ExitCode::Stopped);
    };
    if json {
        let object = verify_text::object(&verification.receipt, &report);
        print_json(&object.to_string())?;
    } else {
        print_styled(verify_text::result(&verification.receipt, &report, color))?;
    }
    Ok(if report.is_verified() {
        ExitCode::Success
    } else {
        ExitCode::Failure
    })
}
