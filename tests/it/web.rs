//! `ralph ui` from outside: over a socket here, and in a real browser in `web/pages.rs`.

pub(crate) mod browser;
mod pages;

use crate::kit::{Live, Test, until};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

/// A running `ralph ui`.
pub(crate) struct Page {
    pub(crate) live: Live,
    pub(crate) url: String,
    port: u16,
    token: String,
}

/// An answer of the server.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    #[track_caller]
    fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        self
    }
}

impl Page {
    pub(crate) fn start(test: &Test, flags: &[&str]) -> Self {
        let live = test.start(&[&["ui", "--port", "0"], flags].concat());
        live.until_out("Ctrl-C");
        let url = live.out().lines().next().unwrap().to_owned();
        let address = url.split('/').nth(2).unwrap();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        let token = url.split("token=").nth(1).unwrap().to_owned();
        Self {
            live,
            url,
            port,
            token,
        }
    }

    /// Sends a request as it is given, with one more header that closes the connection.
    fn raw(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        write!(stream, "{head}Connection: close\r\n\r\n{body}").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
        Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn send(&self, request: &str, headers: &[&str], body: &str) -> Answer {
        let mut head = format!("{request} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            let _ = write!(head, "Host: 127.0.0.1:{}\r\n", self.port);
        }
        for header in headers {
            let _ = write!(head, "{header}\r\n");
        }
        if !body.is_empty() {
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        self.raw(&head, body)
    }

    fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.send(&format!("GET {path}"), headers, "")
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Returns what the API answers to a script with the token.
    fn api(&self, path: &str) -> Value {
        self.get(&format!("/api/{path}"), &[&self.bearer()])
            .is(200)
            .json()
    }

    /// Enters with the token, as a browser does. Returns the page's path and the cookie.
    fn enter(&self) -> (String, String) {
        let answer = self.get(&format!("/?token={}", self.token), &[]).is(303);
        let base = answer.header("location").unwrap().to_owned();
        let cookie = answer.header("set-cookie").unwrap();
        (
            base,
            format!("Cookie: {}", cookie.split(';').next().unwrap()),
        )
    }

    fn origin(&self) -> String {
        format!("Origin: http://127.0.0.1:{}", self.port)
    }
}

#[test]
fn the_token_becomes_a_cookie_and_leaves_the_address() {
    let test = Test::new();
    let page = Page::start(&test, &[]);
    let answer = page.get(&format!("/?token={}", page.token), &[]).is(303);
    let base = answer.header("location").unwrap();
    assert!(!base.contains(&page.token) && base.starts_with("/v/") && base.len() > 32);
    let cookie = answer.header("set-cookie").unwrap();
    let path = format!("Path={}", base.trim_end_matches('/'));
    for part in ["HttpOnly", "SameSite=Strict", &path] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let (base, cookie) = page.enter();
    assert!(
        page.get(&base, &[])
            .is(200)
            .body
            .contains("<title>ralph</title>")
    );
    let loops = page
        .get(&format!("{base}api/loops"), &[&cookie])
        .is(200)
        .json();
    assert_eq!(
        (&loops["control"], &loops["loops"]),
        (&false.into(), &serde_json::json!([]))
    );
    // A second server has another token, another path and another cookie.
    let other = Page::start(&test, &[]);
    assert_ne!(other.token, page.token);
    other.get(&format!("{base}api/loops"), &[&cookie]).is(404);
    let (base, _) = other.enter();
    other.get(&format!("{base}api/loops"), &[&cookie]).is(401);
}

#[test]
fn without_the_token_there_is_nothing() {
    let test = Test::night();
    let page = Page::start(&test, &["--control"]);
    let (base, cookie) = page.enter();
    let half = &page.token[..16];
    for path in [
        "/",
        "/?token=",
        "/?token=x",
        &format!("/?token={half}"),
        &format!("/?token={}0", page.token),
    ] {
        page.get(path, &[]).is(401);
    }
    let api = [
        "loops",
        "loops?archived",
        "events",
        "loops/totals",
        "loops/totals/events",
        "loops/totals/diff",
        "loops/totals/history",
        "stats",
        "loops/totals/iterations/3",
        "loops/totals/iterations/3/diff",
        "nothing",
    ];
    for path in api {
        for prefix in ["/", &base] {
            let path = format!("{prefix}api/{path}");
            for headers in [
                &[][..],
                &["Cookie: ralph=x"],
                &["Authorization: Bearer x"],
                &["Authorization: Basic x"],
            ] {
                let answer = page.get(&path, headers).is(401);
                assert!(!answer.body.contains("totals"), "{}", answer.body);
            }
        }
    }
    for action in ["pause", "resume", "stop", "say"] {
        page.send(
            &format!("POST {base}api/loops/retries/{action}"),
            &[&page.origin()],
            "x",
        )
        .is(401);
    }
    // The cookie belongs to the page's path, which is random.
    page.get(&format!("{base}api/loops"), &[&cookie]).is(200);
    for path in [
        "/v/0/",
        "/v/",
        "/app.js",
        "/index.html",
        &format!("{base}../mod.rs"),
        &format!("{base}nothing"),
    ] {
        page.get(path, &[]).is(404);
    }
}

#[test]
fn a_site_with_another_name_for_this_machine_gets_nothing() {
    let test = Test::night();
    let page = Page::start(&test, &["--control"]);
    let (base, cookie) = page.enter();
    let port = page.port;
    let paths = [
        "/".to_owned(),
        format!("/?token={}", page.token),
        base.clone(),
        format!("{base}app.js"),
        format!("{base}api/loops"),
    ];
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "192.168.1.1",
        "",
        "127.0.0.1.nip.io",
    ] {
        let header = format!("Host: {host}");
        for path in &paths {
            let answer = page.get(path, &[&header, &cookie, &page.bearer()]).is(403);
            assert!(answer.header("set-cookie").is_none() && !answer.body.contains("totals"));
        }
    }
    let twice = format!(
        "GET {base}api/loops HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n{cookie}\r\n"
    );
    assert!(matches!(page.raw(&twice, "").status, 400 | 403));
    let none = format!("GET {base}api/loops HTTP/1.0\r\n{cookie}\r\n");
    assert!(matches!(page.raw(&none, "").status, 400 | 403));
    // Behind an SSH tunnel, the port is another.
    for host in [
        "localhost:9000",
        "127.0.0.1:9000",
        "[::1]:9000",
        "localhost",
    ] {
        page.get(
            &format!("{base}api/loops"),
            &[&format!("Host: {host}"), &cookie],
        )
        .is(200);
    }
}

#[test]
fn another_sites_forms_and_scripts_get_nothing() {
    let test = Test::night();
    let page = Page::start(&test, &["--control"]);
    let (base, cookie) = page.enter();
    let before = test.read_loop("retries", "journal.jsonl");
    let stop = format!("POST {base}api/loops/retries/stop");
    let foreign = [
        "Origin: https://evil.example".to_owned(),
        "Origin: null".to_owned(),
        "Origin: ".to_owned(),
        format!("Origin: http://localhost:{}", page.port),
        format!("Origin: http://127.0.0.1:{}", page.port ^ 1),
        format!("Origin: http://127.0.0.1:{}.evil.example", page.port),
    ];
    for origin in &foreign {
        page.send(&stop, &[&cookie, origin], "x=1").is(403);
        page.get(&format!("{base}api/loops"), &[&cookie, origin])
            .is(403);
    }
    // Some old browsers send no Origin with a form.
    page.send(&stop, &[&cookie, "Content-Type: text/plain"], "x=1")
        .is(403);
    for site in ["cross-site", "same-site", "none"] {
        let site = format!("Sec-Fetch-Site: {site}");
        page.send(&stop, &[&cookie, &page.origin(), &site], "x=1")
            .is(403);
        page.get(&format!("{base}api/loops"), &[&cookie, &site])
            .is(403);
    }
    for method in ["OPTIONS", "PUT", "DELETE"] {
        let answer = page.send(
            &format!("{method} {base}api/loops/retries/stop"),
            &[&foreign[0]],
            "",
        );
        assert!(answer.status >= 400 && answer.header("access-control-allow-origin").is_none());
    }
    page.send(&format!("GET {base}api/loops/retries/stop"), &[&cookie], "")
        .is(405);
    assert_eq!(test.read_loop("retries", "journal.jsonl"), before);
    assert!(!test.loop_dir("retries").join("inbox.jsonl").exists());
}

#[test]
fn every_answer_forbids_foreign_content_frames_and_guessing() {
    let test = Test::new();
    let page = Page::start(&test, &[]);
    let (base, cookie) = page.enter();
    let answers = [
        page.get("/", &[]),
        page.get(&base, &[]),
        page.get(&format!("{base}style.css"), &[]),
        page.get(&format!("{base}api/loops"), &[&cookie]),
        page.get(&format!("{base}api/loops/x"), &[&cookie]),
        page.get("/nothing", &[]),
        page.get("/", &["Host: evil.example"]),
    ];
    for answer in &answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{}", answer.head);
        }
    }
    let html = &answers[1].body;
    assert!(
        !html.contains("style=") && !html.contains("onclick") && !html.contains("<script>"),
        "{html}"
    );
    assert!(
        !html.contains("://"),
        "nothing comes from elsewhere: {html}"
    );
}

