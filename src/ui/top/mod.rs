//! `ralph top`: all loops on one screen, and the page of each.
//!
//! A pure model (`model`), pure drawing (`draw`), and a thread that reads files (`reader`); this
//! file connects them with the terminal.

mod activity;
mod code;
mod draw;
mod input;
mod model;
mod page_data;
mod reader;
mod summary;
mod terminal;
mod theme;
mod tracker;

use crate::lifecycle::watcher::{ThreadWaker, was_woken};
use crate::store::StateDir;
use crate::ui::age::now_ms;
use input::InputDecoder;
use model::{SteerCommand, TopEffect, TopEvent, TopModel};
use ratatui::Terminal;
use reader::LoopReader;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use terminal::{AnsiBackend, TerminalSession};
use theme::Theme;

/// How long a lone escape may be the beginning of a sequence.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(40);
/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(40);
/// How often the clock is drawn if nothing else happens.
const CLOCK: Duration = Duration::from_secs(2);
/// The most bytes of a command's output that are shown.
const OUTPUT_MAX: usize = 4000;

/// Shows all loops, or the page of the loop `name`, until the user quits. `is_archived` says where
/// the loop is.
pub(crate) fn run(state_dir: StateDir, name: Option<&str>, is_archived: bool) -> io::Result<()> {
    let (woken, waker) = ThreadWaker::new()?;
    let reader = LoopReader::start(state_dir.clone(), waker.try_clone()?)?;
    let signals = Signals::listen()?;
    let (sender, ended) = channel();
    let session = TerminalSession::open()?;
    let mut model = TopModel::new(crate::ui::tty::size(), now_ms());
    if let Some(name) = name {
        model.open(name, is_archived);
    }
    let mut program = TopProgram {
        state_dir,
        terminal: Terminal::new(AnsiBackend::open())?,
        session,
        model,
        theme: Theme::detect(),
        decoder: InputDecoder::default(),
        reader,
        signals,
        woken,
        waker,
        sender,
        ended,
    };
    program.run()
}

/// A command that ended: its arguments, what it printed, and whether it succeeded.
type EndedCommand = (Vec<String>, String, bool);

struct TopProgram {
    state_dir: StateDir,
    terminal: Terminal<AnsiBackend>,
    session: TerminalSession,
    model: TopModel,
    theme: Theme,
    decoder: InputDecoder,
    reader: LoopReader,
    signals: Signals,
    /// Readable when the reader or a command has something new.
    woken: UnixStream,
    waker: ThreadWaker,
    sender: Sender<EndedCommand>,
    ended: Receiver<EndedCommand>,
}

impl TopProgram {
    fn run(&mut self) -> io::Result<()> {
        let result = self.run_until_quit();
        self.terminal.backend_mut().finish();
        result
    }

    fn run_until_quit(&mut self) -> io::Result<()> {
        let (mut is_dirty, mut drawn_at) = (true, None::<Instant>);
        loop {
            let next_frame =
                drawn_at.map_or(Duration::ZERO, |at| FRAME.saturating_sub(at.elapsed()));
            let is_blocked = self.terminal.backend().blocked().is_some();
            if is_dirty && next_frame.is_zero() && !is_blocked {
                self.reader.set_interest(self.model.interest());
                self.draw()?;
                (is_dirty, drawn_at) = (false, Some(Instant::now()));
            }
            let timeout = match (is_dirty, self.decoder.is_pending()) {
                // The terminal has not taken the last frame yet.
                _ if is_blocked => CLOCK,
                (true, _) => next_frame,
                (_, true) => ESCAPE_TIMEOUT,
                _ => CLOCK,
            };
            let (has_input, is_timeout) = self.wait(timeout)?;
            self.terminal.backend_mut().write_pending()?;
            let mut effects = Vec::new();
            let mut events = vec![TopEvent::Clock(now_ms())];
            if has_input {
                let mut bytes = [0; 4096];
                let count = rustix::io::read(io::stdin(), &mut bytes)?;
                if count == 0 {
                    return Ok(());
                }
                let inputs = self.decoder.feed(&bytes[..count]);
                events.extend(inputs.into_iter().map(TopEvent::Input));
            } else if is_timeout && self.decoder.is_pending() {
                events.extend(self.decoder.flush().into_iter().map(TopEvent::Input));
            }
            if self.signals.take_end() {
                return Ok(());
            }
            if self.signals.take_resize() {
                let (columns, rows) = crate::ui::tty::size();
                events.push(TopEvent::Resized(columns, rows));
            }
            if was_woken(&self.woken) {
                events.extend(self.news());
            }
            is_dirty |= is_timeout || events.len() > 1;
            for event in events {
                effects.extend(self.model.update(event));
            }
            for effect in effects {
                if self.perform(effect)? {
                    return Ok(());
                }
            }
        }
    }

    /// Waits for input. Returns whether there is any on standard input, and whether time is up.
    fn wait(&self, timeout: Duration) -> io::Result<(bool, bool)> {
        let stdin = io::stdin();
        let mut fds = vec![
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.pipe.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN),
        ];
        let blocked = self.terminal.backend().blocked();
        fds.extend(blocked.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        match poll(&mut fds, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(count) => Ok((!fds[0].revents().is_empty(), count == 0)),
            Err(rustix::io::Errno::INTR) => Ok((false, false)),
            Err(error) => Err(error.into()),
        }
    }

