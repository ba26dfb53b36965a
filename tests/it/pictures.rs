//! The pictures in README.md. `just pictures` draws them again.

mod terminal_svg;

use std::fs;
use std::path::{Path, PathBuf};

/// The largest picture, in bytes.
const SIZE_MAX: u64 = 150_000;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures")
}

#[test]
fn the_readme_shows_small_pictures_with_descriptions() {
    let readme = fs::read_to_string(directory().join("../../README.md")).unwrap();
    let mut shown = Vec::new();
    for part in readme.split("![").skip(1) {
        let (alt, rest) = part.split_once("](").unwrap();
        let path = rest.split_once(')').unwrap().0;
        let Some(name) = path.strip_prefix("docs/pictures/") else {
            panic!("{path} is elsewhere");
        };
        assert!(alt.len() > 40, "{path} is described by {alt:?}");
        let size = fs::metadata(directory().join(name)).expect(path).len();
        assert!(size < SIZE_MAX, "{path} has {size} bytes");
        shown.push(name.to_owned());
    }
    for kind in ["run", "top", "ui", "report"] {
        let is_kind = |name: &String| name.split('.').next() == Some(kind);
        assert!(shown.iter().any(is_kind), "no picture of `ralph {kind}`");
    }
    let files = fs::read_dir(directory()).unwrap().flatten();
    for file in files {
        let name = file.file_name().into_string().unwrap();
        assert!(shown.contains(&name), "README.md does not show {name}");
    }
}

mod needs_chromium {
    use super::directory;
    use super::terminal_svg::svg;
    use crate::kit::{Test, until};
    use crate::night::MORNING_MS;
    use crate::web::Page;
    use crate::web::browser::Browser;
    use std::fs;

    /// Prints what Claude Code prints: two iterations, and the start of a third, which waits for the
    /// file `go`.
    const CLAUDE: &str = include_str!("pictures/claude.sh");

    /// A program in a tmux window, with colors.
    struct Terminal<'a> {
        test: &'a Test,
    }

    impl<'a> Terminal<'a> {
        fn start(test: &'a Test, (columns, rows): (u16, u16), line: &str) -> Self {
            let terminal = Self { test };
            let (columns, rows) = (columns.to_string(), rows.to_string());
            let options = ["status off", "default-terminal tmux-256color"];
            let mut args = vec!["start-server"];
            for option in options {
                args.extend([";", "set-option", "-g"]);
                args.extend(option.split(' '));
            }
            let size = ["-x", &columns, "-y", &rows];
            args.extend([";", "new-session", "-d", "-s", "w"]);
            args.extend(size);
            args.push(line);
            terminal.tmux(&args);
            terminal
        }

        fn tmux(&self, args: &[&str]) -> String {
            let mut command = self.test.command("tmux");
            command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
            command.env("RALPH_TEST_NOW", MORNING_MS.to_string());
            command.args(["-u", "-L", "picture", "-f", "/dev/null"]);
            let output = command.args(args).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        }

        fn until_shows(&self, text: &str) {
            until(&format!("{text:?} on the screen"), || {
                let screen = self.tmux(&["capture-pane", "-p", "-t", "w"]);
                screen.contains(text)
            });
        }

        fn press(&self, key: &str) {
            self.tmux(&["send-keys", "-t", "w", key]);
        }

        /// Returns the screen with its escape sequences, once it no longer changes.
        fn screen(&self) -> String {
            let capture = || self.tmux(&["capture-pane", "-e", "-p", "-t", "w"]);
            let (mut last, mut same) = (capture(), 0);
            until("a screen that does not change", || {
                let before = std::mem::replace(&mut last, capture());
                same = if before == last { same + 1 } else { 0 };
                same >= 5
            });
            self.test
                .without_root(&last)
                .replace("/test/home", "~")
                .replace("/test", "~")
        }
    }

    impl Drop for Terminal<'_> {
        fn drop(&mut self) {
            self.tmux(&["kill-server"]);
        }
    }

    #[test]
    #[ignore = "writes docs/pictures, for `just pictures`"]
    fn draw_the_console() {
        let check = "#!/bin/sh\nif grep -q 'read -r line' total.sh; then echo 'ok: 12 invoices add up'; exit; fi\necho 'test one_line ... ok'\necho 'test empty ... ok'\necho 'test many_lines ... FAILED: expected 20.60, got 5.00'\nexit 1\n";
        let test = Test::git()
            .on_path("claude", CLAUDE)
            .file("total.sh", "#!/bin/sh\nhead -n 1\n")
            .program("test.sh", check)
            .program("lint.sh", "#!/bin/sh\necho 'no findings'\n");
        test.sh("git add -A && git commit -qm 'An invoice'");
        let line = format!(
            "exec '{}' run 'Invoices with several lines must add up.' --name totals --agent claude \
             --check ./test.sh --check ./lint.sh --max-cost 5 -m 12 --trust",
            env!("CARGO_BIN_EXE_ralph")
        );
        let terminal = Terminal::start(&test, (104, 34), &line);
        terminal.until_shows("now the sum of all lines");
        let screen = terminal.tmux(&["capture-pane", "-e", "-p", "-t", "w"]);
        let screen = test.without_root(&screen);
        fs::write(directory().join("run.svg"), svg("ralph run", &screen)).unwrap();
        test.write("go", "");
        until("the end of the loop", || {
            test.status("totals")["status"] != "running"
        });
    }

    #[test]
    #[ignore = "writes docs/pictures, for `just pictures`"]
    fn draw_top() {
        let test = Test::night();
        let line = format!("exec '{}' top", env!("CARGO_BIN_EXE_ralph"));
        let terminal = Terminal::start(&test, (104, 22), &line);
        terminal.until_shows("totals");
        terminal.press("/");
        for key in ["t", "o", "t", "Enter", "Enter"] {
            terminal.press(key);
        }
        terminal.until_shows("iteration 30");
        terminal.press("2");
        terminal.until_shows("whole iteration");
        for _ in 17..30 {
            terminal.press("Left");
        }
        terminal.until_shows("iteration 17 · ");
        let screen = terminal.screen();
        fs::write(directory().join("top.svg"), svg("ralph top", &screen)).unwrap();
    }

    #[test]
    #[ignore = "writes docs/pictures, for `just pictures`"]
    fn draw_the_pages() {
        let test = Test::night();
        let page = Page::start(&test, &["--control"]);
        let mut browser = Browser::start(&test);
        browser.set_clock(MORNING_MS);
        browser.resize(1120, 850);
        browser.use_scheme("light");
        browser.open(&page.url);
        browser.js("location.hash = '#/loop/totals/checks'");
        browser.until("document.querySelectorAll('td.heat').length > 29 && document.querySelectorAll('.file').length > 0");
        fs::write(directory().join("ui.png"), browser.screenshot()).unwrap();
        let report = test.root().join("links.html");
        let report = report.display().to_string();
        let written = test.night_command(&["report", "links", "-o", &report]);
        test.start_command(written).end().exits(0);
        // The picture shows no path of this machine.
        let html = test.without_root(&fs::read_to_string(&report).unwrap());
        let html = html
            .replace("/test/home", "~")
            .replace("/test/state", "~/.local/state/ralph");
        fs::write(&report, html).unwrap();
        browser.resize(1120, 1240);
        browser.navigate(&format!("file://{report}"));
        browser.until("document.readyState === 'complete' && document.querySelector('h1')");
        fs::write(directory().join("report.png"), browser.screenshot()).unwrap();
    }
}
