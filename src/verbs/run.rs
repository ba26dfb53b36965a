//! `ralph run`: a new loop in the foreground.

use super::failure::{Failure, warn};
use super::supervise::{Locks, lock_away, supervise};
use super::visit::Visit;
use crate::cli::RunWords;
use crate::config;
use crate::drive::script;
use crate::engine::plan::SCRIPT;
use crate::engine::prompt::{Materials, render};
use crate::engine::words::{dollars, duration};
use crate::engine::{Plan, State, Status};
use crate::show::say;
use crate::store::{self, Header, Home, Journal, LoopDir, cache, last_holder, valid_name};
use rustix::fs::{Access, access};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn run(words: &RunWords) -> Result<i32, Failure> {
    let workspace = std::env::current_dir().and_then(std::fs::canonicalize).map_err(Failure::broken)?;
    run_in(workspace, &Home::locate()?, words)
}

/// Runs a loop in this workspace, with this state directory.
pub(super) fn run_in(workspace: PathBuf, home: &Home, words: &RunWords) -> Result<i32, Failure> {
    let plan = words.settings().plan(&words.errand(workspace, config_dir()))?;
    if let Some(name) = words.name.as_deref().filter(|name| !valid_name(name)) {
        return Err(store::Error::BadName { name: name.to_owned() }.into());
    }
    agent_exists(&plan)?;
    checks_exist(&plan)?;
    nothing_claimed_yet(&plan)?;
    if words.dry_run {
        return dry_run(&plan);
    }
    if plan.limits.iterations.is_none_or(|max| max > 50) {
        warn(match plan.limits.iterations {
            Some(_) => "high iteration count (>50) may consume significant resources",
            None => "no limit of iterations: the loop may consume significant resources",
        });
    }
    create(home, words.name.as_deref(), &plan, words)
}

fn create(home: &Home, name: Option<&str>, plan: &Plan, words: &RunWords) -> Result<i32, Failure> {
    sweep_before(home, &plan.workspace)?;
    let (dir, locks) = match name {
        Some(name) => {
            make_room(home, name)?;
            claim(home, name, plan)?
        }
        None => claim_free(home, plan)?,
    };
    let name = dir.name().to_owned();
    let created_ms = jiff::Timestamp::now().as_millisecond();
    let parent = std::env::var("RALPH_LOOP").ok().filter(|parent| valid_name(parent));
    let header = Header { name, id: new_id()?, created_ms, parent, background: false, plan: plan.clone() };
    drop(Journal::create(&dir, &header)?);
    supervise(&dir, locks, plan, words.output)
}

/// Makes a loop's directory, and takes its locks.
fn claim(home: &Home, name: &str, plan: &Plan) -> Result<(LoopDir, Locks), Failure> {
    let dir = home.loop_dir(name);
    dir.create()?;
    let locks = Locks::take(home, &dir, plan)?;
    Ok((dir, locks))
}

/// The same with the smallest name that is free, though others may be looking for one right now.
fn claim_free(home: &Home, plan: &Plan) -> Result<(LoopDir, Locks), Failure> {
    let mut tries = 0;
    loop {
        let name = home.free_name(&plan.workspace)?;
        match claim(home, &name, plan) {
            Ok((dir, locks)) if !dir.journal().exists() => return Ok((dir, locks)),
            Err(failure) if tries > 20 || !home.loop_dir(&name).path().exists() => return Err(failure),
            _ => tries += 1,
        }
    }
}

/// If everything of the last loop in this workspace was killed at once, its agent may still be at work here.
fn sweep_before(home: &Home, workspace: &Path) -> Result<(), Failure> {
    if let Some(last) = last_holder(&home.workspace_lock_path(workspace)?) {
        // A loop that cannot be read is no reason against another.
        let _ = Visit::in_home(home.clone(), &last.loop_name);
    }
    Ok(())
}

/// An ended loop's name may be used again; one that could go on may not.
fn make_room(home: &Home, name: &str) -> Result<(), Failure> {
    let dir = home.loop_dir(name);
    if !dir.journal().exists() {
        return Ok(());
    }
    // Held until it is out of the way: another may be starting under the same name right now.
    let lock = lock_away(&dir);
    if !dir.journal().exists() {
        return Ok(());
    }
    let _lock = lock?;
    let status = cache::read(&dir)?.state.status(false);
    if matches!(status, Status::Paused | Status::Crashed) {
        return Err(Failure::usage(
            format!("the loop {name:?} is {}, and could go on", status.word()),
            format!("ralph resume {name}, ralph stop {name} to end it, or choose another --name"),
        ));
    }
    let place = home.archive(name)?;
    if status == Status::Done {
        return Ok(());
    }
    warn(format!("the loop {name:?} of before, which is {}, is now in {}", status.word(), place.display()));
    Ok(())
}