#[test]
fn the_page_changes_nothing_without_control() {
    let test = Test::night();
    let page = Page::start(&test, &[]);
    let (base, cookie) = page.enter();
    for action in ["pause", "resume", "stop", "say"] {
        let post = format!("POST {base}api/loops/retries/{action}");
        page.send(&post, &[&cookie, &page.origin()], "hello")
            .is(403);
    }
    assert!(!test.loop_dir("retries").join("inbox.jsonl").exists());
}

#[test]
fn with_control_the_page_steers_a_loop() {
    let test = Test::new().script(
        "iteration 1\n  sh until test -f go; do sleep 0.01; done\niteration 2-\n  say two\n",
    );
    let page = Page::start(&test, &["--control"]);
    let (base, cookie) = page.enter();
    test.ralph(&[
        "spawn",
        "x",
        "--name",
        "a",
        "-m",
        "2",
        "--no-tmux",
        "--no-promise",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    let post = |action: &str, body: &str| {
        let request = format!("POST {base}api/loops/a/{action}");
        page.send(
            &request,
            &[&cookie, &page.origin(), "Sec-Fetch-Site: same-origin"],
            body,
        )
    };
    until("the agent", || {
        page.api("loops/a")["iterations"][0].is_object()
    });
    let said = post("say", "use <b>tabs</b>").is(200).json();
    assert!(
        said["message"].as_str().unwrap().contains("next prompt"),
        "{said}"
    );
    post("say", " ").is(409);
    post("pause", "").is(200);
    assert_eq!(page.api("loops/a")["summary"]["request"], "pause");
    test.write("go", "");
    until("the pause", || {
        page.api("loops/a")["summary"]["status"] == "paused"
    });
    let refused = post("pause", "").status;
    assert!(refused == 200 || refused == 409);
    post("resume", "").is(200);
    until("the end", || {
        page.api("loops/a")["summary"]["status"] == "done"
    });
    assert!(test.prompt("a", 2).contains("use <b>tabs</b>"));
    assert_eq!(
        page.api("loops/a")["iterations"].as_array().unwrap().len(),
        2
    );
    let answer = post("stop", "");
    assert!(answer.status < 500, "{}", answer.body);
    page.send(
        &format!("POST {base}api/loops/none/stop"),
        &[&cookie, &page.origin()],
        "",
    )
    .is(409);
    page.send(
        &format!("POST {base}api/loops/a/fly"),
        &[&cookie, &page.origin()],
        "",
    )
    .is(404);
    post("say", &"x".repeat(100_000)).is(413);
}

#[test]
fn a_loop_in_the_foreground_is_resumed_as_a_process_of_its_own() {
    let test = Test::new().script(
        "iteration 1\n  mark WAIT\niteration 2\n  sh until test -f go; do sleep 0.01; done\n",
    );
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "3",
        "--no-promise",
        "--agent",
        "script:../agent.script",
    ];
    test.ralph(&args);
    assert_eq!(test.status("a")["status"], "waiting");
    let page = Page::start(&test, &["--control"]);
    page.send("POST /api/loops/a/resume", &[&page.bearer()], "")
        .is(200);
    // The loop survives the page.
    page.live.signal("INT");
    page.live.end();
    test.write("go", "");
    until("the end", || test.status("a")["status"] == "done");
    assert_eq!(test.status("a")["current_iteration"], 3);
}

#[test]
fn the_recorded_night_is_complete() {
    let test = Test::night();
    let page = Page::start(&test, &[]);
    let loops = page.api("loops")["loops"].clone();
    let states: Vec<_> = loops
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["name"].as_str().unwrap(),
                one["status"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("links", "blocked"),
        ("retries", "crashed"),
        ("totals", "done"),
    ];
    assert_eq!(states, expected);
    assert_eq!(
        loops[2]["project"],
        test.root()
            .canonicalize()
            .unwrap()
            .join("home/shop")
            .display()
            .to_string()
    );
    let totals = page.api("loops/totals");
    let iterations = totals["iterations"].as_array().unwrap();
    assert_eq!(
        (iterations.len(), &iterations[29]["number"]),
        (30, &30.into())
    );
    let checks = totals["checks"].as_array().unwrap().len();
    assert!(
        checks > 0
            && iterations
                .iter()
                .all(|one| one["checks"].as_array().unwrap().len() == checks)
    );
    assert!(iterations[29]["checks"][0]["green"].as_bool().unwrap());
    let diff = page.api("loops/totals/diff");
    assert_eq!(diff["error"], Value::Null);
    assert!(
        diff["files"]
            .as_array()
            .unwrap()
            .iter()
            .any(|file| file["added"].as_u64() > Some(0))
    );
    let one = page.api("loops/totals/iterations/30");
    assert!(!one["prompt"]["text"].as_str().unwrap().is_empty());
    assert!(!one["activity"].as_array().unwrap().is_empty());
    page.api("loops/totals/iterations/30/diff");
    let bearer = page.bearer();
    for path in [
        "loops/totals/iterations/31",
        "loops/none",
        "loops/..%2f..%2fetc",
        "loops/%2e%2e",
        "loops/totals/iterations/x",
    ] {
        let code = page.get(&format!("/api/{path}"), &[&bearer]).status;
        assert!(matches!(code, 400 | 404), "{path}: {code}");
    }
}

#[test]
fn removed_loops_disappear_and_archived_ones_are_listed_apart() {
    let test = Test::night();
    let page = Page::start(&test, &[]);
    assert_eq!(page.api("loops")["loops"].as_array().unwrap().len(), 3);
    test.ralph(&["rm", "totals"]).exits(0);
    until("its removal", || {
        page.api("loops")["loops"].as_array().unwrap().len() == 2
    });
    // `rm` deletes a loop; a new loop of the same name moves the old one to the archive.
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ]);
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ]);
    let archived = page.api("loops?archived")["loops"].clone();
    let name = archived[0]["name"].as_str().expect("an archived loop");
    assert!(name.starts_with("a-") && archived[0]["archived"] == true);
    assert_eq!(
        page.api(&format!("loops/{name}"))["iterations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn hostile_output_is_cleaned_and_cut() {
    let long = |bytes: u32| {
        format!("{{ yes '<script>alert(1)</script>' | head -c {bytes} | tr -d '\\n'; echo; }}")
    };
    let test = Test::git();
    test.sh("printf '<img src=x onerror=alert(1)>\\033[31m\\n' > 'a<b>.txt'");
    let agent = format!(
        "printf 'red \\033[31m\\033]0;title\\007 \\342\\200\\256txt\\n'; {}; printf 'x\\n' > 'c<i>d.txt'; {} > big.txt",
        long(10_000_000),
        long(3_000_000)
    );
    let check = format!("{}; false", long(500_000));
    test.ralph(&[
        "run",
        "<script>alert(1)</script>",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--check",
        &check,
        "--",
        "sh",
        "-c",
        &agent,
    ]);
    let page = Page::start(&test, &[]);
    let bearer = page.bearer();
    for path in ["loops", "loops/a", "loops/a/iterations/1", "loops/a/diff"] {
        let answer = page.get(&format!("/api/{path}"), &[&bearer]).is(200);
        assert!(
            answer.body.len() < 4 << 20,
            "{path}: {} bytes",
            answer.body.len()
        );
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let is_hidden = |c: char| c.is_control() || c == '\u{202e}';
        assert!(
            !answer.body.contains(is_hidden) && !answer.body.contains("\\u001b"),
            "{path}"
        );
        answer.json();
    }
    let rows = page.api("loops/a/iterations/1")["activity"].clone();
    let first = rows[0]["text"].as_str().unwrap();
    assert!(
        first.starts_with("red ") && !first.contains("title") && !first.contains("[31m"),
        "{:?}",
        &first[..40]
    );
    let longest = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["text"].as_str().unwrap().len())
        .max();
    assert!(longest < Some(64 << 10), "{longest:?}");
    let files = page.api("loops/a/diff")["files"].clone();
    let big = files
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == "big.txt")
        .unwrap();
    assert_eq!(big["cut"], true);
    // An agent may write anything to the loop's files.
    std::fs::write(
        test.loop_dir("a").join("iterations/0001/activity.jsonl"),
        vec![b'x'; 20 << 20],
    )
    .unwrap();
    std::fs::write(
        test.loop_dir("a").join("iterations/0001/prompt.md"),
        vec![b'<'; 20 << 20],
    )
    .unwrap();
    let answer = page.get("/api/loops/a/iterations/1", &[&bearer]).is(200);
    assert!(answer.body.len() < 1 << 20, "{} bytes", answer.body.len());
}

