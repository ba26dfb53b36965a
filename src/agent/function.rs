//! An agent that is a function of the host program: called in a thread of its own, once an iteration.

use crate::engine::{Act, Exit};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What an agent's function comes to: its final words, or why it failed.
pub type Answer = Result<String, String>;

/// The function, for all of a loop's iterations; there is never a second call at once.
pub type Function = Arc<Mutex<dyn FnMut(&Turn) -> Answer + Send>>;

/// So many notes may wait to be heard. A function that tells more has to wait, so that neither its words fill the
/// memory nor its limits go unheard.
const UNHEARD: usize = 256;

/// Wakes a runner that waits in `poll`. Whoever rings holds both ends, so that nobody rings at a closed door.
pub struct Bell {
    ear: OwnedFd,
    rope: OwnedFd,
}

impl Bell {
    /// A bell that nobody has rung.
    pub fn new() -> io::Result<Self> {
        let (ear, rope) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ear, true)?;
        rustix::io::ioctl_fionbio(&rope, true)?;
        Ok(Self { ear, rope })
    }

    /// Rings; a pipe that is full has been rung before.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.rope, b"!");
    }

    /// What to poll.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.ear.as_fd()
    }

    /// Forgets that it was rung; the caller looks at everything anyway.
    pub fn clear(&self) {
        let mut bytes = [0; 512];
        while rustix::io::read(&self.ear, &mut bytes[..]) == Ok(bytes.len()) {}
    }
}

/// One iteration, as an agent's function sees it.
///
/// It can be shared with other threads for as long as the function runs. Whoever tells more than the loop's
/// observers can take in is held up until they have.
pub struct Turn {
    /// What it is told.
    pub(crate) prompt: String,
    /// Which one it is.
    pub(crate) iteration: u32,
    /// Where it works.
    pub(crate) workspace: PathBuf,
    /// Where it may leave markers.
    pub(crate) task_dir: PathBuf,
    cancelled: Arc<AtomicBool>,
    notes: SyncSender<Note>,
    bell: Arc<Bell>,
}

impl Turn {
    /// What the agent is told: the task, what counts as done, what failed and what has changed so far.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// The number of this iteration; the first is 1.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The directory in which the work is to be done. The host's current directory may be another.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The directory in which an agent may leave a marker, such as a file called `DONE`.
    pub fn task_dir(&self) -> &Path {
        &self.task_dir
    }

    /// Whether the function is asked to return: a limit is reached, a signal was seen, or somebody stopped
    /// the loop. A thread cannot be killed, so a function that works for long should look here often.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Tells what the agent says, as it says it. It is kept in the iteration's log.
    pub fn said(&self, text: impl Into<String>) {
        self.tell(Act::Said(text.into().into()));
    }

    /// Tells that the agent used a tool: which, on what, and whether that went well. Each is one step.
    pub fn used_tool(&self, name: impl Into<String>, about: impl Into<String>, ok: bool) {
        self.tell(Act::UsedTool {
            name: name.into().into(),
            about: about.into().into(),
            ok,
        });
    }

    /// Tells that the agent was not allowed something.
    pub fn denied(&self, what: impl Into<String>) {
        self.tell(Act::Denied(what.into().into()));
    }

    /// Tells that so many dollars more were spent. They count against the loop's budget.
    pub fn cost(&self, usd: f64) {
        self.tell(Act::Cost(usd));
    }

    fn tell(&self, act: Act<'static>) {
        self.send(Note::Act(act));
    }

    fn send(&self, note: Note) {
        // A runner that has given this function up hears no more.
        if self.notes.send(note).is_ok() {
            self.bell.ring();
        }
    }
}

/// What comes out of the thread.
enum Note {
    /// The agent did something.
    Act(Act<'static>),
    /// The function has returned, or panicked.
    Over(Exit),
}

/// What a turn is made of.
pub struct Invitation {
    /// What the agent is told.
    pub prompt: String,
    /// Which iteration this is.
    pub iteration: u32,
    /// Where the work is.
    pub workspace: PathBuf,
    /// Where markers go.
    pub task_dir: PathBuf,
}

/// A call under way.
pub(crate) struct Call {
    notes: Receiver<Note>,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    exit: Option<Exit>,
}

impl Call {
    pub(crate) fn begin(
        function: &Function,
        bell: &Arc<Bell>,
        invitation: Invitation,
    ) -> io::Result<Self> {
        let (sender, notes) = sync_channel(UNHEARD);
        let cancelled = Arc::new(AtomicBool::new(false));
        let Invitation {
            prompt,
            iteration,
            workspace,
            task_dir,
        } = invitation;
        let (mine, bell) = (cancelled.clone(), bell.clone());
        let turn = Turn {
            prompt,
            iteration,
            workspace,
            task_dir,
            cancelled: mine,
            notes: sender,
            bell,
        };
        let function = function.clone();
        let thread = std::thread::Builder::new()
            .name(format!("ralph iteration {iteration}"))
            .spawn(move || run(&function, &turn))?;
        Ok(Self {
            notes,
            cancelled,
            thread: Some(thread),
            exit: None,
        })
    }

    /// What the function has done, as far as it had told when the bell was last cleared: whatever is told later
    /// rings again, so a function that never falls silent does not keep its runner.
    pub(crate) fn acts(&mut self) -> Vec<Act<'static>> {
        let mut acts = Vec::new();
        for _ in 0..UNHEARD {
            match self.notes.try_recv() {
                Ok(Note::Act(act)) => acts.push(act),
                Ok(Note::Over(exit)) => self.over(exit),
                Err(TryRecvError::Disconnected) if self.exit.is_none() => {
                    acts.push(Act::Failed {
                        why: "the agent's function ended without a word".into(),
                        reason: None,
                    });
                    self.over(Exit::code(1));
                }
                Err(_) => break,
            }
        }
        acts
    }

    fn over(&mut self, exit: Exit) {
        self.exit = Some(exit);
        // It was its last word: nothing of the function is left to wait for.
        let _ = self.thread.take().map(JoinHandle::join);
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }
}

fn run(function: &Function, turn: &Turn) {
    let answer = catch_unwind(AssertUnwindSafe(|| {
        // A panic of an earlier iteration leaves what the function has captured as it is, and no more.
        let mut function = function.lock().unwrap_or_else(PoisonError::into_inner);
        function(turn)
    }));
    let answer = answer.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(format!(
            "the agent's function panicked: {}",
            words.unwrap_or("it does not say why")
        ))
    });
    let (last, code) = match answer {
        Ok(words) => (Act::Finished(words.into()), 0),
        Err(why) => (
            Act::Failed {
                why: why.into(),
                reason: None,
            },
            1,
        ),
    };
    turn.tell(last);
    turn.send(Note::Over(Exit::code(code)));
}
