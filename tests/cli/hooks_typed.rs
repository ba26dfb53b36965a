//! A loop in an interactive session on a terminal: what the screen shows while a user types.

use crate::hooks::{CLAUDE, CODEX, Client, OLD_CLAUDE, Session, done};
use crate::kit::until_within;
use crate::model::say;
use crate::stage::PATIENCE;
use std::cell::Cell;
use std::process::Command;
use std::time::{Duration, Instant};

crate::in_sessions! {
    claude CLAUDE: typed cancelled;
    old_claude OLD_CLAUDE: typed cancelled;
    codex CODEX: typed cancelled;
}

/// The delay before a key that had no effect is pressed again.
const KEY_RETRY: Duration = Duration::from_secs(3);
/// The maximum time for a client to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A tmux window that runs the client.
struct Window<'s> {
    session: &'s Session,
}

impl<'s> Window<'s> {
    /// Opens a window and waits until the client is ready for typing.
    fn open(session: &'s Session) -> Self {
        let stage = &session.stage;
        (session.client.prepare)(stage);
        let window = Self { session };
        let mut tmux = window.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "140",
            "-y",
            "50",
        ]);
        tmux.arg(stage.agent().get_program())
            .args(session.client.typed);
        assert!(tmux.status().unwrap().success(), "tmux starts");
        window.shows(session.client.ready);
        window
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = self.session.stage.command("tmux");
        tmux.args(["-L", "ralph"]).args(args);
        tmux
    }

    /// Returns everything the window has shown.
    fn text(&self) -> String {
        let out = self
            .tmux(&["capture-pane", "-p", "-J", "-S", "-"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        self.until(text, || ());
    }

    /// Waits until the window shows `text`, calling `between` in the meantime.
    #[track_caller]
    fn until(&self, text: &str, between: impl Fn()) {
        let begun = Instant::now();
        while !self.text().contains(text) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{text:?} is not in\n{}",
                self.text()
            );
            between();
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn press(&self, args: &[&str]) {
        assert!(
            self.tmux(&[&["send-keys"], args].concat())
                .status()
                .unwrap()
                .success()
        );
    }

    /// Types a line and presses Enter until `answer` appears: a popup may take an Enter for itself.
    #[track_caller]
    fn types(&self, line: &str, answer: &str) {
        self.press(&["-l", line]);
        self.shows(line);
        let pressed = Cell::new(None);
        self.until(answer, || {
            if pressed
                .get()
                .is_none_or(|since: Instant| since.elapsed() > KEY_RETRY)
            {
                self.press(&["Enter"]);
                pressed.set(Some(Instant::now()));
            }
        });
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
        // A client takes a while to exit after its terminal is closed.
        let begun = Instant::now();
        while begun.elapsed() < EXIT_TIMEOUT && !self.session.stage.test.survivors().is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The screen shows that the session is blocked, continues, and stops at its promise.
fn typed(client: &'static Client) {
    let session = Session::with(client, []);
    let gate = session.stage.test.root().join("sign");
    session.stage.model.add([
        say("Answer one."),
        say("Answer two.").when_exists(&gate),
        done(),
    ]);
    let window = Window::open(&session);
    let line = format!(
        "{} Build a todo API --completion-promise DONE",
        client.command
    );
    window.types(&line, "ralph loop activated");
    window.shows("Answer one.");
    window.shows("ralph iteration 2/25");
    let known = session.ralph(&["ls"]).exits(0).says("running");
    assert!(known.out.contains("2/25"), "{}", known.out);
    std::fs::write(gate, "").unwrap();
    window.shows("ralph: detected <promise>DONE</promise> after 3 iterations");
    session.assert_ended("done", "completed", 3);
    session.stage.model.assert_played(3);
}

/// The user interrupts the agent and cancels the loop.
fn cancelled(client: &'static Client) {
    let session = Session::with(client, []);
    let never = session.stage.test.root().join("never");
    session
        .stage
        .model
        .add([say("Answer one."), say("Answer two.").when_exists(&never)]);
    let window = Window::open(&session);
    window.types(
        &format!("{} Build a todo API", client.command),
        "ralph loop activated",
    );
    until_within(PATIENCE, "the second iteration", || {
        session.stage.model.asked().len() == 2
    });
    window.shows("ralph iteration 2/25");
    window.press(&["Escape"]);
    window.shows("nterrupted");
    let word = client.command.replace("ralph-loop", "cancel-ralph");
    window.types(&word, "loop canceled at iteration 2");
    session.assert_ended("stopped", "stopped", 2);
    session.stage.model.assert_played(2);
}
