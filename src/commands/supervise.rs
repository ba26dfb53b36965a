//! A runner in the foreground: warden, supervisor, console, and the last words.

use crate::agent::redact::Mask;
use crate::agent::task_dir::TaskDir;
use crate::cli::OutputWords;
use crate::engine::format::{plural, processes};
use crate::engine::{Act, Event, Outcome, Plan, State, Status};
use crate::git;
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::handle::friends;
use crate::lifecycle::locks::Locks;
use crate::process::warden;
use crate::runner::notify;
use crate::runner::reactor::World;
use crate::runner::{Error, Left, Runner, Watch};
use crate::store::dir::create_file;
use crate::store::{Header, Home, Journal, Line, LoopDir, holder};
use crate::ui::console::{Console, Style, colours};
use crate::ui::derived_files::Files;
use crate::ui::{notification, say, status, summary};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Runs a loop whose locks are held, and says what to exit with.
pub(crate) fn supervise(
    dir: &LoopDir,
    locks: Locks,
    plan: &Plan,
    output: OutputWords,
) -> Result<i32, Failure> {
    let grace = Duration::from_millis(plan.grace.term_ms);
    let left = warden::guard(
        || in_own_process(dir, output),
        grace,
        &friends(&Home::of(dir)),
    )
    .map_err(Failure::broken)?;
    // Until here the warden held them too: a free lock means an empty tree.
    drop(locks);
    match left {
        warden::Left::Exited(code) => Ok(code),
        warden::Left::Killed {
            signal,
            swept,
            survivors,
        } => {
            if std::io::stdout().is_terminal() {
                // The live line of whoever was killed is still there.
                say("\n");
            }
            let mut words = vec![format!("the supervisor was killed by signal {signal}")];
            if swept > 0 {
                words.push(format!("{} ended with it", processes(swept)));
            }
            if !survivors.is_empty() {
                words.push(format!("these could not be ended: {survivors:?}"));
            }
            Failure::broken(words.join("; "))
                .with_hint(format!("ralph resume {} goes on", dir.name()))
                .report();
            Ok(128 + signal)
        }
    }
}

fn in_own_process(dir: &LoopDir, output: OutputWords) -> i32 {
    run_here(dir, output).unwrap_or_else(Failure::report)
}

/// Runs a loop in this process.
pub(crate) fn run_here(dir: &LoopDir, output: OutputWords) -> Result<i32, Failure> {
    let opened = Journal::open(dir)?;
    let style = match output {
        OutputWords { json: true, .. } => Style::Json,
        OutputWords { quiet: true, .. } => Style::Quiet,
        OutputWords { no_stream, raw, .. } => Style::Full {
            stream: !no_stream,
            raw,
        },
    };
    let task = TaskDir::of(&opened.state.plan.workspace, &opened.header.name);
    let files = Files::of(dir, task.path(), &opened.state);
    let console = Console::new(dir, style);
    let console = if output.in_window {
        console.in_window()
    } else {
        console
    };
    let mut onlooker = Onlooker {
        files,
        console,
        finished: None,
    };
    let mut world = World::open(friends(&Home::of(dir))).map_err(Failure::broken)?;
    if output.in_window {
        world.is_knocked_at();
    }
    if onlooker.console.mirrors() {
        world.lend_terminal();
    }
    let left = Runner::open(dir.clone(), opened, world, &mut onlooker)?.run();
    onlooker.console.close();
    let (left, header, state) = left.map_err(|error| {
        let is_full = matches!(&error, Error::Store(error) if error.is_disk_full());
        let mend = format!("free some disk space, then ralph resume {}", dir.name());
        let failure = Failure::from(error);
        if is_full {
            failure.with_hint(mend)
        } else {
            failure
        }
    })?;
    last_words(dir, &header, &state, style, !output.no_next);
    if let Left::Ended(Outcome::Fatal { detail, .. }) = &left {
        Failure::broken(detail)
            .with_hint(format!("mend it, then ralph resume {}", dir.name()))
            .report();
    }
    if left != Left::HungUp {
        tell(dir, &header, &state, onlooker.finished.as_ref());
    }
    Ok(match left {
        Left::Ended(outcome) => outcome.exit_code(),
        Left::Paused | Left::Lent => 3,
        Left::HungUp => 129,
    })
}

