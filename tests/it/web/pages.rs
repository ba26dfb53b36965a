//! The pages of `ralph ui` in Chromium.

mod needs_chromium {
    use crate::kit::Test;
    use crate::web::Page;
    use crate::web::browser::Browser;
    use serde_json::{Value, json};

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
    const VIEWS: [(&str, &str); 12] = [
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
        for _ in 0..12 {
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

    #[test]
    fn hostile_content_is_text() {
        const EVIL: &str = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">";
        let test = Test::git().file("agent.sh", &format!("cat <<'E'\n{EVIL}\n`{EVIL}` **{EVIL}**\nE\nprintf 'red \\033[31m\\033]0;title\\007\\n'\nhead -c 10000000 /dev/zero | tr '\\0' 'a'\necho\ncp agent.sh '<img src=x onerror=alert(1)>.html'\n"));
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
            "#/loop/a/timeline",
            "#/loop/a/tree",
        ] {
            go(&mut browser, hash, shown.as_str().unwrap());
            let is_tab = |name: &str| hash.contains(name);
            if is_tab("changes") {
                browser.until("document.querySelector('.patch')?.textContent.includes('<img')");
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
