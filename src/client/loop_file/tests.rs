//! Which sheets are read, how ours are written, and what happens to a broken one.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn sheet() -> Sheet {
    Sheet {
        active: true,
        iteration: 3,
        max_iterations: 20,
        promise: Some("ALL \"DONE\" \\o/".into()),
        started_at: "2026-01-02T03:04:05Z".into(),
        session: Some("0b1b93a5-6c35".into()),
        name: Some("claude-6c35".into()),
        prompt: "Build a\n---\ntodo API".into(),
    }
}

/// A sheet as the other plugin writes it, with these lines in place of its own.
fn foreign(changes: &[(&str, &str)]) -> String {
    let lines = [
        "---",
        "active: true",
        "iteration: 1",
        "max_iterations: 0",
        "completion_promise: null",
        "started_at: \"2026-01-02T03:04:05Z\"",
        "---",
        "",
        "Build it",
        "",
    ];
    lines
        .map(|line| {
            changes
                .iter()
                .find(|(old, _)| *old == line)
                .map_or(line, |(_, new)| *new)
        })
        .join("\n")
}

fn promise(line: &str) -> Option<String> {
    Sheet::read(&foreign(&[("completion_promise: null", line)]))
        .unwrap()
        .promise
}

#[test]
fn ours_is_plain_to_read() {
    let text = "---\nactive: true\niteration: 3\nmax_iterations: 20\ncompletion_promise: \"ALL \\\"DONE\\\" \\\\o/\"\n\
                started_at: \"2026-01-02T03:04:05Z\"\nsession_id: \"0b1b93a5-6c35\"\nloop: \"claude-6c35\"\n---\n\n\
                Build a\n---\ntodo API\n";
    assert_eq!(sheet().text(), text);
    assert_eq!(Sheet::read(text), Ok(sheet()));
}

#[test]
fn a_sheet_of_the_other_plugin_is_read_as_it_was_meant() {
    let read = Sheet::read(&foreign(&[])).unwrap();
    assert_eq!(
        (read.active, read.iteration, read.max_iterations),
        (true, 1, 0)
    );
    assert_eq!((read.promise, read.session, read.name), (None, None, None));
    assert_eq!(
        (read.started_at.as_str(), read.prompt.as_str()),
        ("2026-01-02T03:04:05Z", "Build it")
    );
    assert_eq!(
        promise("completion_promise: \"DONE\"").as_deref(),
        Some("DONE")
    );
    assert_eq!(
        promise("completion_promise: \"say \"hi\" in C:\\temp\"").as_deref(),
        Some("say \"hi\" in C:\\temp")
    );
    assert_eq!(
        promise("completion_promise: \"null\"").as_deref(),
        Some("null")
    );
    assert_eq!(promise("completion_promise: a: b").as_deref(), Some("a: b"));
    assert_eq!(
        promise("completion_promise: 'it''s'").as_deref(),
        Some("it's")
    );
    for none in [
        "completion_promise:",
        "completion_promise: \"\"",
        "completion_promise: ~",
        "other: 1",
    ] {
        assert_eq!(promise(none), None, "{none}");
    }
}

#[test]
fn editors_may_have_had_their_way() {
    let text = foreign(&[("Build it", "Build\n\n---\nit")]);
    let expected = Sheet::read(&text).unwrap();
    assert_eq!(expected.prompt, "Build\n\n---\nit");
    for edited in [
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
        text.trim_end().to_owned(),
        text.replacen("---\n", "--- \n", 2),
        text.replace("---\n\nBuild", "---\nBuild"),
        text.replace(
            "active: true",
            "active: true\nnotes:\n  - of: mine\n# a: comment\n# a: comment\n",
        ),
        text.replace("active: true\n", ""),
        text.replace("iteration: 1", "iteration:   1  "),
    ] {
        assert_eq!(Sheet::read(&edited).as_ref(), Ok(&expected), "{edited:?}");
    }
    assert!(
        !Sheet::read(&text.replace("active: true", "active: false"))
            .unwrap()
            .active
    );
}

#[test]
fn what_is_wrong_is_said() {
    let long = format!("iteration: {}", "9".repeat(500));
    for (text, wrong) in [
        (String::new(), "it does not begin with a line ---"),
        ("Build it".into(), "it does not begin with a line ---"),
        (
            "---\niteration: 1\n".into(),
            "its front matter has no end: there is no second line ---",
        ),
        (
            "---".into(),
            "its front matter has no end: there is no second line ---",
        ),
        (
            foreign(&[("Build it", " \t")]),
            "it has no prompt behind the front matter",
        ),
        (
            foreign(&[("iteration: 1", "iteration: abc")]),
            "`iteration` must be a whole number, and is \"abc\"",
        ),
        (
            foreign(&[("iteration: 1", "iteration: ")]),
            "`iteration` must be a whole number, and is \"\"",
        ),
        (
            foreign(&[("iteration: 1", "iteration: -1")]),
            "`iteration` must be a whole number, and is \"-1\"",
        ),
        (
            foreign(&[("iteration: 1", "iteration: 4294967296")]),
            "`iteration` is too big a number: \"4294967296\"",
        ),
        (
            foreign(&[("iteration: 1", "x: 1")]),
            "it has no `iteration`",
        ),
        (
            foreign(&[("max_iterations: 0", "")]),
            "it has no `max_iterations`",
        ),
        (
            foreign(&[("max_iterations: 0", "max_iterations: 1.5")]),
            "`max_iterations` must be a whole number, and is \"1.5\"",
        ),
        (
            foreign(&[("active: true", "active: yes")]),
            "`active` must be true or false, and is \"yes\"",
        ),
        (
            foreign(&[("active: true", "iteration: 7")]),
            "its front matter has `iteration` twice",
        ),
        (
            foreign(&[(
                "completion_promise: null",
                "completion_promise: \"two\nlines\"",
            )]),
            "`completion_promise` begins with a quote and has no closing one: \"\\\"two\"",
        ),
        (
            foreign(&[("active: true", "loop: \"bad \\escape\"")]),
            "`loop` must be one text in quotes, and is \"\\\"bad \\\\escape\\\"\"",
        ),
    ] {
        assert_eq!(Sheet::read(&text), Err(wrong.to_owned()), "{text:?}");
    }
    assert!(
        Sheet::read(&foreign(&[("iteration: 1", &long)]))
            .unwrap_err()
            .len()
            < 150
    );
}