/// Tells whoever is to be told that this runner has left. What goes wrong there changes nothing.
fn tell(dir: &LoopDir, header: &Header, state: &State, finished: Option<&Line>) {
    let Some(shown) = state.plan.notify.as_deref() else {
        return;
    };
    let command = &Mask::of_environment().uncover(shown, &state.plan.covered)[..];
    let news = notification::news(header, state, finished, &dir.path().display().to_string());
    let (path, log) = (dir.notify_news(), dir.notify_log());
    let result = news.to_string();
    let written = create_file(&path).and_then(|mut file| writeln!(file, "{result}"));
    let trouble = match written
        .and_then(|()| create_file(&log))
        .and_then(|_| File::open(&path))
    {
        Ok(news) => notify::tell(notify::Call {
            command,
            dir: &state.plan.workspace,
            name: &header.name,
            news,
            result: &result,
            log,
            grace: Duration::from_millis(state.plan.grace.term_ms),
            friends: friends(&Home::of(dir)),
        }),
        Err(error) => Some(error.to_string()),
    };
    if let Some(trouble) = trouble {
        warn(format!(
            "--notify {shown:?}: {trouble}; see {}",
            dir.notify_log().display()
        ));
    }
}

fn last_words(dir: &LoopDir, header: &Header, state: &State, style: Style, next: bool) {
    match style {
        Style::Json => {}
        Style::Quiet => say(&summary::result(state, &in_trouble(dir, header, state))),
        Style::Full { .. } => {
            let children = in_trouble(dir, header, state);
            say(&summary::text(
                header,
                state,
                &changed(dir),
                &children,
                next,
                colours(),
            ));
        }
    }
}

/// The child loops of a loop that has ended which did not come to a good end, and why.
fn in_trouble(dir: &LoopDir, header: &Header, state: &State) -> Vec<String> {
    if state.outcome().is_none() {
        return Vec::new();
    }
    let children = Home::of(dir)
        .children(&header.name, header.created_ms)
        .into_iter();
    children
        .filter_map(|(dir, child)| {
            let held = holder(&dir.lock()).is_some();
            let is_bad = matches!(
                child.state.status(held),
                Status::Failed | Status::Crashed | Status::Blocked
            );
            is_bad.then(|| format!("{} {}", dir.name(), status::line(&child.state, held)))
        })
        .collect()
}

/// What changed since the loop began, in words.
fn changed(dir: &LoopDir) -> String {
    let base = std::fs::read_to_string(dir.base()).ok();
    let Some(base) = base.and_then(|text| serde_json::from_str::<git::Base>(&text).ok()) else {
        return String::new();
    };
    match base.changes(&dir.scratch()) {
        Ok(changes) if changes.files == 0 => "nothing".into(),
        Ok(changes) => {
            let more = if changes.at_least { "at least " } else { "" };
            let files = plural(u64::from(changes.files), "file");
            let shown = 3.min(changes.paths.len());
            let etc = if changes.files as usize > shown {
                ", …"
            } else {
                ""
            };
            let paths = changes.paths[..shown].join(", ");
            format!(
                "{more}{files} +{} −{}: {paths}{etc}",
                changes.insertions, changes.deletions
            )
        }
        Err(error) => format!("unknown: {error}"),
    }
}

/// Everyone who looks on.
struct Onlooker {
    files: Files,
    console: Console,
    /// The loop's last line.
    finished: Option<Line>,
}

impl Watch for Onlooker {
    fn event(&mut self, line: &Line, state: &State) {
        if matches!(line.event, Event::Finished { .. }) {
            self.finished = Some(line.clone());
        }
        self.files.event(line, state);
        self.console.event(line, state);
    }

    fn act(&mut self, act: &Act<'_>) {
        self.console.act(act);
    }

    fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration> {
        self.console.tick(state, silent_for)
    }

    fn warn(&mut self, words: &str) {
        self.console.warn(words);
    }
}
