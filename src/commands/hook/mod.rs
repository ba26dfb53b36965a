//! `ralph hook`: what the client of a session calls. Whatever goes wrong here, the session is let go with a word.

mod start;

use crate::cli::hook::{Client as Program, HookVerb, HookWords};
use crate::client::hook::{Answer, Input};
use crate::client::loop_file;
use crate::client::loop_file::{Loaded, Sheet};
use crate::client::slash;
use crate::client::slash::Command;
use crate::client::{process, transcript};
use crate::engine::State;
use crate::engine::event::{Change, Door, Wish};
use crate::lifecycle::failure::Failure;
use crate::lifecycle::handle::friends;
use crate::lifecycle::locks::Locks;
use crate::lifecycle::session::{attend, find};
use crate::process::warden;
use crate::runner::Left;
use crate::runner::session::{Attended, Client, Knock};
use crate::store::{Header, Home, LoopDir, View};
use crate::ui::session_text as words;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a transcript is waited for that does not hold the last message yet.
const ARRIVING: Duration = Duration::from_secs(2);
/// How long until the next look at it.
const LOOK: Duration = Duration::from_millis(10);
/// How the client begins most of its words about errors of the service; an agent could say the same.
const ERROR: &str = "API Error";
/// What an answer takes once the checks are over, or were ended: so much before the client's time is up.
const MARGIN: Duration = Duration::from_secs(20);
/// Codex cuts ten thousand bytes and more in the middle, and it writes some characters as several.
const CUT: usize = 8000;
/// How often in a row Claude Code lets an agent be held back that uses no tool, where nobody says otherwise.
const CAP: u32 = 8;
/// The variable that says otherwise; 0 is always.
const CAP_VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

pub(crate) fn hook(verb: &HookVerb) -> i32 {
    let begun = Instant::now();
    let (HookVerb::Prompt(said)
    | HookVerb::Stop(said)
    | HookVerb::Failure(said)
    | HookVerb::End(said)) = verb;
    // An agent that ralph itself has started is in a loop already.
    let answer = if std::env::var_os("RALPH_ITERATION").is_some() {
        Ok(Answer::go())
    } else {
        let told = Input::read(std::io::stdin().lock());
        let told = told.map_err(|wrong| {
            Failure::broken(format!("what the client says cannot be read: {wrong}"))
        });
        told.and_then(|input| {
            let call = Call::of(*said, input, begun)?;
            match verb {
                HookVerb::Prompt(_) => call.prompt(),
                HookVerb::Stop(_) => call.stop(),
                HookVerb::Failure(_) => call.broke_off(None),
                HookVerb::End(_) => call.broke_off(Some("the session was closed")),
            }
        })
    };
    reply(
        &answer.unwrap_or_else(|failure| Answer::told(format!("⚠️ ralph: {}", failure.in_words()))),
    );
    0
}

