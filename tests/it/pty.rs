//! A terminal for tests: records every byte that a program writes, and what a user would see.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A program that writes to a terminal.
pub(crate) struct Screen {
    child: Child,
    controller: Arc<OwnedFd>,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    /// Starts a command on a terminal with this many columns.
    pub(crate) fn start(command: Command, columns: u16) -> Self {
        Self::start_with(command, columns, false)
    }

    /// Like [`Screen::start`], with the terminal as standard input too.
    pub(crate) fn start_with_keys(command: Command, columns: u16) -> Self {
        Self::start_with(command, columns, true)
    }

    fn start_with(mut command: Command, columns: u16, keys: bool) -> Self {
        let (controller, terminal) = open_terminal(columns, 24);
        let controller = Arc::new(controller);
        command.stdin(if keys {
            terminal.try_clone().unwrap().into()
        } else {
            Stdio::null()
        });
        command
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal);
        let child = command.spawn().expect("the binary starts");
        // Only the child has the terminal open now, so reading ends when the child and its children
        // have exited.
        drop(command);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut source, sink) = (File::from(controller.try_clone().unwrap()), seen.clone());
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self {
            child,
            controller,
            seen,
            reader: Some(reader),
        }
    }

    /// Changes the terminal's width.
    pub(crate) fn resize(&self, columns: u16) {
        resize(&self.controller, columns, 24);
    }

    /// Types keys.
    pub(crate) fn type_in(&self, keys: &[u8]) {
        rustix::io::write(&self.controller, keys).expect("a terminal takes keys");
    }

    /// Returns everything written so far.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until the program exits. Returns the exit code and everything it has written.
    pub(crate) fn end(mut self) -> (i32, Vec<u8>) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.take().unwrap().join().unwrap();
        (code, self.seen.lock().unwrap().clone())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a terminal. Returns the end that its user has, and the end for a program.
pub(crate) fn open_terminal(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let controller =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&controller)
        .and_then(|()| unlockpt(&controller))
        .expect("a terminal");
    let name = ptsname(&controller, Vec::new()).expect("a terminal's name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(&name, flags, Mode::empty()).expect("a terminal");
    resize(&controller, columns, rows);
    (controller, terminal)
}

fn resize(controller: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(controller, size).expect("a terminal has a size");
}

/// Returns every escape sequence in a text, without the escape character.
pub(crate) fn escapes(text: &str) -> Vec<String> {
    let sequence = |rest: &str| {
        let end = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(rest.len(), |at| at + 1);
        rest[..end].to_owned()
    };
    text.split('\x1b').skip(1).map(sequence).collect()
}

/// Returns the rows that a user sees at the end, on a terminal that is wide enough.
pub(crate) fn rows(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut rows = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                row += 1;
                rows.resize(rows.len().max(row + 1), Vec::new());
            }
            '\r' => column = 0,
            '\x1b' => {
                let mut sequence = String::new();
                while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                    sequence.extend([chars.next().expect("a sequence ends")]);
                }
                match sequence.as_str() {
                    "[1A" => row -= 1,
                    "[2K" => rows[row].clear(),
                    // Whether pasted text is marked.
                    "[?2004h" | "[?2004l" => {}
                    _ => assert!(sequence.ends_with('m'), "{sequence:?}"),
                }
            }
            c => {
                let cells: &mut Vec<char> = &mut rows[row];
                cells.resize(cells.len().max(column + 1), ' ');
                cells[column] = c;
                column += 1;
            }
        }
    }
    rows.into_iter()
        .map(|row| row.into_iter().collect::<String>().trim_end().to_owned())
        .collect()
}
