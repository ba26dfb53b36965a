//! Calls an agent that is a function in the host program, once per iteration, on its own thread.

use crate::engine::{Act, ProcessExit};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The result of an agent function: its final message, or an error message.
pub(crate) type FunctionResult = Result<String, String>;

/// The agent function, shared by all iterations of a loop. Calls never overlap.
pub(crate) type AgentFunction = Arc<Mutex<dyn FnMut(&Turn) -> FunctionResult + Send>>;

/// Maximum number of messages that a function may send before the runner has read them. At the
/// maximum, the function blocks. This bounds memory, and lets the runner enforce limits.
const CHANNEL_CAPACITY: usize = 256;

/// Wakes a runner that waits in `poll`. The waker owns both ends of its pipe, so a write never
/// fails because the other end was closed.
pub(crate) struct Waker {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let (read_end, write_end) = io::pipe()?;
        let (read_end, write_end) = (OwnedFd::from(read_end), OwnedFd::from(write_end));
        rustix::io::ioctl_fionbio(&read_end, true)?;
        rustix::io::ioctl_fionbio(&write_end, true)?;
        Ok(Self {
            read_end,
            write_end,
        })
    }

    /// Wakes the runner. If the pipe is full, a wakeup is already pending.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.write_end, b"!");
    }

    /// Returns the descriptor to poll for reading.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }

    /// Clears all pending wakeups. Call this before checking for work, not after.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 512];
        while rustix::io::read(&self.read_end, &mut bytes[..]) == Ok(bytes.len()) {}
    }
}

/// One iteration, passed to an agent function.
///
/// You can share the turn with other threads while the function runs. Methods that report something
/// block while the loop's observers are behind.
pub struct Turn {
    prompt: String,
    iteration: u32,
    workspace: PathBuf,
    task_dir: PathBuf,
    cancelled: Arc<AtomicBool>,
    messages: SyncSender<TurnMessage>,
    waker: Arc<Waker>,
}

impl Turn {
    /// Returns the prompt: the task, the conditions for done, the failed checks and the changes so
    /// far.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns this iteration's number, counted from 1.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the directory to work in. It may differ from the host program's current directory.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the directory for markers, such as a file called `DONE`.
    pub fn task_dir(&self) -> &Path {
        &self.task_dir
    }

    /// Returns whether the function should return, because a limit was reached, a signal was found,
    /// or the loop was stopped. A thread cannot be killed, so a long-running function should check
    /// this often.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Reports text that the agent writes. The text goes to the iteration's log.
    pub fn said(&self, text: impl Into<String>) {
        self.emit(Act::Text(text.into().into()));
    }

    /// Reports that the agent used a tool. `name` is the tool, `about` its target, such as a path
    /// or a command, and `ok` is `true` if the call succeeded. Each use is one step.
    pub fn used_tool(&self, name: impl Into<String>, about: impl Into<String>, ok: bool) {
        self.emit(Act::ToolFinished {
            name: name.into().into(),
            about: about.into().into(),
            ok,
            error: "".into(),
            lines: None,
            ms: None,
        });
    }

    /// Reports that the agent was denied a permission. `what` describes the denied action.
    pub fn denied(&self, what: impl Into<String>) {
        self.emit(Act::Denied(what.into().into()));
    }

    /// Reports that the agent spent `usd` more dollars. They count against the cost limit.
    pub fn cost(&self, usd: f64) {
        self.emit(Act::Cost(usd));
    }

    fn emit(&self, act: Act<'static>) {
        self.send(TurnMessage::Act(act));
    }

    fn send(&self, message: TurnMessage) {
        // The channel is closed if the runner stopped waiting for this function.
        if self.messages.send(message).is_ok() {
            self.waker.wake();
        }
    }
}

/// A message from the function's thread to the runner.
enum TurnMessage {
    Act(Act<'static>),
    /// The function returned or panicked. The status is 0 if it succeeded.
    Ended(ProcessExit),
}

/// The parameters of one call to an agent function.
pub(crate) struct CallRequest {
    pub(crate) prompt: String,
    pub(crate) iteration: u32,
    pub(crate) workspace: PathBuf,
    pub(crate) task_dir: PathBuf,
}

/// A running call of an agent function.
pub(crate) struct FunctionCall {
    messages: Receiver<TurnMessage>,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    exit: Option<ProcessExit>,
}

impl FunctionCall {
    pub(crate) fn start(
        function: &AgentFunction,
        waker: &Arc<Waker>,
        request: CallRequest,
    ) -> io::Result<Self> {
        let (sender, messages) = sync_channel(CHANNEL_CAPACITY);
        let cancelled = Arc::new(AtomicBool::new(false));
        let iteration = request.iteration;
        let turn = Turn {
            prompt: request.prompt,
            iteration,
            workspace: request.workspace,
            task_dir: request.task_dir,
            cancelled: cancelled.clone(),
            messages: sender,
            waker: waker.clone(),
        };
        let function = function.clone();
        let thread = std::thread::Builder::new()
            .name(format!("ralph iteration {iteration}"))
            .spawn(move || run(&function, &turn))?;
        Ok(Self {
            messages,
            cancelled,
            thread: Some(thread),
            exit: None,
        })
    }

    /// Returns the pending acts, at most as many as the channel holds. Further acts wake the runner
    /// again, so a function that never pauses cannot monopolize the runner.
    pub(crate) fn take_acts(&mut self) -> Vec<Act<'static>> {
        let mut acts = Vec::new();
        for _ in 0..CHANNEL_CAPACITY {
            match self.messages.try_recv() {
                Ok(TurnMessage::Act(act)) => acts.push(act),
                Ok(TurnMessage::Ended(exit)) => self.end(exit),
                Err(TryRecvError::Disconnected) if self.exit.is_none() => {
                    acts.push(Act::Failed {
                        why: "the agent function ended without a result".into(),
                        reason: None,
                    });
                    self.end(ProcessExit::from_code(1));
                }
                Err(_) => break,
            }
        }
        acts
    }

    fn end(&mut self, exit: ProcessExit) {
        self.exit = Some(exit);
        // The message was the thread's last action, so joining does not block.
        let _ = self.thread.take().map(JoinHandle::join);
    }

    /// Returns the exit status; `None` while the function runs.
    pub(crate) fn exit(&self) -> Option<ProcessExit> {
        self.exit
    }

    /// Asks the function to return, through [`Turn::is_cancelled`].
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }
}

fn run(function: &AgentFunction, turn: &Turn) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        // Call the function even if it panicked in an earlier iteration.
        let mut function = function.lock().unwrap_or_else(PoisonError::into_inner);
        function(turn)
    }));
    let result = result.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(format!(
            "the agent function panicked: {}",
            message.unwrap_or("no message")
        ))
    });
    let (last, code) = match result {
        Ok(message) => (Act::Finished(message.into()), 0),
        Err(why) => (
            Act::Failed {
                why: why.into(),
                reason: None,
            },
            1,
        ),
    };
    turn.emit(last);
    turn.send(TurnMessage::Ended(ProcessExit::from_code(code)));
}
