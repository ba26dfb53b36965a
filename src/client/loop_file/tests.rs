//! Tests of loop files: valid files, their written form, and invalid files.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn file() -> LoopFile {
    LoopFile {
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

/// Returns a file in the original plugin's format, with some lines replaced.
fn original(changes: &[(&str, &str)]) -> String {
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
    LoopFile::parse(&original(&[("completion_promise: null", line)]))
        .unwrap()
        .promise
}

#[test]
fn a_file_is_written_as_documented() {
    let text = "---\nactive: true\niteration: 3\nmax_iterations: 20\ncompletion_promise: \"ALL \\\"DONE\\\" \\\\o/\"\n\
                started_at: \"2026-01-02T03:04:05Z\"\nsession_id: \"0b1b93a5-6c35\"\nloop: \"claude-6c35\"\n---\n\n\
                Build a\n---\ntodo API\n";
    assert_eq!(file().to_text(), text);
    assert_eq!(LoopFile::parse(text), Ok(file()));
}

#[test]
fn a_file_of_the_original_plugin_is_parsed_as_it_means_it() {
    let read = LoopFile::parse(&original(&[])).unwrap();
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
fn harmless_edits_do_not_invalidate_a_file() {
    let text = original(&[("Build it", "Build\n\n---\nit")]);
    let expected = LoopFile::parse(&text).unwrap();
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
        assert_eq!(
            LoopFile::parse(&edited).as_ref(),
            Ok(&expected),
            "{edited:?}"
        );
    }
    assert!(
        !LoopFile::parse(&text.replace("active: true", "active: false"))
            .unwrap()
            .active
    );
}

#[test]
fn invalid_files_are_rejected_with_a_reason() {
    let long = format!("iteration: {}", "9".repeat(500));
    for (text, reason) in [
        (String::new(), "its first line is not ---"),
        ("Build it".into(), "its first line is not ---"),
        (
            "---\niteration: 1\n".into(),
            "its front matter has no closing --- line",
        ),
        ("---".into(), "its front matter has no closing --- line"),
        (
            original(&[("Build it", " \t")]),
            "it has no prompt after the front matter",
        ),
        (
            original(&[("iteration: 1", "iteration: abc")]),
            "`iteration` must be a whole number, not \"abc\"",
        ),
        (
            original(&[("iteration: 1", "iteration: ")]),
            "`iteration` must be a whole number, not \"\"",
        ),
        (
            original(&[("iteration: 1", "iteration: -1")]),
            "`iteration` must be a whole number, not \"-1\"",
        ),
        (
            original(&[("iteration: 1", "iteration: 4294967296")]),
            "`iteration` is too large: \"4294967296\"",
        ),
        (
            original(&[("iteration: 1", "x: 1")]),
            "`iteration` is missing",
        ),
        (
            original(&[("max_iterations: 0", "")]),
            "`max_iterations` is missing",
        ),
        (
            original(&[("max_iterations: 0", "max_iterations: 1.5")]),
            "`max_iterations` must be a whole number, not \"1.5\"",
        ),
        (
            original(&[("active: true", "active: yes")]),
            "`active` must be true or false, not \"yes\"",
        ),
        (
            original(&[("active: true", "iteration: 7")]),
            "`iteration` occurs twice in the front matter",
        ),
        (
            original(&[(
                "completion_promise: null",
                "completion_promise: \"two\nlines\"",
            )]),
            "`completion_promise` has no closing quote: \"\\\"two\"",
        ),
        (
            original(&[("active: true", "loop: \"bad \\escape\"")]),
            "`loop` must be a quoted text, not \"\\\"bad \\\\escape\\\"\"",
        ),
    ] {
        assert_eq!(LoopFile::parse(&text), Err(reason.to_owned()), "{text:?}");
    }
    assert!(
        LoopFile::parse(&original(&[("iteration: 1", &long)]))
            .unwrap_err()
            .len()
            < 150
    );
}

/// Generates a random text from pieces, some of which matter to the parser.
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
fn written_files_are_parsed_again() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let text =
            |rng: &mut fastrand::Rng| Some(random(rng)).filter(|text| !text.trim().is_empty());
        let file = LoopFile {
            active: rng.bool(),
            iteration: rng.u32(..),
            max_iterations: rng.u32(..),
            promise: text(&mut rng),
            started_at: text(&mut rng).unwrap_or_default(),
            session: text(&mut rng),
            name: text(&mut rng),
            prompt: text(&mut rng).unwrap_or_else(|| "x".into()),
        };
        assert_eq!(
            LoopFile::parse(&file.to_text()),
            Ok(file.clone()),
            "{seed}: {:?}",
            file.to_text()
        );
    }
}

