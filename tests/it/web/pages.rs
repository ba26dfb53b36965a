//! The pages of `ralph ui` in Chromium.

mod needs_chromium {
    use crate::kit::Test;
    use crate::web::Page;
    use crate::web::browser::Browser;
    use serde_json::{Value, json};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    const AUDIT: &str = include_str!("audit.js");

    /// Checks the page as it is shown now.
    #[track_caller]
    fn audit(browser: &mut Browser, what: &str) {
        let findings = browser.js(&format!("{}({})", AUDIT.trim_end(), browser.width));
        assert_eq!(findings, json!([]), "{what}");
    }

    fn go(browser: &mut Browser, hash: &str, shown: &str) {
        browser.js(&format!("location.hash = {}", json!(hash)));
        browser.until(shown);
    }

    /// The views of the recorded night, and what shows that each of them is complete.
    const VIEWS: [(&str, &str); 15] = [
        ("#/", "document.querySelectorAll('.loop').length === 3"),
        (
            "#/loop/totals",
            "document.querySelectorAll('.act').length > 0",
        ),
        (
            "#/loop/totals/checks",
            "document.querySelectorAll('td.heat').length > 29 && document.querySelectorAll('.file').length > 0",
        ),
        (
            "#/loop/totals/checks/12",
            "document.querySelector('.panel div h2')?.textContent === 'Iteration 12'",
        ),
        (
            "#/loop/totals/changes",
            "document.querySelectorAll('.patch tr').length > 3",
        ),
        (
            "#/loop/totals/changes/3",
            "document.querySelector('.panel h2')?.textContent.endsWith('iteration 3')",
        ),
        (
            "#/loop/totals/prompt/30",
            "document.querySelector('.prompt')?.textContent.length > 100",
        ),
        (
            "#/loop/totals/timeline",
            "document.querySelectorAll('.timeline tbody tr').length === 30 && document.querySelectorAll('.plot').length > 1",
        ),
        (
            "#/loop/links/notes",
            "document.querySelectorAll('.written').length === 18",
        ),
        (
            "#/stats/day/all",
            "document.querySelectorAll('.plot').length === 8 && document.querySelector('h2').textContent === 'By day'",
        ),
        (
            "#/stats/repository/all",
            "document.querySelectorAll('.plot').length === 8 && document.querySelector('h2').textContent === 'By repository'",
        ),
        (
            "#/loop/totals/tree",
            "document.querySelector('.panel .empty, .panel .loops')",
        ),
        (
            "#/loop/links",
            "document.querySelector('.loop-head .pill')?.textContent === 'disputed'",
        ),
        (
            "#/loop/links/checks",
            "document.querySelectorAll('td.doubt').length > 0",
        ),
        (
            "#/loop/retries/activity/4",
            "document.querySelector('.panel h2')?.textContent === 'Iteration 4'",
        ),
    ];

    #[test]
    fn every_view_fits_and_is_accessible_on_a_desk_and_on_a_phone() {
        let test = Test::night();
        let page = Page::start(&test, &["--control"]);
        let mut browser = Browser::start(&test);
        browser.open(&page.url);
        assert_eq!(browser.js("location.search"), "");
        for (width, height, scheme) in [(1280, 860, "light"), (390, 844, "dark")] {
            browser.resize(width, height);
            browser.use_scheme(scheme);
            for (hash, shown) in VIEWS {
                go(&mut browser, hash, shown);
                audit(&mut browser, &format!("{hash} at {width} pixels, {scheme}"));
            }
        }
        // The other scheme of the two views with the most colors.
        browser.use_scheme("light");
        for (hash, shown) in [VIEWS[0], VIEWS[2]] {
            go(&mut browser, hash, shown);
            audit(&mut browser, &format!("{hash} on a phone, light"));
        }
        assert_eq!(
            browser.js("document.getAnimations().length"),
            0,
            "reduced motion"
        );
        let own = page.url.split("/?").next().unwrap().to_owned();
        let foreign: Vec<_> = browser
            .requests
            .iter()
            .filter(|url| !url.starts_with(&own))
            .collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }

    #[test]
    fn everything_is_reached_with_keys() {
        let test = Test::night();
        let page = Page::start(&test, &[]);
        let mut browser = Browser::start(&test);
        browser.resize(1280, 860);
        browser.open(&page.url);
        browser.until("document.querySelectorAll('.loop').length === 3");
        // By the tab key alone: the skip link, then each control and each loop.
        let mut reached = Vec::new();
        for _ in 0..11 {
            browser.press("Tab");
            reached.push(
                browser.js("document.activeElement.textContent || document.activeElement.id"),
            );
            let outline = browser.js("getComputedStyle(document.activeElement).outlineStyle");
            assert_ne!(outline, "none", "the focus on {reached:?} is not visible");
        }
        for name in ["Skip to content", "filter", "totals", "links", "retries"] {
            assert!(
                reached.contains(&json!(name)),
                "{name} is not in {reached:?}"
            );
        }
        browser.press("/");
        assert_eq!(browser.js("document.activeElement.id"), "filter");
        for key in ["t", "o", "t"] {
            browser.press(key);
        }
        browser.until("document.querySelectorAll('.loop').length === 1");
        browser.press("Escape");
        browser.until("document.querySelectorAll('.loop').length === 3");
        browser.press("j");
        browser.press("j");
        browser.press("k");
        let name = browser.js("document.activeElement.textContent");
        browser.press("Enter");
        browser.until(&format!(
            "document.querySelector('h1').textContent === {name}"
        ));
        browser.press("2");
        browser.until("document.querySelectorAll('td.heat').length > 0");
        browser.js("document.querySelector('.column[tabindex=\"0\"]').focus()");
        let before = browser.js("document.activeElement.dataset.number");
        browser.press("ArrowLeft");
        browser.press("Enter");
        browser.until(&format!("document.querySelector('.column[aria-pressed=true]').dataset.number === String({before} - 1)"));
        browser.press("3");
        browser.until("document.querySelector('.diff')");
        browser.press("[");
        browser.until("location.hash.split('/').length === 5");
        browser.js("document.querySelector('[role=tab][aria-selected=true]').focus()");
        browser.press("ArrowRight");
        browser.until("document.querySelector('#tab-prompt').ariaSelected === 'true' && document.activeElement.id === 'tab-prompt'");
        browser.press("?");
        browser.until("document.querySelector('dialog').open");
        browser.press("Escape");
        browser.until("!document.querySelector('dialog').open");
        browser.press("u");
        browser.until("document.querySelectorAll('.loop').length === 3");
        // The statistics, and each value of a plot.
        browser.press("s");
        browser.until("document.querySelector('.views [aria-current]').hash === '#/stats'");
        go(
            &mut browser,
            "#/stats/day/all",
            "document.querySelectorAll('.plot').length === 8",
        );
        browser.js("document.querySelector('.plot svg').focus()");
        let tooltip = "document.querySelector('#tooltip:not([hidden])')?.textContent";
        browser.press("ArrowRight");
        browser.until(&format!(
            "{tooltip} === '2026-03-14: $1.40, and 11 iterations of unknown cost'"
        ));
        browser.press("ArrowRight");
        browser.until(&format!("{tooltip} === '2026-03-15: $4.74'"));
        browser.press("ArrowRight");
        browser.until(&format!("{tooltip} === '2026-03-15: $4.74'"));
        browser.press("Tab");
        browser.until("document.querySelector('#tooltip').hidden");
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }

    #[test]
    fn changes_arrive_and_a_flood_leaves_the_page_responsive() {
        let test = Test::new().script(
            "iteration 1\n  say first words\n  sh until test -f go; do sleep 0.01; done\n  sh i=0; while [ $i -lt 3000 ]; do echo \"line $i of the flood\"; i=$((i+1)); done\n  flood 20MiB\n  say after the flood\n  sh until test -f end; do sleep 0.01; done\n",
        );
        let page = Page::start(&test, &["--control"]);
        let mut browser = Browser::start(&test);
        browser.resize(390, 844);
        browser.open(&page.url);
        browser.until("document.querySelector('.empty')");
        test.ralph(&[
            "spawn",
            "x",
            "--name",
            "a",
            "-m",
            "1",
            "--no-tmux",
            "--no-promise",
            "--check",
            "test -f end",
            "--agent",
            "script:../agent.script",
        ])
        .exits(0);
        browser.until("document.querySelector('.loop .word')?.textContent === 'running'");
        go(
            &mut browser,
            "#/loop/a",
            "document.querySelector('.activity')?.textContent.includes('first words')",
        );
        // The longest time for which the page did not answer.
        browser.js("window.worst = 0; let last = performance.now(); setInterval(() => { worst = Math.max(worst, performance.now() - last); last = performance.now(); }, 10); 0");
        browser.js("window.drawn = 0; new MutationObserver(() => { drawn += 1; }).observe(document.querySelector('.activity'), { childList: true, subtree: true }); 0");
        let begun = std::time::Instant::now();
        test.write("go", "");
        browser
            .until("document.querySelector('.activity').textContent.includes('after the flood')");
        let seconds = begun.elapsed().as_secs_f64();
        let drawn = browser.js("drawn").as_f64().unwrap();
        assert!(
            drawn <= 8.0 + 5.0 * seconds,
            "drawn {drawn} times in {seconds} s"
        );
        assert!(
            browser
                .js("document.querySelectorAll('.act').length")
                .as_u64()
                <= Some(400)
        );
        let worst = browser.js("worst").as_f64().unwrap();
        assert!(worst < 3000.0, "it did not answer for {worst} ms");
        audit(&mut browser, "a running loop");
        // Steering by the page's own buttons.
        browser.js("document.querySelector('#say').value = '<b>hello</b>'; document.querySelector('.say').requestSubmit()");
        browser.until("document.querySelector('.reply').textContent.includes('next prompt')");
        browser.js("document.querySelector('[data-verb=pause]').click()");
        browser.until("document.querySelector('.title .tag')?.textContent.includes('pauses')");
        test.write("end", "");
        browser.until("document.querySelector('.pill').textContent !== 'running'");
        browser.until("document.querySelector('.check-list .mark.good, .file .mark.good')");
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }

    /// Serves one page to every request, on a free port, until the test ends.
    fn hostile_site(html: String) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let length = html.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{html}"
                );
            }
        });
        port
    }

    #[test]
    fn other_sites_in_the_same_browser_get_nothing() {
        let test = Test::night();
        let page = Page::start(&test, &["--control"]);
        let mut browser =
            Browser::start_with(&test, &["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
        browser.open(&page.url);
        browser.until("document.querySelectorAll('.loop').length === 3");
        let base = browser.js("location.href.split('#')[0]");
        let base = base.as_str().unwrap();
        // The attacker knows everything but the token. A browser counts another port as the same
        // site, so that even a strict cookie is sent.
        let html = format!(
            "<title>evil</title><iframe name=frame src='{base}'></iframe>\
             <form method=post enctype=text/plain action='{base}api/loops/retries/stop' target=frame><input name=x value=y></form>\
             <script>
             const found = [];
             addEventListener('securitypolicyviolation', () => found.push('policy'));
             async function attack() {{
               document.forms[0].submit();
               for (const path of ['loops', 'stats', 'loops/totals/diff', 'loops/totals/history']) {{
                 for (const mode of ['cors', 'no-cors']) {{
                   await fetch('{base}api/' + path, {{ credentials: 'include', mode }}).then((answer) => answer.text()).then((text) => found.push(text), () => {{}});
                 }}
               }}
               for (const action of ['stop', 'resume', 'say']) {{
                 await fetch('{base}api/loops/retries/' + action, {{ method: 'POST', credentials: 'include', mode: 'no-cors', body: 'x' }}).catch(() => {{}});
               }}
               const source = new EventSource('{base}api/events', {{ withCredentials: true }});
               source.addEventListener('loops', (event) => found.push(event.data));
               await new Promise((done) => source.addEventListener('error', done));
               source.close();
               let framed = '';
               try {{ framed = frames.frame.document.body.textContent; }} catch {{ framed = 'refused'; }}
               return {{ found: found.join(''), framed }};
             }}
             </script>"
        );
        let site = hostile_site(html);
        let journal = test.read_loop("retries", "journal.jsonl");
        for host in ["127.0.0.1", "evil.example"] {
            browser.call(
                "Page.navigate",
                &json!({"url": format!("http://{host}:{site}/")}),
            );
            browser.until("document.title === 'evil' && document.readyState === 'complete'");
            let result = browser.js("attack()");
            assert_eq!(result["found"], "", "{host}");
            assert_eq!(result["framed"], "refused", "{host}");
        }
        // A name that resolves to this machine, the wrong token, and no token.
        let port = page
            .url
            .split(':')
            .nth(2)
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        let path = base.split(&format!(":{port}")).nth(1).unwrap();
        let token = page.url.split("token=").nth(1).unwrap();
        for (url, refusal) in [
            (format!("http://evil.example:{port}{path}"), "403"),
            (format!("http://evil.example:{port}/?token={token}"), "403"),
            (format!("http://127.0.0.1:{port}/?token=0{token}"), "401"),
            (format!("http://127.0.0.1:{port}/"), "401"),
        ] {
            browser.call("Page.navigate", &json!({"url": url}));
            browser.until(&format!(
                "location.href === {} && document.readyState === 'complete'",
                json!(url)
            ));
            let status = "performance.getEntriesByType('navigation')[0].responseStatus";
            assert_eq!(browser.js(status).to_string(), refusal, "{url}");
            let shown = browser.js("document.body.textContent");
            assert!(!shown.to_string().contains("totals"), "{url}: {shown}");
        }
        assert_eq!(test.read_loop("retries", "journal.jsonl"), journal);
        assert!(!test.loop_dir("retries").join("inbox.jsonl").exists());
        // The page itself still works.
        browser.call("Page.navigate", &json!({"url": base}));
        browser.until("document.querySelectorAll('.loop').length === 3");
    }

    #[test]
    fn archived_and_crashed_loops_have_pages() {
        let test = Test::night();
        let again = [
            "run",
            "x",
            "--name",
            "a",
            "-m",
            "1",
            "--no-promise",
            "--",
            "true",
        ];
        test.ralph(&again);
        test.ralph(&again);
        let page = Page::start(&test, &["--control"]);
        let mut browser = Browser::start(&test);
        browser.resize(390, 844);
        browser.open(&page.url);
        browser.until("document.querySelectorAll('.loop').length === 4");
        browser.until(
            "document.querySelector('[data-loop=retries] .doing').textContent.includes('killed in iteration 12')",
        );
        browser.js("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Archived').click()");
        browser.until("document.querySelectorAll('.loop').length === 5");
        let archived = "[...document.querySelectorAll('.loop')].find((one) => one.querySelector('.tag')?.textContent === 'archived').querySelector('a')";
        browser.js(&format!("{archived}.click()"));
        browser.until("document.querySelector('.pill')?.textContent === 'done'");
        browser.until("document.querySelector('.controls').hidden");
        audit(&mut browser, "an archived loop");
        go(
            &mut browser,
            "#/loop/retries",
            "document.querySelector('.pill')?.textContent === 'crashed' && !document.querySelector('[data-verb=resume]').disabled",
        );
        audit(&mut browser, "a crashed loop");
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }

    #[test]
    fn hostile_content_is_text() {
        const EVIL: &str = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">";
        let test = Test::git().file("agent.sh", &format!("cat <<'E'\n{EVIL}\n`{EVIL}` **{EVIL}**\nE\nprintf 'red \\033[31m\\033]0;title\\007\\n'\nhead -c 10000000 /dev/zero | tr '\\0' 'a'\necho\ncp agent.sh '<img src=x onerror=alert(1)>.html'\necho '{}'\n", EVIL.replace('\'', "\"")));
        let check = format!("echo '{}'; false", EVIL.replace('\'', "\""));
        test.ralph(&[
            "run",
            EVIL,
            "--name",
            "a",
            "-m",
            "2",
            "--no-promise",
            "--check",
            &check,
            "--",
            "sh",
            "agent.sh",
        ]);
        let page = Page::start(&test, &[]);
        let mut browser = Browser::start(&test);
        browser.resize(390, 844);
        browser.open(&page.url);
        let shown: Value = json!("document.querySelector('main').textContent.includes('<script>')");
        for hash in [
            "#/",
            "#/loop/a",
            "#/loop/a/activity/1",
            "#/loop/a/checks",
            "#/loop/a/changes",
            "#/loop/a/prompt",
            "#/loop/a/notes",
            "#/loop/a/timeline",
            "#/loop/a/tree",
        ] {
            go(&mut browser, hash, shown.as_str().unwrap());
            let is_tab = |name: &str| hash.contains(name);
            if is_tab("changes") {
                browser.until("document.querySelector('.patch')?.textContent.includes('<img')");
            }
            if is_tab("notes") {
                browser.until(
                    "document.querySelector('.note-text')?.textContent.includes('<script>')",
                );
            }
            if is_tab("timeline") {
                browser.until(
                    "document.querySelector('.event-list')?.textContent.includes('<script>')",
                );
                browser.js("document.querySelector('.event-list').closest('details').open = true");
            }
            if is_tab("activity") {
                browser
                    .until("document.querySelector('.activity')?.textContent.includes('<script>')");
            }
            assert_eq!(
                browser
                    .js("document.querySelectorAll('main script, main img, main iframe').length"),
                0,
                "{hash}"
            );
            assert_eq!(
                browser.js("document.title.includes('hacked')"),
                false,
                "{hash}"
            );
            assert_eq!(
                browser.js("/[\\u0000-\\u0008\\u001b\\u202e]/.test(document.body.textContent)"),
                false,
                "{hash}"
            );
            audit(&mut browser, hash);
        }
        // The policy would stop what the page's own code let through.
        let blocked = browser.js("new Promise((done) => { addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)); const script = document.createElement('img'); script.src = 'http://127.0.0.1:1/x.png'; document.body.append(script); setTimeout(() => done('nothing'), 5000); })");
        assert_eq!(blocked, "img-src");
        let markup = browser.js("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'allowed'; } catch { return 'refused'; } })()");
        assert_eq!(markup, "refused");
        let names = browser.js("fetch('api/loops/..%2f..').then((answer) => answer.status)");
        assert_eq!(names, 404);
    }
}
