use super::super::merge::{is_same, merge, merge_row};
use super::{Site, names};

fn merged(name: &str, original: &str, candidate: &str) -> String {
    let row = merge_row(name.as_bytes()).unwrap();
    let bytes = merge(row, original.as_bytes(), candidate.as_bytes()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn dependencies_of_a_package_are_taken_and_its_scripts_are_not() {
    let original = r#"{
  "name": "a", "scripts": { "test": "jest" }, "exports": { "import": "./a", "default": "./b" },
  "dependencies": { "left": "^1.0.0", "gone": "1" }, "jest": { "bail": 1 }
}"#;
    let candidate = r#"{
  "name": "b", "scripts": { "test": "true" }, "jest": { "testMatch": [] }, "exports": {},
  "dependencies": { "left": "^2.0.0", "new": "git+ssh://host/new" }, "devDependencies": { "x": "1" }
}"#;
    let text = merged("package.json", original, candidate);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "name": "a", "scripts": { "test": "jest" }, "exports": { "import": "./a", "default": "./b" },
            "dependencies": { "left": "^2.0.0", "new": "git+ssh://host/new" },
            "devDependencies": { "x": "1" }, "jest": { "bail": 1 },
        })
    );
    // The order of conditions has a meaning.
    assert!(text.find("import").unwrap() < text.find("default").unwrap());
}

#[test]
fn a_dependency_from_a_registry_is_not_replaced_by_a_path() {
    let text = merged(
        "package.json",
        r#"{ "devDependencies": { "jest": "^29.0.0", "mine": "file:mine" } }"#,
        r#"{ "devDependencies": { "jest": "file:./fake", "mine": "file:other", "vitest": "npm:fake@1" } }"#,
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value["devDependencies"],
        serde_json::json!({ "jest": "^29.0.0", "mine": "file:other", "vitest": "npm:fake@1" })
    );
    let text = merged(
        "Cargo.toml",
        "[dev-dependencies]\nproptest = \"1\"\nother = { version = \"1\" }\n",
        "[dev-dependencies]\nproptest = { path = \"fake\" }\nother = { version = \"2\" }\nnew = { path = \"new\" }\n",
    );
    let table: toml::Table = toml::from_str(&text).unwrap();
    let wanted = "[dev-dependencies]\nproptest = \"1\"\nother = { version = \"2\" }\nnew = { path = \"new\" }\n";
    assert_eq!(table, toml::from_str(wanted).unwrap());
    let text = merged(
        "pyproject.toml",
        "[project]\ndependencies = [\"requests>=2\"]\n[dependency-groups]\ndev = [\"pytest>=8\"]\n",
        "[project]\ndependencies = [\"requests>=3\", \"new @ file:///new\"]\n[dependency-groups]\ndev = [\"PyTest @ file:///fake\", \"x\"]\n",
    );
    let table: toml::Table = toml::from_str(&text).unwrap();
    let wanted = "[project]\ndependencies = [\"requests>=3\", \"new @ file:///new\"]\n[dependency-groups]\ndev = [\"x\"]\n";
    assert_eq!(table, toml::from_str(wanted).unwrap());
}

#[test]
fn profiles_lints_and_targets_of_a_crate_are_the_original_ones() {
    let original = "[package]\nname = \"a\"\n\n[dependencies]\nserde = \"1\"\n\n[lints.clippy]\nall = \"deny\"\n";
    let candidate = "[package]\nname = \"a\"\nautotests = false\n\n[lib]\ntest = false\n\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\n\n[dependencies.new]\nversion = \"2\"\n\n[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n\n[profile.test]\ndebug-assertions = false\n";
    let table: toml::Table = toml::from_str(&merged("Cargo.toml", original, candidate)).unwrap();
    let wanted = "[package]\nname = \"a\"\n\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nnew = { version = \"2\" }\n\n[lints.clippy]\nall = \"deny\"\n[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n";
    assert_eq!(table, toml::from_str(wanted).unwrap());
}

#[test]
fn a_removed_dependency_is_removed() {
    let table: toml::Table = toml::from_str(&merged(
        "Cargo.toml",
        "[package]\nname = \"a\"\n[dependencies]\na = \"1\"\n[build-dependencies]\nb = \"1\"\n",
        "[package]\nname = \"b\"\n",
    ))
    .unwrap();
    assert_eq!(table, toml::from_str("[package]\nname = \"a\"\n").unwrap());
}

