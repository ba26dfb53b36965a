//! What the engine orders is put under way, and what it does not order is ended.

use super::job::{Job, Launch, Terms};
use super::reactor::{Ears, Key};
use super::{Error, Flow, Runner, millis};
use crate::agent::decode::Reader;
use crate::agent::function::Invitation;
use crate::agent::pattern::Scanner;
use crate::agent::script;
use crate::engine::event::{Fault, Report};
use crate::engine::plan::Delivery;
use crate::engine::{Effect, Event, Outcome, Tally, format};
use crate::process::{orphans, tree};
use crate::store::dir;
use crate::terminal::emulator::Service;
use regex::Regex;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

impl Runner<'_> {
    pub(super) fn obey(&mut self) -> Result<Flow, Error> {
        let orders = self.state.orders();
        (self.wake_at, self.wake_wall_ms) = (None, None);
        if let Some(key) = self.world.under_way() {
            let ordered = orders.iter().any(|order| match order {
                Effect::Run { iteration } => key == Key::Agent(*iteration),
                Effect::Check { iteration, check } => key == Key::Check(*iteration, *check),
                Effect::Commit { iteration, task } => key == Key::Commit(*iteration, *task),
                _ => false,
            });
            if !ordered {
                self.world.stop(
                    orders
                        .iter()
                        .any(|order| matches!(order, Effect::Kill { hard: true, .. })),
                );
                return Ok(Flow::Wait);
            }
        }
        for order in orders {
            match order {
                Effect::Run { .. } | Effect::Check { .. } | Effect::Commit { .. }
                    if self.world.under_way().is_some() => {}
                Effect::Run { .. } if self.client.is_some() && self.state.is_lent() => {
                    self.journal.sync()?;
                    return Ok(Flow::Leave);
                }
                Effect::Run { iteration } => return self.begin_agent(iteration),
                Effect::Check { iteration, check } => return self.begin_check(iteration, check),
                Effect::Commit { iteration, task } => return self.begin_task(iteration, task),
                Effect::Drain { iteration, stop } => {
                    if let Some(flow) = self.drain(iteration, stop)? {
                        return Ok(flow);
                    }
                }
                Effect::Kill { iteration, .. } if self.client.is_some() => {
                    return self.let_go(iteration);
                }
                Effect::Kill { .. } => {}
                Effect::WakeAt(clock_ms) => {
                    if self.world.under_way().is_none() {
                        // Nobody knows how long a rest lasts.
                        self.journal.sync()?;
                    }
                    self.wake_at =
                        Some(self.epoch + millis(clock_ms.saturating_sub(self.epoch_clock_ms)));
                }
                Effect::WakeAtWall(wall_ms) => {
                    self.journal.sync()?;
                    self.wake_wall_ms = Some(wall_ms);
                }
                Effect::Finish(outcome) => {
                    self.finish(&outcome)?;
                    return Ok(Flow::Again);
                }
                Effect::Leave => {
                    if self.state.outcome().is_none() {
                        self.publish_leaving();
                    }
                    self.journal.sync()?;
                    return Ok(Flow::Leave);
                }
            }
        }
        Ok(Flow::Wait)
    }

    fn begin_agent(&mut self, iteration: u32) -> Result<Flow, Error> {
        self.look_for_markers()?;
        if !self.state.orders().contains(&Effect::Run { iteration }) {
            return Ok(Flow::Again);
        }
        // What was there has been judged; it must not speak for the iteration that begins.
        self.take_markers_away()?;
        if let Err((class, detail)) = self.ready() {
            self.tell(Event::Faulted { class, detail })?;
            return Ok(Flow::Again);
        }
        let told = self.state.answers.len();
        let prompt = match self
            .prompt()
            .and_then(|prompt| self.open_prompt(iteration, prompt))
        {
            Ok(prompt) => prompt,
            Err((class, detail)) => {
                self.tell(Event::Faulted { class, detail })?;
                return Ok(Flow::Again);
            }
        };
        self.note_head(iteration);
        self.world.clear_strays();
        // Git may have taken its time, and somebody have asked for something meanwhile. Files are looked at even if
        // nothing was noticed: a system may have no watches left.
        self.world.look_within(Duration::ZERO);
        if self.hear(Some(Instant::now()))? {
            return Ok(Flow::HungUp);
        }
        // What a person has said meanwhile is not in this prompt.
        if !self.state.orders().contains(&Effect::Run { iteration })
            || self.state.answers.len() != told
        {
            return Ok(Flow::Again);
        }
        let several = !self.state.plan.fallback.is_empty();
        let agent = several.then(|| self.state.agent().name.clone());
        self.tell(Event::Started { iteration, agent })?;
        if self.disk_full {
            return Ok(Flow::Again);
        }
        self.journal.sync()?;
        if let Some(client) = &self.client {
            // The agent is there already: whoever has it is about to be told.
            let (pid, start_time) = client.process.unwrap_or_default();
            return self.begun(iteration, pid, start_time);
        }
        match self.start_agent(iteration, prompt) {
            Ok(job) => {
                let pid = job.pid();
                let ears = self.ears();
                self.tally = Tally::default();
                self.world.begin(Key::Agent(iteration), job, Some(ears));
                self.begun(iteration, pid, tree::start_time(pid).unwrap_or(0))
            }
            Err(error) => {
                self.not_started(iteration, &error)?;
                Ok(Flow::Again)
            }
        }
    }

    fn begun(&mut self, iteration: u32, pid: u32, start_time: u64) -> Result<Flow, Error> {
        self.tell(Event::Spawned {
            iteration,
            pid,
            start_time,
        })?;
        if let Err(error) = self.keep_prompt(iteration) {
            let detail = format!("cannot keep the prompt: {error}");
            self.tell(Event::Faulted {
                class: Fault::Disk,
                detail,
            })?;
        }
        Ok(Flow::Again)
    }

    fn start_agent(&mut self, iteration: u32, prompt: File) -> io::Result<Job> {
        let (plan, agent) = (&self.state.plan, self.state.agent());
        let terms = Terms {
            log: self.dir.iteration(iteration).join("output.log"),
            log_cap: plan.log_cap,
            timeout: None,
            silence: plan.limits.inactivity_ms.map(millis),
            linger: agent
                .dialect
                .is_stream()
                .then(|| millis(plan.grace.linger_ms)),
            grace: millis(plan.grace.term_ms),
            survivor: millis(plan.grace.survivor_ms),
        };
        if self.world.has_function() {
            let (workspace, task_dir) = (plan.workspace.clone(), self.task.path().to_owned());
            let prompt = String::from_utf8_lossy(&self.prompt.1).into_owned();
            return self.world.call(
                Invitation {
                    prompt,
                    iteration,
                    workspace,
                    task_dir,
                },
                terms,
            );
        }
        let typed: Vec<String> = agent
            .command
            .iter()
            .map(|word| self.uncovered(word))
            .collect();
        let mut command = script::resolve(&typed);
        command.extend(self.budget_words());
        let prompt = match agent.prompt {
            _ if agent.terminal => None,
            Delivery::Stdin => Some(prompt),
            Delivery::Argument => {
                command.push(String::from_utf8_lossy(&self.prompt.1).into_owned());
                None
            }
            Delivery::File => {
                command.push(self.prompt_path(self.prompt.0).display().to_string());
                None
            }
        };
        let task_dir = self.task.path().to_string_lossy().into_owned();
        let env = [
            ("RALPH_LOOP", self.header.name.clone()),
            ("RALPH_ITERATION", iteration.to_string()),
            ("RALPH_TASK_DIR", task_dir.clone()),
            ("TASK_FOLDER", task_dir),
            (orphans::MARK, orphans::mark(&self.header.id)),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let unset = [&agent.unset[..], &agent.held_back].concat();
        let own = agent
            .env
            .iter()
            .map(|(name, value)| (name.clone(), self.uncovered(value)));
        let env: Vec<(String, String)> = own.chain(env).collect();
        let (command, dir) = (&command[..], &plan.workspace);
        let terminal = agent.terminal.then(|| self.service());
        self.world.start(Launch {
            command,
            dir,
            env: &env,
            unset: &unset,
            stdin: prompt,
            terminal,
            terms,
        })
    }

    /// The words that keep an agent to the dollars that are left.
    fn budget_words(&self) -> Vec<String> {
        let Some(max) = self.state.plan.limits.cost_usd else {
            return Vec::new();
        };
        let left = format!("{:.4}", (max - self.state.cost_usd).max(0.0001));
        self.state
            .agent()
            .budget
            .iter()
            .map(|word| word.replace("{usd}", &left))
            .collect()
    }

    /// How an agent on a terminal is served there.
    fn service(&self) -> Service {
        let (plan, agent) = (&self.state.plan, self.state.agent());
        let pattern = |text: &Option<String>| text.as_ref().and_then(|text| Regex::new(text).ok());
        Service {
            prompt: String::from_utf8_lossy(&self.prompt.1).into_owned(),
            ready: pattern(&agent.ready),
            patience: millis(plan.grace.ready_ms),
            pattern: pattern(&plan.proof.pattern),
        }
    }

    /// A program that is not there will not be there next time; anything else may pass.
    fn not_started(&mut self, iteration: u32, error: &io::Error) -> Result<(), Error> {
        let agent = self.state.agent();
        let program = agent.command.first().unwrap_or(&agent.name).clone();
        let class = match error.kind() {
            io::ErrorKind::NotFound => Fault::NotFound,
            io::ErrorKind::PermissionDenied => Fault::Permission,
            io::ErrorKind::ArgumentListTooLong => {
                let bytes = format::bytes(self.prompt.1.len() as u64);
                let detail =
                    format!("the prompt ({bytes}) is too long for an argument of {program}");
                return self.tell(Event::Faulted {
                    class: Fault::Usage,
                    detail,
                });
            }
            _ => {
                let words = format!("cannot start {program}: {error}");
                self.watch.warn(&words);
                let report = Report {
                    cost_usd: Some(0.0),
                    error: Some(words),
                    ..Report::default()
                };
                return self.tell(Event::Ended { iteration, report });
            }
        };
        self.tell(Event::Faulted {
            class,
            detail: format!("cannot start {program}: {error}"),
        })
    }

    fn begin_check(&mut self, iteration: u32, check: usize) -> Result<Flow, Error> {
        if check == 0 {
            // The iteration's end is durable before it is judged by anybody.
            self.journal.sync()?;
        }
        if let Err((class, detail)) = self.in_place() {
            self.tell(Event::Faulted { class, detail })?;
            return Ok(Flow::Again);
        }
        let plan = &self.state.plan;
        let what = &plan.proof.checks[check];
        self.dir.make_iteration(iteration)?;
        let log = self.dir.check_log(iteration, &what.slug);
        // There even if the check says nothing, and without what it said when a crash cut it short.
        let emptied = dir::create_file(&log);
        let command = ["sh", "-c", &self.uncovered(&what.command)].map(str::to_owned);
        let mark = [(orphans::MARK.to_owned(), orphans::mark(&self.header.id))];
        let timeout = Some(self.within(millis(what.timeout_ms)));
        let started = emptied.and_then(|_| {
            let terms = Terms {
                log,
                log_cap: plan.log_cap,
                timeout,
                silence: None,
                linger: None,
                grace: millis(plan.grace.term_ms),
                survivor: millis(plan.grace.survivor_ms),
            };
            let (command, dir) = (&command[..], &plan.workspace);
            self.world.start(Launch {
                command,
                dir,
                env: &mark,
                unset: &[],
                stdin: None,
                terminal: None,
                terms,
            })
        });
        match started {
            Ok(job) => self.world.begin(Key::Check(iteration, check), job, None),
            Err(error) => {
                let detail = format!("cannot run the check `{}`: {error}", what.command);
                let class = if plan.workspace.is_dir() {
                    Fault::Disk
                } else {
                    Fault::Workspace
                };
                self.tell(Event::Faulted { class, detail })?;
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Wait)
    }

    /// What the agent's output is read for.
    fn ears(&self) -> Ears {
        if self.state.agent().terminal {
            return Ears {
                reader: Reader::Screen,
                scanner: None,
                spoke: false,
            };
        }
        let plan = &self.state.plan;
        let prompt = || String::from_utf8_lossy(&self.prompt.1).into_owned();
        let pattern = plan.proof.pattern.as_ref();
        let pattern = pattern.and_then(|pattern| regex::RegexSet::new([pattern]).ok());
        let scanner = pattern.map(|pattern| Scanner::new(pattern, &prompt()));
        let habits = &self.habits[self.state.using];
        let reader = habits.reader(&plan.workspace, &self.state.sessions, prompt);
        Ears {
            reader,
            scanner,
            spoke: false,
        }
    }

    fn finish(&mut self, outcome: &Outcome) -> Result<(), Error> {
        // A marker that was written between iterations must not finish another loop of this name.
        let dir = self.dir.iteration(self.state.iteration);
        let _ = self
            .task
            .file_away(&self.state.claims.markers, &dir, self.world.mask());
        self.publish_leaving();
        let state = &self.state;
        self.tell(Event::Finished {
            outcome: state.verdict().unwrap_or_else(|| outcome.verdict()),
            stop_reason: outcome.stop_reason().to_owned(),
            success: outcome.exit_code() == 0,
            exit_code: outcome.exit_code(),
            iterations: state.iteration,
            cost_usd: state.known_cost(),
            duration_s: state.active_ms as f64 / 1000.0,
            worktree: state
                .plan
                .worktree
                .as_ref()
                .map(|worktree| worktree.path.display().to_string()),
        })?;
        self.journal.sync()?;
        Ok(())
    }
}