#[test]
fn parsed_files_can_be_written_again() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = original(&[
            ("Build it", &random(&mut rng)),
            ("active: true", &random(&mut rng)),
        ]);
        for _ in 0..rng.usize(..3) {
            let at = rng.usize(..=text.len());
            if text.is_char_boundary(at) {
                text.insert_str(at, &random(&mut rng));
            }
        }
        if let Ok(file) = LoopFile::parse(&text) {
            read += 1;
            assert_eq!(
                LoopFile::parse(&file.to_text()),
                Ok(file),
                "{seed}: {text:?}"
            );
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn a_file_is_saved_atomically_and_only_if_it_changed() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, mut file) = (temp.path(), file());
    assert_eq!(load(dir), LoadedLoopFile::Missing);
    remove(dir).unwrap();
    save(dir, &file).unwrap();
    assert_eq!(load(dir), LoadedLoopFile::Valid(file.clone()));
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(LoopFile::path(dir)).unwrap());
    // Kept open, so that its inode number is not reused.
    let (_open, first) = (fs::File::open(LoopFile::path(dir)).unwrap(), inode());
    save(dir, &file).unwrap();
    assert_eq!(inode(), first);
    file.iteration += 1;
    fs::write(
        dir.join(format!(
            ".claude/.ralph-loop.local.{}.new",
            std::process::id()
        )),
        "stale",
    )
    .unwrap();
    save(dir, &file).unwrap();
    assert_ne!(inode(), first);
    assert_eq!(load(dir), LoadedLoopFile::Valid(file));
    assert_eq!(
        fs::read_dir(dir.join(".claude")).unwrap().count(),
        1,
        "no draft is left"
    );
    remove(dir).unwrap();
    assert_eq!(load(dir), LoadedLoopFile::Missing);
}

#[test]
fn invalid_files_are_reported_and_moved_aside() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let path = LoopFile::path(dir);
    let broken = || match load(dir) {
        LoadedLoopFile::Invalid(reason) => reason,
        other => panic!("{other:?}"),
    };
    fs::create_dir(dir.join(".claude")).unwrap();
    fs::write(&path, b"---\n\xff").unwrap();
    assert_eq!(broken(), "it is not valid UTF-8");
    assert_eq!(
        move_aside(dir).unwrap(),
        dir.join(".claude/ralph-loop.local.broken.md")
    );
    assert_eq!(load(dir), LoadedLoopFile::Missing);
    symlink("/dev/zero", &path).unwrap();
    assert_eq!(broken(), "not a regular file");
    assert_eq!(
        move_aside(dir).unwrap(),
        dir.join(".claude/ralph-loop.local.broken.2.md")
    );
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(broken(), "not a regular file");
    assert_eq!(
        move_aside(dir).unwrap(),
        dir.join(".claude/ralph-loop.local.broken.3.md")
    );
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(broken(), "it is larger than 32 MiB");
    save(dir, &file()).unwrap();
    assert_eq!(load(dir), LoadedLoopFile::Valid(file()));
    remove(dir).unwrap();
    assert!(move_aside(dir).is_err());
    assert_eq!(
        fs::read(dir.join(".claude/ralph-loop.local.broken.md")).unwrap(),
        b"---\n\xff"
    );
}
