//! Runs the plan's `--setup` command in a new checkout.

use crate::agent::redact::Redactor;
use crate::engine::plan::{Plan, SetupCommand};
use crate::os::{self, program};
use crate::store::dir::create_file;
use crate::store::log_tail::last_lines;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often to check whether the command has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the command in the workspace, with its output in `log`. Fails if it fails or takes too long.
pub(super) fn run_setup(plan: &Plan, setup: &SetupCommand, log: &Path) -> Result<(), String> {
    let failed = |why: String| format!("the setup command `{}` {why}", setup.command);
    let output = create_file(log).map_err(|error| failed(error.to_string()))?;
    let errors = output
        .try_clone()
        .map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program::shell());
    command
        .arg("-c")
        .arg(Redactor::for_plan(plan).restore(&setup.command, &plan.redacted))
        .current_dir(&plan.workspace)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    os::set_new_session(&mut command);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let group = Pid::from_raw(child.id() as i32);
    let deadline = Instant::now() + Duration::from_millis(setup.timeout_ms);
    let exit = loop {
        match child.try_wait() {
            Ok(Some(exit)) => break Ok(exit),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(None) => break Err("timed out".to_owned()),
            Err(error) => break Err(error.to_string()),
        }
    };
    // Nothing that it started may outlive it.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    match exit {
        Ok(exit) if exit.success() => Ok(()),
        Ok(exit) => Err(failed(format!("failed ({exit}): {}", last_lines(log).0))),
        Err(why) => Err(failed(why)),
    }
}