/// Where the user's own configuration lies.
fn config_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("ralph"))
}

fn agent_exists(plan: &Plan) -> Result<(), Failure> {
    let program = &plan.agent.command[0];
    if let Some(file) = program.strip_prefix(SCRIPT) {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::usage(
                format!("cannot read the script {file}: {error}"),
                "name a file, as in --agent script:demo.script",
            )
        })?;
        let parsed = script::parse(&text);
        return parsed.map(drop).map_err(|wrong| {
            Failure::usage(
                format!("{file}:{}: {}", wrong.line, wrong.message),
                "nothing was started; correct that line",
            )
        });
    }
    match found(program, &plan.workspace) {
        None => Err(Failure::usage(
            format!("the agent's command is not there: {program}"),
            "install it, or check its name and your PATH",
        )),
        Some(path) if access(&path, Access::EXEC_OK).is_err() => Err(Failure::usage(
            format!("the agent's command may not be run: {program}"),
            format!("chmod +x {}", path.display()),
        )),
        Some(_) => Ok(()),
    }
}

fn found(program: &str, workspace: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(workspace.join(program)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|dir| workspace.join(dir).join(program));
    all.find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// A file that is there already would be taken for the agent's claim.
fn nothing_claimed_yet(plan: &Plan) -> Result<(), Failure> {
    match &plan.proof.file {
        Some(file) if plan.workspace.join(file).exists() => Err(Failure::usage(
            format!("--done-file {} is there already", file.display()),
            "it is to show that the work is done: remove it, or name another",
        )),
        _ => Ok(()),
    }
}

/// A check whose first word is a bare command that nobody has would be red for ever. The shell knows
/// its own words, so it is asked.
fn checks_exist(plan: &Plan) -> Result<(), Failure> {
    if !plan.proof.preflight {
        return Ok(());
    }
    for check in &plan.proof.checks {
        let first = check.command.split_whitespace().next().unwrap_or_default();
        let bare = first.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        if !bare {
            continue;
        }
        let known = Command::new("sh")
            .args(["-c", "command -v -- \"$0\"", first])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if known.is_ok_and(|status| !status.success()) {
            return Err(Failure::usage(
                format!("the check {:?} cannot run: there is no command {first}", check.command),
                "install it, correct it, or start with --no-preflight if the agent is to bring it",
            ));
        }
    }
    Ok(())
}

fn new_id() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Failure::broken)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

fn dry_run(plan: &Plan) -> Result<i32, Failure> {
    let task = match &plan.task.file {
        Some(path) => String::from_utf8_lossy(&std::fs::read(path).map_err(Failure::broken)?).into_owned(),
        None => plan.task.text.clone().unwrap_or_default(),
    };
    let prompt = render(&State::new(plan.clone()), &Materials { task, ..Materials::default() });
    say(&format!(
        "{}\n--- the first prompt, as it would be with no check red ---\n\n{prompt}",
        in_words(plan)
    ));
    if !prompt.ends_with('\n') {
        say("\n");
    }
    Ok(0)
}

fn in_words(plan: &Plan) -> String {
    let limits = &plan.limits;
    let never = |ms: Option<u64>| ms.map_or_else(|| "never".into(), duration);
    let at_most = |max: Option<u32>| max.map_or_else(|| "no limit".into(), |max| format!("at most {max}"));
    let mut rows =
        vec![("agent", plan.agent.command.join(" ")), ("workspace", plan.workspace.display().to_string())];
    let timeout = |ms: u64| Some(ms).filter(|ms| *ms < config::NO_TIMEOUT);
    let checks = plan.proof.checks.iter();
    rows.extend(
        checks.map(|check| {
            ("check", format!("{} (timeout {})", check.command, never(timeout(check.timeout_ms))))
        }),
    );
    rows.push(("iterations", at_most(limits.iterations)));
    rows.push(("failures", at_most(limits.failures) + " in a row"));
    rows.extend(limits.cost_usd.map(|max| ("cost", format!("at most {}", dollars(max)))));
    rows.extend(limits.time_ms.map(|max| ("time", format!("at most {}", duration(max)))));
    rows.push((
        "timeouts",
        format!("iteration {}, inactivity {}", never(limits.iteration_ms), never(limits.inactivity_ms)),
    ));
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect();
    rows.concat()
}