/// Prints an answer; a client that does not listen any more has gone on.
fn reply(answer: &Answer) {
    if let Some(text) = answer.to_json() {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

/// One call of a client.
struct Call {
    program: Program,
    input: Input,
    client: Client,
    home: Home,
    /// The directory in which the session was opened.
    project: PathBuf,
}

impl Call {
    fn of(said: HookWords, input: Input, begun: Instant) -> Result<Self, Failure> {
        let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        let project = project
            .or_else(|| input.cwd.clone())
            .map_or_else(std::env::current_dir, Ok);
        let project = project.and_then(std::fs::canonicalize);
        let project =
            project.map_err(|error| Failure::broken(format!("where is the session? {error}")))?;
        let deadline = said.within.map(|seconds| {
            let time = Duration::from_secs(seconds);
            begun + time.saturating_sub(MARGIN.min(time / 4))
        });
        let client = Client {
            process: process::process(),
            deadline,
        };
        Ok(Self {
            program: said.client,
            input,
            client,
            home: Home::locate()?,
            project,
        })
    }

    fn find(&self) -> Option<(LoopDir, View)> {
        find(&self.home, self.program.name(), &self.input.session_id)
    }

    /// A person has typed something: most of it is none of ralph's business.
    fn prompt(self) -> Result<Answer, Failure> {
        let typed = self.input.prompt.clone().unwrap_or_default();
        match slash::command(&typed) {
            // A helper that the agent has started has its prompts, too.
            _ if self.input.agent_id.is_some() => Ok(Answer::go()),
            None => Ok(Answer::go()),
            Some((Command::Help, _)) => Ok(Answer::Refuse {
                reason: words::help(self.program.name()),
            }),
            Some((Command::Cancel, _)) => self.cancel(),
            Some((Command::Loop, arguments)) => Ok(start::typed(&self, arguments)),
        }
    }

    fn cancel(&self) -> Result<Answer, Failure> {
        let Some((dir, view)) = self.find() else {
            let reason =
                "no ralph loop is active in this session; ralph ls shows those elsewhere".into();
            return Ok(Answer::Refuse { reason });
        };
        let (header, attended) = self.attend(&dir, &view.state, vec![Knock::cancel()])?;
        Ok(Answer::Refuse {
            reason: words::over(&header, &attended.state),
        })
    }

    /// The agent wants to stop. Of a helper that it has started nobody asks for more.
    fn stop(self) -> Result<Answer, Failure> {
        if self.input.hook_event_name.as_deref() != Some("Stop") || self.input.agent_id.is_some() {
            return Ok(Answer::go());
        }
        let Some((dir, view)) = self.find() else {
            return start::taken_over(&self);
        };
        if let Some(error) = self.service_error() {
            let told = words::broke_off(&view.header, &view.state, &error);
            return self.broke_off(Some(&error)).map(|_| Answer::told(told));
        }
        let plan = &view.state.plan;
        let mut knocks = self.look_at_sheet(&view.state);
        knocks.push(self.turn_over(plan.limits.blocks));
        if plan.proof.checks.is_empty() && plan.scm.tasks.is_empty() {
            let (header, attended) = self.attend(&dir, &view.state, knocks)?;
            return Ok(self.answer(&header, &attended));
        }
        // Checks may be long, and nothing of them may outlive this.
        let locks = Locks::of(&dir, plan)?;
        let work = || {
            let attended = attend(&dir, &locks, self.client, knocks);
            let answered = attended.map(|(header, attended)| self.answer(&header, &attended));
            reply(&answered.unwrap_or_else(|failure| {
                Answer::told(format!("⚠️ ralph: {}", failure.in_words()))
            }));
            0
        };
        let grace = Duration::from_millis(plan.grace.term_ms);
        match warden::guard(work, grace, &friends(&self.home)).map_err(Failure::broken)? {
            warden::Left::Exited(_) => Ok(Answer::go()),
            warden::Left::Killed { signal, .. } => Err(Failure::broken(format!(
                "the checks' runner was killed by signal {signal}"
            ))),
        }
    }

    fn attend(
        &self,
        dir: &LoopDir,
        state: &State,
        knocks: Vec<Knock>,
    ) -> Result<(Header, Attended), Failure> {
        attend(dir, &Locks::of(dir, &state.plan)?, self.client, knocks)
    }

    /// What the file that stands for the loop has to say: deleted, it cancels; its limit may have been changed.
    fn look_at_sheet(&self, state: &State) -> Vec<Knock> {
        let workspace = &state.plan.workspace;
        match loop_file::load(workspace) {
            Loaded::Some(sheet) if sheet.session.as_ref() == Some(&self.input.session_id) => {
                let max = Some(sheet.max_iterations).filter(|max| *max > 0);
                let before = state.turn_number().saturating_sub(state.iteration);
                let changed = max != state.turn_limit();
                let limit = max.map(|max| max.saturating_sub(before));
                changed
                    .then_some(Knock::Change(Change::MaxIterations(limit)))
                    .into_iter()
                    .collect()
            }
            Loaded::Broken(wrong) => vec![Knock::Fault(set_aside(workspace, &wrong))],
            _ => vec![Knock::Ask(Wish::StopNow, Door::Sheet)],
        }
    }

    /// The turn that is over: its final words, as the client tells them or as its transcript has them.
    fn turn_over(&self, cap: Option<u32>) -> Knock {
        let Input {
            transcript_path,
            last_assistant_message,
            ..
        } = &self.input;
        let words = match (last_assistant_message, transcript_path) {
            (Some(words), _) => Some(words.clone()),
            (None, Some(path)) => transcript::last_words(path, ARRIVING).ok().flatten(),
            (None, None) => None,
        };
        let used = transcript_path
            .as_ref()
            .filter(|_| cap.is_some())
            .and_then(|path| transcript::used_tools(path));
        Knock::Turn {
            words,
            steps: used.map(u32::from),
        }
    }

    /// Why the model's service failed, where the client asks all the same, as older ones do: that is no turn, and to
    /// go on would be to fail again. The transcript may lag behind, and is waited for if the words look like an error.
    fn service_error(&self) -> Option<String> {
        let path = self.input.transcript_path.as_deref()?;
        let Some(last) = &self.input.last_assistant_message else {
            return transcript::service_error(path);
        };
        let begun = Instant::now();
        loop {
            let error = transcript::service_error(path).filter(|error| last.trim() == error.trim());
            if error.is_some() || !last.starts_with(ERROR) || begun.elapsed() > ARRIVING {
                return error;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The turn broke off, or the session is over, before the loop was.
    fn broke_off(self, why: Option<&str>) -> Result<Answer, Failure> {
        let Some((dir, view)) = self.find().filter(|(_, view)| view.state.is_lent()) else {
            return Ok(Answer::go());
        };
        let last = self
            .input
            .last_assistant_message
            .as_ref()
            .or(self.input.error.as_ref());
        // A client that exits may end the hook of a failure before it has begun, and older ones have none.
        let noted = || {
            self.input
                .transcript_path
                .as_deref()
                .and_then(transcript::service_error)
        };
        let why = match why {
            Some(why) => noted().unwrap_or_else(|| why.to_owned()),
            None => last
                .cloned()
                .or_else(noted)
                .unwrap_or_else(|| "for no known reason".into()),
        };
        // A session that is closed after its turn broke off is told of by that.
        if view.state.stumble().is_none() {
            self.attend(&dir, &view.state, vec![Knock::Stumble(why)])?;
        }
        Ok(Answer::go())
    }

    /// What the client is told of where its loop stands.
    fn answer(&self, header: &Header, attended: &Attended) -> Answer {
        let state = &attended.state;
        match &attended.left {
            Left::Lent => {
                let prompt = String::from_utf8_lossy(&attended.prompt);
                let whole = self
                    .home
                    .loop_dir(&header.name)
                    .iteration(state.iteration)
                    .join("prompt.md");
                let reason = match self.program {
                    Program::Codex if prompt.len() > CUT => words::shortened(&prompt, CUT, &whole),
                    _ => prompt.trim_end().to_owned(),
                };
                Answer::Block {
                    reason,
                    message: Some(words::turn(state)),
                }
            }
            // The client itself wanted no answer any more.
            Left::HungUp => Answer::go(),
            Left::Ended(_) | Left::Paused => Answer::told(words::over(header, state)),
        }
    }

    /// How often in a row the client lets its agent be held back that uses no tool; none is always.
    fn cap(&self) -> Option<u32> {
        if self.program != Program::Claude {
            return None;
        }
        let said = std::env::var(CAP_VARIABLE)
            .ok()
            .and_then(|value| value.trim().parse().ok());
        // Those that do not tell their hooks of their process are older than this patience.
        let is_newer = || {
            ["CLAUDE_PID", "CLAUDE_CODE_SESSION_ID"]
                .iter()
                .any(|name| std::env::var_os(name).is_some())
        };
        said.or_else(|| is_newer().then_some(CAP))
            .filter(|cap| *cap > 0)
    }
}

/// Puts a file aside that cannot be read, and says so.
fn set_aside(workspace: &std::path::Path, wrong: &str) -> String {
    let path = Sheet::path(workspace);
    match loop_file::set_aside(workspace) {
        Ok(kept) => format!(
            "{} cannot be read: {wrong}; it is kept as {}",
            path.display(),
            kept.display()
        ),
        Err(error) => format!(
            "{} cannot be read: {wrong}; nor be put aside: {error}",
            path.display()
        ),
    }
}
