//! `ralph report`: the page, Markdown, and the formats of CI systems.

use crate::kit::{RUN_ONCE, Test, until};
use crate::snap::assert_snapshot;
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};
use std::fs;

/// Elements that a report consists of.
const ELEMENTS: &[&str] = &[
    "a",
    "article",
    "b",
    "blockquote",
    "body",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "head",
    "header",
    "html",
    "li",
    "line",
    "main",
    "meta",
    "ol",
    "p",
    "pre",
    "rect",
    "section",
    "span",
    "style",
    "summary",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "ul",
];

/// Asserts that a page contains only ralph's own elements, that each is closed in its order, and that
/// nothing runs or is loaded.
#[track_caller]
fn assert_page(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<!-- ralph report -->\n"));
    assert!(page.contains("content=\"default-src &#39;none&#39;; style-src &#39;sha256-"));
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("<html").map(|(_, rest)| rest).unwrap();
    for part in body.split('<').skip(1) {
        let (tag, _) = part
            .split_once('>')
            .unwrap_or_else(|| panic!("not closed: {part:?}"));
        let name = tag
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            if name != "html" {
                assert_eq!(open.pop(), Some(name), "{part:?}");
            }
            continue;
        }
        assert!(ELEMENTS.contains(&name), "{part:?}");
        // Every other part is a value in quotes.
        let names: String = tag.split('"').step_by(2).collect();
        for attribute in ["src", " on", "style=", "action="] {
            assert!(!names.contains(attribute), "{part:?}");
        }
        if let Some((_, target)) = tag.split_once("href=") {
            assert!(target.starts_with("\"#loop-"), "{part:?}");
        }
        if name != "meta" && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Returns the report of a loop as a page.
#[track_caller]
fn page(test: &Test, name: &str) -> String {
    let page = test.ralph(&["report", name, "-o", "-"]).exits(0).out;
    assert_page(&page);
    page
}

/// Asserts that a text is well-formed XML, and returns the names and attributes of its elements.
#[track_caller]
fn elements(xml: &str) -> Vec<String> {
    let mut reader = Reader::from_str(xml);
    let mut found = Vec::new();
    loop {
        match reader
            .read_event()
            .unwrap_or_else(|error| panic!("{error}: {xml}"))
        {
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    let value = attribute
                        .unwrap()
                        .normalized_value(XmlVersion::Explicit1_0)
                        .unwrap()
                        .into_owned();
                    found.push(value);
                }
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

#[test]
fn the_page_about_a_recorded_night_says_what_to_review_first() {
    let test = Test::night();
    let links = page(&test, "links");
    for text in [
        "disputed: every check is green, but not by the original tests",
        "Disputed in iterations 17, 18",
        "turned green in iteration 17, in which only tests changed",
        "<code>tests/links.sh (changed)</code>",
        "The agent claimed to be done while a check was red",
        "ralph resume links --accept tests/links.sh",
        "ralph rewind links 0",
        "<h3>Last words</h3>",
        "<span class=\"add\">",
        "<svg role=\"img\"",
        "Receipt",
        "Timeline",
    ] {
        assert!(links.contains(text), "{text}");
    }
    assert!(page(&test, "totals").contains("✔</b> done"));
    let crashed = page(&test, "retries");
    assert!(crashed.contains("crashed: ralph was killed in iteration 12"));
    assert!(!crashed.contains("<h2>Receipt</h2>"));
    assert!(crashed.contains("ralph was killed while the agent worked"));
    assert!(links.contains("iteration 18: green, but not by the original tests"));
    let all = test.night_command(&["report", "--since", "12h", "-o", "-"]);
    let all = test.start_command(all).end().exits(0).out;
    assert_page(&all);
    assert!(all.contains("3 loops, 1 done; 60 iterations"));
    // What needs a person comes first.
    let places = ["links", "retries", "totals"].map(|name| {
        let heading = format!("<h2 class=\"name\">{name}</h2>");
        all.find(&heading).expect(name)
    });
    assert!(places.is_sorted(), "{places:?}");
    let review = all.find("<h2>Review first</h2>").unwrap();
    let first = &all[review..places[0]];
    for text in ["Disputed in iterations 17, 18", "ralph was killed while"] {
        assert!(first.contains(text), "{first}");
    }
    for id in ["loop-1", "loop-2", "loop-3"] {
        assert!(all.contains(&format!("href=\"#{id}\"")) && all.contains(&format!("id=\"{id}\"")));
    }
    let none = test.night_command(&["report", "--since", "1m", "--md", "-o", "-"]);
    test.start_command(none).end().exits(0).says("No loop ran.");
}

#[test]
fn markdown_is_as_in_its_snapshot() {
    let test = Test::night();
    let report = test.night_command(&["report", "links", "--md", "-o", "-"]);
    let markdown = test.start_command(report).end().exits(0).out;
    let id = test.journal("links")[0]["id"].as_str().unwrap().to_owned();
    let markdown = test.without_root(&markdown).replace(&id, "ID");
    assert_snapshot("report-links", &markdown);
}

#[test]
fn a_report_goes_to_a_file_and_replaces_only_reports() {
    let test = Test::git();
    test.ralph(&RUN_ONCE).exits(0);
    test.ralph(&["report", "a"]).exits(0).says("a-report.html");
    let first = test.read("a-report.html");
    assert_page(&first);
    test.ralph(&["report", "a"]).exits(0);
    test.ralph(&["report", "a", "--md"])
        .exits(0)
        .says("a-report.md");
    assert!(test.read("a-report.md").contains("# a\n"));
    test.write("a-report.html", "mine\n");
    let refused = test.ralph(&["report", "a"]).exits(2);
    assert!(refused.err.contains("--force"), "{refused:?}");
    assert_eq!(test.read("a-report.html"), "mine\n");
    test.ralph(&["report", "a", "--force"]).exits(0);
    assert_page(&test.read("a-report.html"));
    test.ralph(&["report", "--since", "1h"])
        .exits(0)
        .says("ralph-report.html");
    test.ralph(&["report"]).exits(2);
    test.ralph(&["report", "b"]).exits(2);
}

#[test]
fn the_browser_gets_the_report() {
    let test = Test::git().on_path(
        "my-browser",
        "#!/bin/sh\necho \"$1\" >../opened.new\nmv ../opened.new ../opened\n",
    );
    test.ralph(&RUN_ONCE).exits(0);
    let mut command = test.ralph_command(&["report", "a", "--open"]);
    command.env("BROWSER", "my-browser");
    test.start_command(command).end().exits(0);
    let opened = test.root().join("opened");
    until("the browser", || opened.exists());
    let path = fs::read_to_string(opened).unwrap();
    assert!(path.trim_end().ends_with("shop/a-report.html"), "{path}");
}

#[test]
fn a_running_loop_is_reported_without_a_file_in_its_workspace() {
    let test = Test::git();
    let agent = "echo working; touch ../started; until test -e ../go; do sleep 0.01; done";
    let run = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "sh",
        "-c",
        agent,
    ];
    let live = test.start(&run);
    until("the agent", || test.root().join("started").exists());
    assert!(page(&test, "a").contains("running: iteration 1"));
    let path = test.ralph(&["report", "a"]).exits(0).out;
    assert!(path.contains("loops/a/a-report.html"), "{path}");
    assert!(!test.workspace().join("a-report.html").exists());
    fs::write(test.root().join("go"), "").unwrap();
    live.end().exits(0);
}

#[test]
fn an_archived_loop_is_found_by_its_name() {
    let test = Test::git();
    test.ralph(&RUN_ONCE).exits(0);
    test.ralph(&RUN_ONCE).exits(0);
    assert!(page(&test, "a").contains("ralph diff a"));
    let archived = fs::read_dir(test.state_dir().join("archive")).unwrap();
    let archived = archived.flatten().next().unwrap().file_name();
    let archived = archived.into_string().unwrap();
    // Commands with its name would find another loop.
    assert!(!page(&test, &archived).contains("ralph diff"));
    fs::remove_dir_all(test.loop_dir("a")).unwrap();
    assert!(!page(&test, "a").contains("ralph diff"));
    test.ralph(&["report", "a-2"]).exits(2);
}

/// Texts that would be markup, commands or escape sequences if they were not escaped.
const HOSTILE: &str = "<script>alert(1)</script> --> ]]> & \u{1b}[2J\u{1b}]0;title\u{7} ``` | [x](https://evil.example)";

#[test]
fn hostile_names_and_outputs_stay_text() {
    let test = Test::git().file("say.txt", &format!("{HOSTILE}\n::error file=x::y\n"));
    let agent = "cat say.txt; head -c 10485760 /dev/zero | tr '\\0' '<'; echo; cat say.txt; \
                 echo \"$RALPH_ITERATION\" >'<img src=x onerror=alert(1)>'; cp say.txt new.txt; cat say.txt >&2";
    let check = "cat say.txt; : '<b onclick=\"x\">' ']]>'; exit 1";
    let task = "<svg onload=alert(1)> ]]> --> %0A::error::";
    let run = [
        "run", task, "--name", "a", "-m", "2", "--check", check, "--", "sh", "-c", agent,
    ];
    test.ralph(&run).exits(1);
    let page = page(&test, "a");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("&lt;svg onload=alert(1)&gt;"));
    assert!(!page.contains('\u{1b}'));
    assert!(page.len() < 1_000_000, "{}", page.len());

    let markdown = test.ralph(&["report", "a", "--md", "-o", "-"]).exits(0).out;
    assert!(!markdown.contains('\u{1b}'));
    assert!(markdown.len() < 100_000, "{}", markdown.len());

    let mut command = test.ralph_command(&["report", "a", "--github", "--junit", "checks.xml"]);
    command.env("GITHUB_STEP_SUMMARY", test.root().join("summary.md"));
    let done = test.start_command(command).end().exits(0);
    for line in done.out.lines() {
        let kinds = ["::error ", "::warning ", "::notice "];
        assert!(kinds.iter().any(|kind| line.starts_with(kind)), "{line:?}");
    }
    assert!(
        done.out.starts_with("::error title=ralph%3A a::failed"),
        "{}",
        done.out
    );
    let summary = fs::read_to_string(test.root().join("summary.md")).unwrap();
    assert!(summary.contains("# a\n"));
    let values = elements(&test.read("checks.xml"));
    assert!(
        values.iter().any(|value| value.contains("<b onclick=")),
        "{values:?}"
    );
    assert!(!test.workspace().join("a-report.html").exists());
}

#[test]
fn results_of_checks_are_written_for_ci() {
    let test = Test::git();
    let run = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--no-preflight",
    ];
    let checks = [
        "--check",
        "true",
        "--check",
        "echo 'assertion failed: 1 == 2'; exit 3",
    ];
    test.ralph(&[&run[..], &checks, &["--", "true"]].concat())
        .exits(1);
    test.ralph(&["report", "a", "--junit", "checks.xml"])
        .exits(0);
    let xml = test.read("checks.xml");
    assert!(
        xml.contains("<testsuite name=\"a\" tests=\"2\" failures=\"1\" skipped=\"0\""),
        "{xml}"
    );
    assert!(
        elements(&xml).contains(&"assertion failed: 1 == 2".to_owned()),
        "{xml}"
    );
    // It may be written again.
    test.ralph(&["report", "a", "--junit", "checks.xml"])
        .exits(0);
    let outside = test.ralph(&["report", "a", "--github"]).exits(2);
    assert!(outside.err.contains("GITHUB_STEP_SUMMARY"), "{outside:?}");
}

