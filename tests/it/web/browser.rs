//! Drives Chromium over its debugging pipe.

use crate::kit::{Test, until};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

/// Flags with which Chromium runs without a screen, as root, and talks to no other server.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-crash-reporter",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

/// A browser with one tab.
pub(crate) struct Browser {
    child: Child,
    input: File,
    output: File,
    /// What was read and not yet used.
    read: Vec<u8>,
    session: Option<String>,
    /// The width of the window that was asked for, in pixels.
    pub(crate) width: u32,
    last_id: u64,
    /// Errors of scripts and refused requests.
    pub(crate) errors: Vec<String>,
    /// The addresses of all requests.
    pub(crate) requests: Vec<String>,
}

impl Browser {
    pub(crate) fn start(test: &Test) -> Self {
        Self::start_with(test, &[])
    }

    pub(crate) fn start_with(test: &Test, flags: &[&str]) -> Self {
        let pipes = ["to-browser", "from-browser"].map(|name| test.root().join(name));
        let mut make = test.command("mkfifo");
        assert!(make.args(&pipes).status().unwrap().success());
        // A shell gives the pipes the numbers that Chromium expects.
        let mut command = test.command("sh");
        command
            .args([
                "-c",
                "in=$1 out=$2; shift 2; exec chromium \"$@\" 3<\"$in\" 4>\"$out\"",
                "sh",
            ])
            .args(&pipes)
            .args(FLAGS)
            .args(flags)
            .arg(format!(
                "--user-data-dir={}",
                test.root().join("profile").display()
            ))
            .arg("about:blank");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("a shell");
        let input = File::options().write(true).open(&pipes[0]).unwrap();
        let output = File::open(&pipes[1]).unwrap();
        let mut browser = Self {
            child,
            input,
            output,
            read: Vec::new(),
            session: None,
            width: 800,
            last_id: 0,
            errors: Vec::new(),
            requests: Vec::new(),
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.input, "{message}\0").unwrap();
        loop {
            let message = self.receive();
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == 0) {
                let rest = self.read.split_off(end + 1);
                let message = std::mem::replace(&mut self.read, rest);
                return serde_json::from_slice(&message[..end]).unwrap();
            }
            let mut buffer = vec![0; 1 << 16];
            let count = self.output.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the browser exited");
            self.read.extend_from_slice(&buffer[..count]);
        }
    }

    fn note(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(params.to_string()),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.requests
                    .extend(params["request"]["url"].as_str().map(str::to_owned));
            }
            // A page that wants to ask something would wait forever.
            Some("Page.javascriptDialogOpening") => {
                self.errors.push(params["message"].to_string());
                let answer = json!({"id": 0, "sessionId": self.session, "method": "Page.handleJavaScriptDialog", "params": {"accept": true}});
                write!(self.input, "{answer}\0").unwrap();
            }
            _ => {}
        }
    }

    /// Evaluates an expression, and waits for it if it is a promise.
    #[track_caller]
    pub(crate) fn js(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", &params);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&mut self, expression: &str) {
        let mut last = Value::Null;
        let begun = std::time::Instant::now();
        until(expression, || {
            last = self.js(&format!(
                "(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"
            ));
            let is_late = begun.elapsed() > std::time::Duration::from_secs(30);
            assert!(
                !is_late,
                "{expression} is not true: {}",
                self.js("document.body.innerText.slice(0, 3000)")
            );
            last == true
        });
    }

    pub(crate) fn navigate(&mut self, url: &str) {
        self.call("Page.navigate", &json!({"url": url}));
    }

    /// Makes later pages believe that it is this time now, in milliseconds since 1970.
    pub(crate) fn set_clock(&mut self, ms: i64) {
        let source = format!(
            "{{ const from = Date.now(), now = Date.now.bind(Date); Date.now = () => {ms} + now() - from; }}"
        );
        self.call(
            "Page.addScriptToEvaluateOnNewDocument",
            &json!({"source": source}),
        );
    }

    /// Returns what the window shows, as PNG.
    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        decode_base64(shot["data"].as_str().unwrap())
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.navigate(url);
        self.until(
            "document.readyState === 'complete' && document.querySelector('.tiles, .loop-head')",
        );
    }

    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        self.width = width;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    pub(crate) fn use_scheme(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Presses a key, given by its name: a character, `Tab`, `Enter`, `ArrowRight` or `Escape`.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            "Escape" => (27, None),
            "ArrowLeft" => (37, None),
            "ArrowRight" => (39, None),
            key => (u32::from(key.as_bytes()[0].to_ascii_uppercase()), Some(key)),
        };
        let mut event = json!({"type": if text.is_some() { "keyDown" } else { "rawKeyDown" }, "key": key, "windowsVirtualKeyCode": code});
        if let Some(text) = text {
            event["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", &event);
        let event = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", &event);
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |byte: u8| DIGITS.iter().position(|one| *one == byte);
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_usize, 0);
    for value in text.bytes().filter_map(digit) {
        (bits, count) = ((bits << 6 | value) & 0xffff, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ = write!(
            self.input,
            "{}\0",
            json!({"id": 0, "method": "Browser.close"})
        );
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_secs(10) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