    fn news(&self) -> Vec<TopEvent> {
        let news = self.reader.take_news();
        let loops = news.loops.map(TopEvent::Loops);
        let pages = news.page.into_iter();
        let pages = pages.map(|(name, update)| TopEvent::Page(name, update));
        let ended = self.ended.try_iter();
        let ended = ended.map(|(args, output, success)| TopEvent::CommandEnded {
            args,
            output,
            success,
        });
        loops.into_iter().chain(pages).chain(ended).collect()
    }

    fn draw(&mut self) -> io::Result<()> {
        let (model, theme) = (&self.model, self.theme);
        self.terminal.draw(|frame| {
            let area = frame.area();
            // The terminal was just resized, and the signal that says so is on its way.
            if (area.width, area.height) != model.size {
                return;
            }
            if let Some(cursor) = draw::draw(model, theme, area, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        Ok(())
    }

    /// Carries out an effect. Returns whether to quit.
    fn perform(&mut self, effect: TopEffect) -> io::Result<bool> {
        match effect {
            TopEffect::Quit => return Ok(true),
            TopEffect::Redraw => self.terminal.clear()?,
            TopEffect::Suspend => {
                self.terminal.backend_mut().finish();
                self.session.leave();
                let own = rustix::process::getpid();
                let _ = rustix::process::kill_process(own, rustix::process::Signal::TSTP);
                self.use_terminal_again()?;
            }
            TopEffect::Run(command) if command.takes_terminal => self.hand_over(&command)?,
            TopEffect::OpenReport(name) => self.run_in_background(self.report(&name)),
            TopEffect::Run(command) => self.run_in_background(command.args),
        }
        Ok(false)
    }

    /// Returns the command that opens a loop's report. It is written to the loop's directory, because
    /// the current one may be a repository.
    fn report(&self, name: &str) -> Vec<String> {
        let dir = self.state_dir.find_loop(name).ok();
        let dir = dir.or_else(|| self.state_dir.find_archived(name));
        let mut args = vec!["report".to_owned(), name.to_owned(), "--open".to_owned()];
        if let Some(dir) = dir {
            let path = dir.path().join("report.html");
            args.extend(["-o".to_owned(), path.display().to_string()]);
        }
        args
    }

    /// Runs a command on the terminal, and shows the loops again when it has ended.
    fn hand_over(&mut self, command: &SteerCommand) -> io::Result<()> {
        self.terminal.backend_mut().finish();
        self.session.leave();
        let status = ralph().and_then(|mut ralph| ralph.args(&command.args).status());
        let output = match &status {
            Ok(status) if status.success() => String::new(),
            Ok(_) => {
                // Let the user read why it failed.
                crate::ui::print::note("press Enter to return to `ralph top`");
                let _ = io::stdin().read_line(&mut String::new());
                String::new()
            }
            Err(error) => error.to_string(),
        };
        self.signals.forget_interrupt();
        self.use_terminal_again()?;
        let success = status.is_ok_and(|status| status.success());
        let _ = self.sender.send((command.args.clone(), output, success));
        self.waker.wake();
        Ok(())
    }

    fn use_terminal_again(&mut self) -> io::Result<()> {
        self.session.enter()?;
        self.terminal.clear()?;
        let (columns, rows) = crate::ui::tty::size();
        self.model.update(TopEvent::Resized(columns, rows));
        self.draw()
    }

    /// Runs a command without the terminal, and shows the first line that it prints.
    fn run_in_background(&self, args: Vec<String>) {
        let (sender, waker) = (self.sender.clone(), self.waker.try_clone());
        let work = move || {
            let output = ralph().and_then(|mut ralph| {
                let ralph = ralph.args(&args).stdin(Stdio::null());
                ralph.env("NO_COLOR", "1").output()
            });
            let (text, success) = match output {
                Ok(output) => {
                    let bytes = if output.status.success() {
                        [output.stderr, output.stdout].concat()
                    } else {
                        output.stderr
                    };
                    let text = &bytes[..bytes.len().min(OUTPUT_MAX)];
                    let text = String::from_utf8_lossy(text).into_owned();
                    (text, output.status.success())
                }
                Err(error) => (error.to_string(), false),
            };
            let _ = sender.send((args, text, success));
            if let Ok(waker) = waker {
                waker.wake();
            }
        };
        // Without a thread, the command does not run, and its message stays.
        let _ = std::thread::Builder::new().spawn(work);
    }
}

/// Returns this program, which refuses the same requests as on a command line.
fn ralph() -> io::Result<Command> {
    std::env::current_exe().map(Command::new)
}

/// The signals that this program reacts to.
struct Signals {
    pipe: UnixStream,
    resized: Arc<AtomicBool>,
    /// Ctrl-C, while a command had the terminal.
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let (resized, interrupted, ended) = (Arc::default(), Arc::default(), Arc::default());
        for (flag, signals) in [
            (&resized, &[SIGWINCH, SIGCONT][..]),
            (&interrupted, &[SIGINT][..]),
            (&ended, &[SIGTERM, SIGHUP][..]),
        ] {
            for signal in signals {
                // Set the flag before the pipe is readable.
                signal_hook::flag::register(*signal, Arc::clone(flag))?;
                signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
            }
        }
        Ok(Self {
            pipe,
            resized,
            interrupted,
            ended,
        })
    }

    fn take_resize(&self) -> bool {
        was_woken(&self.pipe);
        self.resized.swap(false, Ordering::Relaxed)
    }

    fn take_end(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    /// Ignores a Ctrl-C that was meant for a command.
    fn forget_interrupt(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
    }
}