/// A text from a seed, of pieces that matter here and any others.
fn random(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 14] = [
        "---",
        "\n",
        "\n---\n",
        "\r\n",
        "\r",
        "\"",
        "\\",
        "'",
        ": ",
        "null",
        "iteration: 9",
        "\u{feff}",
        " ",
        "🎉",
    ];
    let piece = |random: &mut fastrand::Rng| match random.usize(..=PIECES.len()) {
        at if at < PIECES.len() => PIECES[at].to_owned(),
        _ => random.char(..).to_string(),
    };
    (0..random.usize(..12)).map(|_| piece(random)).collect()
}

#[test]
fn what_is_written_is_read_again() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let words =
            |rng: &mut fastrand::Rng| Some(random(rng)).filter(|words| !words.trim().is_empty());
        let sheet = Sheet {
            active: rng.bool(),
            iteration: rng.u32(..),
            max_iterations: rng.u32(..),
            promise: words(&mut rng),
            started_at: words(&mut rng).unwrap_or_default(),
            session: words(&mut rng),
            name: words(&mut rng),
            prompt: words(&mut rng).unwrap_or_else(|| "x".into()),
        };
        assert_eq!(
            Sheet::read(&sheet.text()),
            Ok(sheet.clone()),
            "{seed}: {:?}",
            sheet.text()
        );
    }
}

#[test]
fn whatever_is_read_can_be_written() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = foreign(&[
            ("Build it", &random(&mut rng)),
            ("active: true", &random(&mut rng)),
        ]);
        for _ in 0..rng.usize(..3) {
            let at = rng.usize(..=text.len());
            if text.is_char_boundary(at) {
                text.insert_str(at, &random(&mut rng));
            }
        }
        if let Ok(sheet) = Sheet::read(&text) {
            read += 1;
            assert_eq!(Sheet::read(&sheet.text()), Ok(sheet), "{seed}: {text:?}");
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn a_sheet_is_saved_whole_and_only_if_it_changed() {
    let place = tempfile::tempdir().unwrap();
    let (dir, mut sheet) = (place.path(), sheet());
    assert_eq!(load(dir), Loaded::None);
    remove(dir).unwrap();
    save(dir, &sheet).unwrap();
    assert_eq!(load(dir), Loaded::Some(sheet.clone()));
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(Sheet::path(dir)).unwrap());
    // Held open, so that its number is not given to another.
    let (_held, first) = (fs::File::open(Sheet::path(dir)).unwrap(), inode());
    save(dir, &sheet).unwrap();
    assert_eq!(inode(), first);
    sheet.iteration += 1;
    fs::write(
        dir.join(format!(
            ".claude/.ralph-loop.local.{}.new",
            std::process::id()
        )),
        "stale",
    )
    .unwrap();
    save(dir, &sheet).unwrap();
    assert_ne!(inode(), first);
    assert_eq!(load(dir), Loaded::Some(sheet));
    assert_eq!(
        fs::read_dir(dir.join(".claude")).unwrap().count(),
        1,
        "no draft is left"
    );
    remove(dir).unwrap();
    assert_eq!(load(dir), Loaded::None);
}

#[test]
fn what_is_no_sheet_is_broken_and_set_aside() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let path = Sheet::path(dir);
    let broken = || match load(dir) {
        Loaded::Broken(wrong) => wrong,
        other => panic!("{other:?}"),
    };
    fs::create_dir(dir.join(".claude")).unwrap();
    fs::write(&path, b"---\n\xff").unwrap();
    assert_eq!(broken(), "it is not UTF-8 text");
    assert_eq!(
        set_aside(dir).unwrap(),
        dir.join(".claude/ralph-loop.local.broken.md")
    );
    assert_eq!(load(dir), Loaded::None);
    symlink("/dev/zero", &path).unwrap();
    assert_eq!(broken(), "it is a link");
    assert_eq!(
        set_aside(dir).unwrap(),
        dir.join(".claude/ralph-loop.local.broken.2.md")
    );
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(broken(), "it is not a regular file");
    assert_eq!(
        set_aside(dir).unwrap(),
        dir.join(".claude/ralph-loop.local.broken.3.md")
    );
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(broken(), "it is larger than 32 MiB");
    save(dir, &sheet()).unwrap();
    assert_eq!(load(dir), Loaded::Some(sheet()));
    remove(dir).unwrap();
    assert!(set_aside(dir).is_err());
    assert_eq!(
        fs::read(dir.join(".claude/ralph-loop.local.broken.md")).unwrap(),
        b"---\n\xff"
    );
}