#[test]
fn requirements_of_a_go_module_are_taken_and_replacements_are_not() {
    let original = "module a\n\ngo 1.22 // comment\n\nrequire x v1.0.0\n";
    let candidate = "module a\n\ngo 1.23\n\nrequire (\n\tx v1.1.0\n\ty v1.0.0 // indirect\n)\n\nreplace x => ./fake\n";
    assert_eq!(
        merged("go.mod", original, candidate),
        "module a\ngo 1.22\nrequire (\nx v1.1.0\ny v1.0.0\n)\n"
    );
}

#[test]
fn a_manifest_that_cannot_be_parsed_is_not_merged() {
    for (name, broken) in [
        ("package.json", "{"),
        ("Cargo.toml", "[x"),
        ("package.json", "[]"),
        ("package.json", "\u{0}"),
    ] {
        let row = merge_row(name.as_bytes()).unwrap();
        let good = if name == "Cargo.toml" { "" } else { "{}" };
        assert_eq!(
            merge(row, good.as_bytes(), broken.as_bytes()),
            None,
            "{name} {broken}"
        );
        assert_eq!(
            merge(row, broken.as_bytes(), good.as_bytes()),
            None,
            "{name} {broken}"
        );
        assert_eq!(merge(row, good.as_bytes(), b"\xff"), None);
    }
}

#[test]
fn merging_never_fails_on_what_can_be_parsed() {
    let mut random = fastrand::Rng::with_seed(11);
    let toml = [
        "[dependencies]\n",
        "[target.x.dependencies]\n",
        "a = \"1\"\n",
        "b.path = \"x\"\n",
        "dependencies = 1\n",
        "[project]\n",
        "[tool.poetry]\n",
        "dependencies = [\"a @ b\"]\n",
        "target = 3\n",
        "[[target]]\n",
        "x = {}\n",
    ];
    let json = [
        "{}",
        "{\"dependencies\":1}",
        "{\"dependencies\":{\"a\":[]}}",
        "{\"require\":{\"a\":\"path:x\"}}",
        "{\"a\":1,\"a\":2}",
    ];
    for _ in 0..5000 {
        let mut text = |parts: &[&str], max| -> String {
            (0..random.usize(1..=max))
                .map(|_| parts[random.usize(0..parts.len())])
                .collect()
        };
        for (name, parts, max) in [
            ("Cargo.toml", &toml[..], 5),
            ("pyproject.toml", &toml[..], 5),
            ("package.json", &json[..], 1),
            ("composer.json", &json[..], 1),
            (
                "go.mod",
                &["require (\n", ")\n", "x\n", "replace x\n", "//\n"][..],
                5,
            ),
        ] {
            let (a, b) = (text(parts, max), text(parts, max));
            let row = merge_row(name.as_bytes()).unwrap();
            if let Some(merged) = merge(row, a.as_bytes(), b.as_bytes()) {
                let again = merge(row, &merged, &merged).expect("what was merged can be parsed");
                assert!(is_same(row, &again, &merged), "{a}\n---\n{b}");
            }
        }
    }
}

#[test]
fn a_manifest_with_other_dependencies_is_a_source_and_with_other_settings_a_guard() {
    let site = Site::new();
    let original = "{\"scripts\":{\"test\":\"jest\"},\"dependencies\":{}}";
    site.write("package.json", original)
        .write("sub/package.json", original)
        .write("bad/package.json", original);
    let baseline = site.take();
    site.write(
        "package.json",
        "{\"dependencies\":{\"a\":\"1\"},\"scripts\":{\"test\":\"jest\"}}\n",
    );
    site.write("sub/package.json", "{\"scripts\":{\"test\":\"true\"}}")
        .write("bad/package.json", "{");
    site.write("new/package.json", "{}");
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.sources), ["~package.json"]);
    assert_eq!(
        names(&touched.files.guards),
        ["~bad/package.json", "~sub/package.json"]
    );
    assert_eq!(names(&touched.files.first_guards), ["+new/package.json"]);
    let view = site.view(&baseline, &touched);
    assert_eq!(view["bad/package.json"].as_deref(), Some(original));
    assert_eq!(
        view["sub/package.json"].as_deref(),
        Some("{\n  \"scripts\": {\"test\":\"jest\"}\n}\n")
    );
}