/// Makes a loop of 100 iterations from the first two of a loop that was run.
fn repeat_iterations(test: &Test) {
    let lines = test.journal("a");
    let of = |number: u64| lines.iter().filter(move |line| line["iteration"] == number);
    let is_first = |line: &&serde_json::Value| line["iteration"].as_u64().unwrap_or(0) == 0;
    let mut journal: Vec<String> = lines
        .iter()
        .take_while(is_first)
        .map(ToString::to_string)
        .collect();
    for number in 1..=100u64 {
        for line in of(2 - number % 2) {
            let mut line = line.clone();
            line["iteration"] = number.into();
            journal.push(line.to_string());
        }
        if number > 2 {
            let from = test
                .loop_dir("a")
                .join(format!("iterations/{:04}", 2 - number % 2));
            let to = test.loop_dir("a").join(format!("iterations/{number:04}"));
            let _ = fs::create_dir(&to);
            for file in fs::read_dir(from).unwrap().flatten() {
                fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
    }
    test.replace_journal("a", &(journal.join("\n") + "\n"));
}

#[test]
fn a_night_of_a_hundred_long_iterations_stays_below_5_mb() {
    let test = Test::git();
    let agent = r#"test "$RALPH_ITERATION" = 3 && echo '<blocked>enough</blocked>' && exit
        yes "line of <output> & $RALPH_ITERATION" | head -n 2000
        yes "content < $RALPH_ITERATION" | head -n 3000 >big.txt
        for n in 1 2 3 4 5 6 7 8 9; do echo "$RALPH_ITERATION" >"small-$n"; done"#;
    let check = "yes 'FAIL: <expected> & more' | head -n 3000; exit 1";
    let run = [
        "run", "x", "--name", "a", "-m", "200", "--check", check, "--", "sh", "-c", agent,
    ];
    test.ralph(&run).exits(3);
    repeat_iterations(&test);
    let page = page(&test, "a");
    assert_eq!(page.matches("<details class=\"iteration\"").count(), 100);
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.len() > 1_000_000, "{}", page.len());
    // What is left out can be found.
    assert!(page.contains("0100/activity.jsonl"));
    assert!(page.contains("ralph diff a 99..100"));
}

#[test]
fn diffs_in_a_report_contain_no_secrets() {
    let test = Test::git();
    let agent = "echo \"key=$SHOP_API_KEY\" >config.txt; echo \"the key is $SHOP_API_KEY\"";
    let mut command = test.ralph_command(&[
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "sh",
        "-c",
        agent,
    ]);
    command.env("SHOP_API_KEY", "s3cr3t-v4lue-of-the-shop");
    test.start_command(command).end().exits(0);
    let mut command = test.ralph_command(&["report", "a", "-o", "-"]);
    command.env("SHOP_API_KEY", "s3cr3t-v4lue-of-the-shop");
    let page = test.start_command(command).end().exits(0).out;
    assert!(page.contains("config.txt") && page.contains("key=[SHOP_API_KEY]"));
    assert!(!page.contains("s3cr3t-v4lue"));
}
