use super::super::guards::{GuardClass, is_in_ignored_directory, rows, table};
use super::super::merge::merge_row;

/// Paths that judge the work, by ecosystem.
const GUARDS: &str = ".gitignore sub/.gitignore
    test_a.py pkg/test_a.py pkg/a_test.py tests/helper.py tests/data/x.json pkg/tests/__init__.py
    conftest.py pkg/deep/conftest.py pytest.ini tox.ini setup.cfg setup.py noxfile.py ruff.toml
    .ruff.toml mypy.ini .mypy.ini .coveragerc .flake8 pyproject.toml sub/pyproject.toml
    src/a.test.js src/a.spec.tsx src/__tests__/a.js __mocks__/fs.js test/a.mjs test.js
    src/__snapshots__/a.test.js.snap jest.config.js jest.config.ts vitest.config.mts vite.config.ts
    .mocharc.yml eslint.config.mjs .eslintrc .eslintrc.json .eslintignore tsconfig.json
    tsconfig.build.json .prettierrc prettier.config.js .npmrc .babelrc package.json sub/package.json
    cypress/e2e/a.ts playwright.config.ts biome.json
    tests/it.rs crates/a/tests/it.rs src/tests.rs src/a/tests/mod.rs src/a_test.rs build.rs benches/b.rs
    .cargo/config.toml rust-toolchain.toml clippy.toml rustfmt.toml .config/nextest.toml Cargo.toml
    crates/a/Cargo.toml src/snapshots/a.snap
    a_test.go pkg/a_test.go pkg/testdata/x.golden .golangci.yml go.mod go.work
    Makefile sub/Makefile GNUmakefile makefile rules.mk CMakeLists.txt cmake/x.cmake test_list.c
    list_test.c meson.build configure.ac .clang-tidy tests/run.sh run_tests.sh test.sh
    spec/a_spec.rb spec/support/x.rb spec/spec_helper.rb test/test_a.rb .rspec .rubocop.yml Rakefile Gemfile
    src/test/java/ATest.java app/src/test/kotlin/A.kt src/main/java/ATest.java pom.xml build.gradle
    build.gradle.kts settings.gradle gradlew gradle/wrapper/gradle-wrapper.properties .mvn/maven.config mvnw
    tests/ATest.php src/ATest.php phpunit.xml phpunit.xml.dist phpstan.neon composer.json
    A.Tests/A.cs src/ATests.cs A.csproj Directory.Build.props test.runsettings A.sln global.json
    .github/workflows/ci.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile
    .pre-commit-config.yaml justfile Taskfile.yml .editorconfig .gitattributes fixtures/a.json a.golden";

/// Paths that are the work itself, or lists of dependencies.
const SOURCES: &str = "
    main.py pkg/__init__.py src/attest.py contest.py testing.py latest.py src/protester.py README.md
    requirements.txt requirements-dev.txt poetry.lock uv.lock Pipfile src/a.js src/index.tsx
    src/latest.js package-lock.json yarn.lock pnpm-lock.yaml bun.lock src/lib.rs src/main.rs src/attestation.rs
    Cargo.lock main.go pkg/contest.go go.sum list.c list.h src/fastest.c lib/a.rb Gemfile.lock
    src/main/java/A.java src/Contest.kt src/A.php composer.lock Program.cs packages.lock.json index.html
    docs/testing.md data.json LICENSE .env Manifest.md spec/openapi.yaml specification.md
    attest/main.py protest.sh src/coverage.py";

#[test]
fn files_that_judge_the_work_are_guards() {
    let missed: Vec<_> = GUARDS
        .split_whitespace()
        .filter(|path| !table().matches(path.as_bytes()).is_guard(false))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn the_work_itself_and_lists_of_dependencies_are_no_guards() {
    let wrong: Vec<_> = SOURCES
        .split_whitespace()
        .filter(|path| table().matches(path.as_bytes()).is_guard(false))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn files_that_shadow_a_runner_are_guards_only_if_they_are_new() {
    let shadows = "pytest.py sub/pytest.py unittest.py sitecustomize.py x.pth pytest/__init__.py \
        coverage.py evil-1.0.dist-info/entry_points.txt evil.egg-info/entry_points.txt pytest_evil.py minitest.rb \
        argparse.py json/__init__.py src/assert.h lib/Test/More.pm";
    for path in shadows.split_whitespace() {
        let matches = table().matches(path.as_bytes());
        assert!(matches.is_guard(true), "{path}");
        assert!(!matches.is_guard(false), "{path}");
    }
}

#[test]
fn every_manifest_is_merged_as_its_row_says() {
    for row in &rows().manifests {
        let matches = table().matches(row.name.as_bytes());
        let is_manifest = |(_, class): &(usize, GuardClass)| *class == GuardClass::Manifest;
        assert!(matches.guards.iter().any(is_manifest), "{}", row.name);
        assert!(merge_row(format!("sub/{}", row.name).as_bytes()).is_some());
    }
    assert!(merge_row(b"sub/other.json").is_none());
}

#[test]
fn directories_of_dependencies_are_known_by_name() {
    for path in [
        "node_modules",
        "a/node_modules/b/c",
        ".venv/bin/python",
        "x/__pycache__/a.pyc",
    ] {
        let is_dir = path == "node_modules";
        assert!(
            is_in_ignored_directory(path.as_bytes(), is_dir, true),
            "{path}"
        );
    }
    for path in ["target/debug/x", "build/x", "vendor/x"] {
        assert!(
            !is_in_ignored_directory(path.as_bytes(), false, true),
            "{path}"
        );
        assert!(
            is_in_ignored_directory(path.as_bytes(), false, false),
            "{path}"
        );
    }
    for path in ["node_modules.md", "src/venv", "src/my_node_modules/x"] {
        assert!(
            !is_in_ignored_directory(path.as_bytes(), false, false),
            "{path}"
        );
    }
}
