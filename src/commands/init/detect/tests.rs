//! A table of directories and the checks detected in each. `tests/it/init.rs` covers detection that
//! runs programs, which needs a process of its own.

use super::*;

type Case = (
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

/// Returns the checks that are detected in a directory with these files. A name that ends in `/` is
/// a directory.
fn checks(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        if name.ends_with('/') {
            std::fs::create_dir(path).unwrap();
        } else {
            std::fs::write(path, text).unwrap();
        }
    }
    detect(dir.path())
        .into_iter()
        .flat_map(|found| found.checks)
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn checks_are_detected_from_the_files_of_a_directory() {
    const SCRIPTS: &str = r#"{"scripts": {"test": "vitest", "lint": "eslint .", "typecheck": "tsc", "build": "vite build", "dev": "vite"}}"#;
    let cases: &[Case] = &[
        (&[], &[]),
        (&[("README.md", "cargo test")], &[]),
        (
            &[("go.mod", "module x")],
            &["go test ./...", "go vet ./..."],
        ),
        (
            &[("package.json", SCRIPTS)],
            &[
                "npm test",
                "npm run lint",
                "npm run typecheck",
                "npm run build",
            ],
        ),
        (
            &[("package.json", SCRIPTS), ("pnpm-lock.yaml", "")],
            &[
                "pnpm test",
                "pnpm run lint",
                "pnpm run typecheck",
                "pnpm run build",
            ],
        ),
        (
            &[
                ("package.json", r#"{"scripts": {"test": "jest"}}"#),
                ("yarn.lock", ""),
            ],
            &["yarn test"],
        ),
        (
            &[
                ("package.json", r#"{"scripts": {"test": "bun test"}}"#),
                ("bun.lock", ""),
            ],
            &["bun run test"],
        ),
        (
            &[
                (
                    "package.json",
                    r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#,
                ),
                ("yarn.lock", ""),
            ],
            &["pnpm test"],
        ),
        (
            &[(
                "package.json",
                r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
            )],
            &[],
        ),
        (&[("package.json", "{ not json")], &[]),
        (&[("pyproject.toml", "[project]")], &[]),
        (
            &[("pyproject.toml", "[project]"), ("tests/", "")],
            &["pytest"],
        ),
        (&[("requirements.txt", "pytest==8.0\n")], &["pytest"]),
        (
            &[
                (
                    "pyproject.toml",
                    "[tool.ruff]\n[tool.mypy]\n[tool.pytest.ini_options]\n",
                ),
                ("uv.lock", ""),
            ],
            &["uv run pytest", "uv run ruff check .", "uv run mypy ."],
        ),
        (&[("setup.cfg", "[mypy]\n")], &["mypy ."]),
        (&[("tests/", "")], &[]),
        (&[("pom.xml", "")], &["mvn -q verify"]),
        (&[("pom.xml", ""), ("mvnw", "")], &["./mvnw -q verify"]),
        (
            &[("build.gradle.kts", ""), ("gradlew", "")],
            &["./gradlew check"],
        ),
        (&[("settings.gradle", "")], &["gradle check"]),
        (
            &[(
                "Makefile",
                "build: test\n\tcc\ntest := 1\ntest2:\n\ttest:\n",
            )],
            &[],
        ),
        (
            &[(
                "Makefile",
                ".PHONY: test lint check\ntest lint: build\n\trun\ncheck::\n\trun\n",
            )],
            &["make test", "make check", "make lint"],
        ),
        (
            &[(
                "justfile",
                "test name:\n    run {{name}}\ncheck +names:\n    run\n",
            )],
            &[],
        ),
        (
            &[(
                "justfile",
                "lint := 'x'\n@test *ARGS:\n    run\nbuild test:\n    run\n",
            )],
            &["just test"],
        ),
        (
            &[("go.mod", ""), ("Makefile", "test:\n\tgo test\n")],
            &["go test ./...", "go vet ./...", "make test"],
        ),
    ];
    for (files, expected) in cases {
        assert_eq!(checks(files), *expected, "{files:?}");
    }
}
