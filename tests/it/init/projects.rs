//! The checks that `ralph init --settings` detects in repositories of many kinds.

use crate::kit::Test;

/// Files of a repository: a name that ends in `/` is a directory, one that begins with `!` is
/// executable.
type Files = &'static [(&'static str, &'static str)];

const SCRIPTS: &str = r#"{"scripts": {"test": "vitest", "lint": "eslint .", "typecheck": "tsc", "build": "vite build", "dev": "vite"}}"#;
const TEST: &str = r#"{"scripts": {"test": "x"}}"#;
const PRIVATE: &str = r#"{"private": true, "workspaces": ["packages/*"]}"#;

const CASES: &[(Files, &[&str])] = &[
    (&[], &[]),
    (&[("README.md", "cargo test")], &[]),
    // Node
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
    (&[("package.json", TEST), ("yarn.lock", "")], &["yarn test"]),
    (
        &[("package.json", TEST), ("bun.lock", "")],
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
    (
        &[(
            "package.json",
            r#"{"scripts": {"format:check": "prettier --check .", "check-types": "tsc"}}"#,
        )],
        &["npm run check-types", "npm run format:check"],
    ),
    (
        &[
            ("package.json", PRIVATE),
            ("packages/a/package.json", TEST),
            ("packages/b/package.json", SCRIPTS),
        ],
        &[
            "npm run test --workspaces --if-present",
            "npm run lint --workspaces --if-present",
            "npm run typecheck --workspaces --if-present",
            "npm run build --workspaces --if-present",
        ],
    ),
    (
        &[
            ("package.json", "{}"),
            ("pnpm-workspace.yaml", "packages:\n  - 'apps/*'\n  - core\n"),
            ("pnpm-lock.yaml", ""),
            ("apps/web/package.json", TEST),
            ("core/package.json", r#"{"scripts": {"lint": "x"}}"#),
        ],
        &["pnpm -r run test", "pnpm -r run lint"],
    ),
    (
        &[
            ("package.json", PRIVATE),
            ("yarn.lock", ""),
            ("packages/a/package.json", TEST),
            ("packages/b/package.json", SCRIPTS),
        ],
        &["yarn workspaces run test"],
    ),
    (
        &[
            ("package.json", PRIVATE),
            ("yarn.lock", ""),
            (".yarnrc.yml", ""),
            ("packages/a/package.json", TEST),
            ("packages/b/package.json", "{}"),
        ],
        &["yarn workspaces foreach -A run test"],
    ),
    (
        &[
            ("package.json", r#"{"scripts": {"lint": "turbo lint"}}"#),
            (
                "turbo.json",
                r#"{"tasks": {"test": {}, "lint": {}, "dev": {}}}"#,
            ),
            ("pnpm-lock.yaml", ""),
        ],
        &["pnpm exec turbo run test", "pnpm run lint"],
    ),
    (
        &[
            ("package.json", "{}"),
            (
                "nx.json",
                r#"{"targetDefaults": {"build": {}, "test": {}}}"#,
            ),
        ],
        &["npx nx run-many -t test", "npx nx run-many -t build"],
    ),
    (
        &[("package.json", "{}"), ("nx.json", "{}")],
        &["npx nx run-many -t test", "npx nx run-many -t lint"],
    ),
    // Deno
    (
        &[("deno.json", r#"{"tasks": {"test": "deno test -R"}}"#)],
        &["deno task test", "deno lint"],
    ),
    (
        &[("deno.jsonc", r#"{"test": {"exclude": []}} // none"#)],
        &["deno test --allow-all", "deno lint"],
    ),
    // Python
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
    (
        &[("requirements.txt", "flask\n"), ("!.venv/bin/pytest", "#!")],
        &[".venv/bin/pytest"],
    ),
    (
        &[("a.py", ""), ("!.venv/bin/pytest", "#!")],
        &[".venv/bin/pytest"],
    ),
    (
        &[
            ("tox.ini", "[tox]\n[testenv]\ncommands = pytest\n"),
            ("setup.py", ""),
        ],
        &["tox -e py"],
    ),
    (
        &[("pyproject.toml", "[tool.tox]\n[tool.ruff]\n")],
        &["tox -e py", "ruff check ."],
    ),
    (&[("noxfile.py", "import nox\n")], &["nox"]),
    (
        &[
            ("manage.py", ""),
            ("requirements.txt", "django\n"),
            ("!venv/bin/python", "#!"),
        ],
        &["venv/bin/python manage.py test"],
    ),
    (
        &[
            ("manage.py", ""),
            ("pyproject.toml", "pytest-django"),
            ("poetry.lock", ""),
        ],
        &["poetry run pytest"],
    ),
    // Go
    (
        &[("go.mod", "module x")],
        &["go test ./...", "go vet ./..."],
    ),
    (
        &[
            (
                "go.work",
                "go 1.23\n\nuse (\n\t./api // server\n\t./cli\n)\n",
            ),
            ("api/go.mod", ""),
            ("cli/go.mod", ""),
        ],
        &["go test ./api/... ./cli/...", "go vet ./api/... ./cli/..."],
    ),
    (
        &[("go.work", "use ./api\n"), ("go.mod", "")],
        &["go test ./api/...", "go vet ./api/..."],
    ),
    // JVM
    (&[("pom.xml", "")], &["mvn -q verify"]),
    (&[("pom.xml", ""), ("mvnw", "")], &["./mvnw -q verify"]),
    (
        &[("build.gradle.kts", ""), ("gradlew", "")],
        &["./gradlew check"],
    ),
    (&[("settings.gradle", "")], &["gradle check"]),
    (&[("build.sbt", "")], &["sbt test"]),
    // C and C++
    (
        &[("CMakeLists.txt", "project(x)\nenable_testing()\n")],
        &["cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure"],
    ),
    (
        &[("CMakeLists.txt", "project(x)\n")],
        &["cmake -B build && cmake --build build"],
    ),
    (
        &[("meson.build", "")],
        &["meson setup build && meson test -C build --print-errorlogs"],
    ),
    (&[("MODULE.bazel", "")], &["bazel test //..."]),
    (&[("WORKSPACE", "")], &["bazel test //..."]),
    // Others
    (&[("Shop.sln", ""), ("x.txt", "")], &["dotnet test"]),
    (&[("Shop.csproj", "")], &["dotnet test"]),
    (&[("Package.swift", ""), ("Tests/", "")], &["swift test"]),
    (&[("Package.swift", "")], &["swift build"]),
    (
        &[("pubspec.yaml", "name: x\n"), ("test/", "")],
        &["dart test", "dart analyze"],
    ),
    (
        &[
            (
                "pubspec.yaml",
                "dependencies:\n  flutter:\n    sdk: flutter\n",
            ),
            ("test/", ""),
        ],
        &["flutter test", "flutter analyze"],
    ),
    (&[("mix.exs", "")], &["mix test"]),
    (
        &[("mix.exs", "{:credo, \"~> 1.7\"}"), (".formatter.exs", "")],
        &["mix test", "mix format --check-formatted", "mix credo"],
    ),
    (
        &[("Gemfile", ""), ("spec/", ""), (".rubocop.yml", "")],
        &["bundle exec rspec", "bundle exec rubocop"],
    ),
    (
        &[("Gemfile", ""), ("bin/rails", ""), ("test/", "")],
        &["bin/rails test"],
    ),
    (
        &[("x.gemspec", ""), ("Rakefile", ""), ("test/", "")],
        &["bundle exec rake test"],
    ),
    (
        &[
            ("composer.json", r#"{"scripts": {"test": "phpunit"}}"#),
            ("phpstan.neon", ""),
        ],
        &["composer test", "vendor/bin/phpstan analyse"],
    ),
    (
        &[("composer.json", "{}"), ("phpunit.xml.dist", "")],
        &["vendor/bin/phpunit"],
    ),
    (
        &[("composer.json", "{}"), ("artisan", "")],
        &["php artisan test"],
    ),
    (&[("stack.yaml", ""), ("x.cabal", "")], &["stack test"]),
    (&[("cabal.project", "")], &["cabal test all"]),
    (&[("build.zig", "")], &["zig build test"]),
    // Recipes and scripts
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
        &[(
            "Taskfile.yml",
            "version: '3'\ntasks:\n  lint: golangci-lint run\n  test:\n    cmds: [go test]\n  run: x\n",
        )],
        &["task test", "task lint"],
    ),
    (&[("Taskfile.yml", "tasks: [")], &[]),
    (&[("!test.sh", "#!/bin/sh\n")], &["./test.sh"]),
    (&[("test.sh", "#!/bin/sh\n")], &[]),
    (&[("!scripts/test", "#!/bin/sh\n")], &["./scripts/test"]),
    (
        &[(".pre-commit-config.yaml", "repos: []\n")],
        &["pre-commit run --all-files"],
    ),
    (
        &[("go.mod", ""), ("Makefile", "test:\n\tgo test\n")],
        &["go test ./...", "go vet ./...", "make test"],
    ),
    // Projects in subdirectories
    (
        &[
            ("backend/pyproject.toml", "pytest"),
            ("!backend/.venv/bin/pytest", "#!"),
            ("front end/package.json", TEST),
            ("docs/package.json", TEST),
            ("node_modules/x/package.json", TEST),
            (".hidden/go.mod", ""),
        ],
        &[
            "cd backend && .venv/bin/pytest",
            "cd 'front end' && npm test",
        ],
    ),
    (
        &[
            ("services/api/go.mod", ""),
            ("apps/web/package.json", TEST),
            ("infra/main.tf", ""),
        ],
        &[
            "cd apps/web && npm test",
            "cd services/api && go test ./...",
            "cd services/api && go vet ./...",
        ],
    ),
    // Of the same kind as the top, which covers it; of another kind.
    (
        &[
            ("go.mod", ""),
            ("tools/go.mod", ""),
            ("ui/package.json", TEST),
        ],
        &["go test ./...", "go vet ./...", "cd ui && npm test"],
    ),
    (
        &[
            (".pre-commit-config.yaml", ""),
            ("api/go.mod", "module x\n"),
        ],
        &[
            "pre-commit run --all-files",
            "cd api && go test ./...",
            "cd api && go vet ./...",
        ],
    ),
    (
        &[("Makefile", "test:\n\trun\n"), ("ui/package.json", TEST)],
        &["make test"],
    ),
];

/// Returns the checks that `init --settings` reports in a repository with these files.
fn detected(files: Files) -> Vec<String> {
    let mut test = Test::new();
    for (name, text) in files {
        test = match name.strip_prefix('!') {
            Some(name) => test.program(name, text),
            None if name.ends_with('/') => test.file(&format!("{name}.keep"), ""),
            None => test.file(name, text),
        };
    }
    let done = test.ralph(&["init", "--settings"]).exits(0);
    let settings: toml::Table = toml::from_str(&test.read(".ralph/settings.toml")).unwrap();
    let enabled = settings.get("checks").and_then(toml::Value::as_array);
    let enabled: Vec<&str> = enabled
        .into_iter()
        .flatten()
        .map(|check| check["command"].as_str().unwrap())
        .collect();
    let found = done
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("found ")?.split_once(": "))
        .filter(|(_, checks)| *checks != "no checks")
        .flat_map(|(_, checks)| checks.split(" · "));
    found
        .map(|check| {
            let bare = check.strip_suffix(" (not installed: commented out)");
            let check = bare.unwrap_or(check);
            let is_enabled = enabled.contains(&check);
            assert_eq!(is_enabled, bare.is_none(), "{check} in {enabled:?}");
            check.to_owned()
        })
        .collect()
}

#[test]
fn checks_are_detected_in_repositories_of_many_kinds() {
    for (files, expected) in CASES {
        assert_eq!(detected(files), *expected, "{files:?}");
    }
}