#[test]
fn changes_arrive_as_events() {
    let test = Test::new().script(
        "iteration 1\n  say one\n  sh until test -f go; do sleep 0.01; done\n  say <b>two</b>\n",
    );
    let page = Page::start(&test, &[]);
    let stream = |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", page.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        write!(
            stream,
            "GET /api/{path} HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n",
            page.bearer()
        )
        .unwrap();
        BufReader::new(stream)
    };
    let wait_for = |stream: &mut BufReader<TcpStream>, text: &str| {
        let (begun, mut line) = (Instant::now(), String::new());
        while !line.contains(text) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "waited in vain for {text:?}"
            );
            line.clear();
            assert_ne!(
                stream.read_line(&mut line).unwrap(),
                0,
                "the stream ended before {text:?}"
            );
        }
        line
    };
    let mut all = stream("events");
    wait_for(&mut all, "text/event-stream");
    wait_for(&mut all, "\"reset\":true");
    test.ralph(&[
        "spawn",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-tmux",
        "--no-promise",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    wait_for(&mut all, "\"name\":\"a\"");
    let mut one = stream("loops/a/events");
    wait_for(&mut one, "\"text\":\"one");
    test.write("go", "");
    wait_for(&mut one, "<b>two</b>");
    wait_for(&mut one, "\"status\":\"done\"");
    wait_for(&mut all, "\"status\":\"done\"");
    // The streams of a page that was closed end.
    drop((all, one));
}

#[test]
fn statistics_are_those_of_the_command() {
    let test = Test::night();
    let page = Page::start(&test, &[]);
    for by in ["day", "agent", "model", "repository"] {
        let printed = test.ralph(&["stats", "--json", "--by", by]).exits(0).out;
        let mut printed: Value = serde_json::from_str(&printed).unwrap();
        let mut shown = page.api(&format!("stats?by={by}"));
        for group in shown["groups"].as_array_mut().unwrap() {
            let label = group.as_object_mut().unwrap().remove("label").unwrap();
            let is_short = label.as_str().unwrap().starts_with("~/");
            assert_eq!(is_short, by == "repository", "{label}");
        }
        let object = shown.as_object_mut().unwrap();
        assert_eq!(object.remove("groups_omitted").unwrap(), 0);
        assert_eq!(object.remove("unreadable").unwrap(), 0);
        assert_eq!(printed["since"].take(), shown["since"].take());
        assert_eq!(printed, shown, "{by}");
    }
    let none = page.api("stats?by=agent&hours=1");
    assert_eq!(none["total"]["loops"], 0);
    let bearer = page.bearer();
    for query in ["by=color", "hours=x", "hours=-1", "x=1", "by"] {
        page.get(&format!("/api/stats?{query}"), &[&bearer]).is(400);
    }
}

#[test]
fn the_past_of_a_loop_has_its_events_and_notes() {
    let test = Test::new().script(
        "iteration 1\n  say looked around\niteration 2\n  blocked Tabs or spaces?\niteration 3\n  promise COMPLETE\n",
    );
    let flags = ["--name", "a", "--agent", "script:../agent.script"];
    test.ralph(&[&["run", "x", "-m", "5"][..], &flags].concat());
    let page = Page::start(&test, &[]);
    let past = page.api("loops/a/history");
    let texts = |past: &Value, key: &str| -> Vec<String> {
        let all = past[key].as_array().unwrap().iter();
        all.map(|one| one["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let events = texts(&past, "events");
    assert!(
        events[0].ends_with("starts the loop") && events.len() > 4,
        "{events:?}"
    );
    assert!(
        texts(&past, "notes").contains(&"looked around".to_owned()),
        "{past}"
    );
    let authors: Vec<_> = past["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["author"].as_str().unwrap())
        .collect();
    assert!(authors.contains(&"question"), "{past}");
    test.ralph(&["resume", "a", "--answer", "tabs"]);
    let past = page.api("loops/a/history");
    let answer = past["notes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|note| note["author"] == "user");
    assert_eq!(answer.expect("an answer")["text"], "tabs");
}

#[test]
fn many_loops_arrive_in_parts_until_none_is_unread() {
    let test = Test::new();
    let once = ["-m", "1", "--no-promise", "--", "true"];
    test.ralph(&[&["run", "x", "--name", "loop-000"][..], &once].concat())
        .exits(0);
    let from = test.loop_dir("loop-000");
    for number in 1..150 {
        let name = format!("loop-{number:03}");
        let to = test.loop_dir(&name);
        std::fs::create_dir(&to).unwrap();
        let journal = test.read_loop("loop-000", "journal.jsonl");
        let journal = journal.replace("\"loop-000\"", &format!("\"{name}\""));
        std::fs::write(to.join("journal.jsonl"), journal).unwrap();
        std::fs::copy(from.join("lock"), to.join("lock")).unwrap();
    }
    let page = Page::start(&test, &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", page.port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(
        stream,
        "GET /api/events HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n",
        page.bearer()
    )
    .unwrap();
    let (mut names, mut unread) = (std::collections::BTreeSet::new(), 150);
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let event: Value = serde_json::from_str(data).unwrap();
        for row in event["loops"].as_array().unwrap() {
            assert_eq!(row["status"], "done", "{row}");
            names.insert(row["name"].as_str().unwrap().to_owned());
        }
        let left = event["unread"].as_u64().unwrap();
        assert_eq!(names.len() as u64 + left, 150);
        assert!(left <= unread);
        unread = left;
        if unread == 0 {
            break;
        }
    }
    assert_eq!(names.len(), 150);
    assert_eq!(page.api("loops")["loops"].as_array().unwrap().len(), 150);
}

/// Returns a value from `/proc/PID/status`, in kilobytes.
#[cfg(target_os = "linux")]
fn kilobytes(pid: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_bounded_with_many_readers_that_do_not_read() {
    let test = Test::new().script(
        "iteration 1\n  sh until test -f go; do sleep 0.01; done\n  flood 60MiB\n  sh i=0; while [ $i -lt 20000 ]; do echo \"line $i of the flood\"; i=$((i+1)); done\n  say after the flood\n",
    );
    let page = Page::start(&test, &[]);
    test.ralph(&[
        "spawn",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-tmux",
        "--no-promise",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    let bearer = page.bearer();
    let open = |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", page.port)).unwrap();
        write!(
            stream,
            "GET /api/{path} HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n\r\n"
        )
        .unwrap();
        stream
    };
    let before = kilobytes(page.live.pid(), "VmHWM:");
    let readers: Vec<_> = (0..64).map(|_| open("loops/a/events")).collect();
    // The next one is refused, once the others have been accepted.
    let status = || {
        // Only the first line: an accepted stream has no end.
        let mut head = [0; 12];
        open("loops/a/events").read_exact(&mut head).unwrap();
        head
    };
    until("the limit of streams", || status() == *b"HTTP/1.1 503");
    test.write("go", "");
    until("the end", || test.status("a")["status"] == "done");
    until("the last words", || {
        let rows = page.api("loops/a/iterations/1")["activity"].clone();
        rows.to_string().contains("after the flood")
    });
    let peak = kilobytes(page.live.pid(), "VmHWM:");
    assert!(peak < before + (160 << 10), "{before} kB, then {peak} kB");
    drop(readers);
    until("room for new streams", || status() == *b"HTTP/1.1 200");
}

#[test]
fn other_machines_are_let_in_only_on_request_and_with_a_warning() {
    let test = Test::new();
    let page = Page::start(&test, &["--listen", "0.0.0.0"]);
    assert!(page.url.starts_with("http://127.0.0.1:"), "{}", page.url);
    page.get("/api/loops", &[]).is(401);
    let bearer = page.bearer();
    page.get("/api/loops", &["Host: 192.0.2.7:1", &bearer])
        .is(200);
    page.get("/api/loops", &["Host: evil.example", &bearer])
        .is(403);
    page.live.signal("INT");
    let done = page.live.end();
    assert!(done.err.contains("not encrypted"), "{}", done.err);
    let port = Page::start(&test, &[]);
    test.ralph(&["ui", "--port", &port.port.to_string()])
        .exits(1)
        .complains("cannot listen on");
    test.ralph(&["ui", "--listen", "localhost"]).exits(2);
}

#[test]
fn the_browser_is_opened_without_the_token_in_a_command_line() {
    let test = Test::new().on_path(
        "xdg-open",
        "#!/bin/sh\nprintf '%s' \"$*\" > ../opened.new; mv ../opened.new ../opened\n",
    );
    let page = Page::start(&test, &["--open"]);
    let opened = test.root().join("opened");
    until("the browser", || opened.exists());
    let argument = std::fs::read_to_string(opened).unwrap();
    assert!(!argument.contains(&page.token), "{argument}");
    let mode = std::fs::metadata(&argument).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        std::fs::read_to_string(&argument)
            .unwrap()
            .contains(&page.url)
    );
}
