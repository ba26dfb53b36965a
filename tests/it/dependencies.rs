//! The dependencies comply with deny.toml, even where `cargo deny` is not installed.
//!
//! These tests implement only the part of `cargo deny check bans licenses sources` that this repository needs. A key that
//! could change the result and is not implemented fails a test.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use toml::Table;

/// The index of crates.io, as in Cargo.lock: the only source that is allowed by default.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn read(path: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Reads a table of deny.toml. Panics if it has other keys than these.
fn policy(name: &str, known: &[&str]) -> Table {
    let table = read("deny.toml")[name].as_table().unwrap().clone();
    let unknown: Vec<&String> = table
        .keys()
        .filter(|key| !known.contains(&key.as_str()))
        .collect();
    assert!(
        unknown.is_empty(),
        "[{name}] has {unknown:?}, which this test does not understand"
    );
    table
}

fn strings(list: &toml::Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Returns the name and source of every locked package, for all targets and features, ralph
/// included.
fn locked() -> Vec<(String, Option<String>)> {
    let lock = read("Cargo.lock");
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let packages = lock["package"].as_array().unwrap().iter();
    packages
        .map(|package| (text(package, "name").unwrap(), text(package, "source")))
        .collect()
}

/// Returns the output of `cargo metadata` for one target. For a target other than the host,
/// packages may have to be downloaded first.
fn metadata(target: &str) -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "metadata",
        "--locked",
        "--offline",
        "--all-features",
        "--format-version=1",
        "--filter-platform",
        target,
    ]);
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    serde_json::from_slice(&done.stdout).unwrap()
}

fn host() -> String {
    let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap()
        .to_owned()
}

/// Returns whether an SPDX expression can be satisfied with these licenses alone.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // Older manifests use a slash for OR.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    let result = any_of(&mut rest, allowed);
    assert!(
        rest.is_empty(),
        "{expression:?} cannot be read from {rest:?} on"
    );
    result
}

fn next_is(rest: &mut &[&str], token: &str) -> bool {
    let is_next = rest.first() == Some(&token);
    if is_next {
        *rest = &rest[1..];
    }
    is_next
}

/// Parses terms joined by OR; AND binds more tightly.
fn any_of(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut result = all_of(rest, allowed);
    while next_is(rest, "OR") {
        result |= all_of(rest, allowed);
    }
    result
}

fn all_of(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut result = license(rest, allowed);
    while next_is(rest, "AND") {
        result &= license(rest, allowed);
    }
    result
}

fn license(rest: &mut &[&str], allowed: &[String]) -> bool {
    if next_is(rest, "(") {
        let result = any_of(rest, allowed);
        assert!(
            next_is(rest, ")"),
            "a bracket is not closed before {rest:?}"
        );
        return result;
    }
    let (name, after) = rest.split_first().expect("a licence");
    *rest = after;
    if !next_is(rest, "WITH") {
        return allowed.iter().any(|known| known == name);
    }
    let (exception, after) = rest.split_first().expect("an exception");
    *rest = after;
    allowed.contains(&format!("{name} WITH {exception}"))
}

/// Returns the packages of a target whose license is not allowed.
fn unlicensed(target: &str) -> Vec<String> {
    let known = ["allow", "unused-allowed-license", "confidence-threshold"];
    let allowed = strings(&policy("licenses", &known)["allow"]);
    let metadata = metadata(target);
    let packages = metadata["packages"].as_array().unwrap();
    assert!(
        packages.len() > 10,
        "{target} has {} packages",
        packages.len()
    );
    let license = |package: &Value| package["license"].as_str().unwrap_or("none").to_owned();
    let found = packages
        .iter()
        .filter(|package| !is_allowed(&license(package), &allowed));
    found
        .map(|package| format!("{}: {}", package["name"], license(package)))
        .collect()
}

/// Returns the crates that ralph links on this host, with or without its default features.
fn linked(args: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--locked", "--offline", "--edges=normal"])
        .args(["--prefix=none", "--format={p}"])
        .args(args);
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines()
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

#[test]
fn the_library_without_default_features_links_no_command_line_crate() {
    let manifest = read("Cargo.toml");
    let crates = |feature: &str| strings(&manifest["features"][feature]).into_iter();
    let cli: BTreeSet<String> = crates("cli")
        .chain(crates("fleet"))
        .filter_map(|name| Some(name.strip_prefix("dep:")?.to_owned()))
        .collect();
    let (library, program) = (linked(&["--no-default-features"]), linked(&[]));
    assert!(library.contains("regex"), "{library:?}");
    assert_eq!(library.intersection(&cli).count(), 0, "{library:?}");
    assert!(program.is_superset(&cli), "{program:?}");
    let clap = |name: &&String| name.starts_with("clap");
    assert_eq!(library.iter().find(clap), None);
    assert!(program.iter().any(|name| clap(&name)));
    let without_fleet = linked(&["--no-default-features", "--features", "cli"]);
    assert!(!without_fleet.contains("async-nats"), "{without_fleet:?}");
}

#[test]
fn no_banned_crate_is_locked() {
    let policy = policy("bans", &["multiple-versions", "wildcards", "deny"]);
    let banned = policy["deny"].as_array().unwrap();
    assert!(!banned.is_empty());
    let lock = read("Cargo.lock");
    let packages = lock["package"].as_array().unwrap();
    for ban in banned {
        let name = ban["crate"].as_str().unwrap();
        let wrappers = ban.get("wrappers").map(strings).unwrap_or_default();
        let is_banned = |package: &&toml::Value| package["name"].as_str() == Some(name);
        let depends = |package: &&toml::Value| {
            // A dependency is a name, followed by a version if there are several.
            let all = package.get("dependencies").map(strings).unwrap_or_default();
            all.iter().any(|one| one.split(' ').next() == Some(name))
        };
        if wrappers.is_empty() {
            let found = packages.iter().any(|package| is_banned(&package));
            assert!(!found, "banned by deny.toml: {name}");
        } else {
            let others: Vec<_> = packages
                .iter()
                .filter(depends)
                .map(|package| package["name"].as_str().unwrap().to_owned())
                .filter(|user| !wrappers.contains(user))
                .collect();
            assert!(
                others.is_empty(),
                "{others:?} must not use {name}, by deny.toml"
            );
        }
    }
}

#[test]
fn every_package_is_from_crates_io() {
    let policy = policy("sources", &["unknown-registry", "unknown-git"]);
    assert!(policy.values().all(|lint| lint.as_str() == Some("deny")));
    for (name, source) in locked() {
        let expected = (name != env!("CARGO_PKG_NAME")).then_some(CRATES_IO);
        assert_eq!(source.as_deref(), expected, "{name}");
    }
}

#[test]
fn no_version_is_a_wildcard() {
    assert_eq!(
        policy("bans", &["multiple-versions", "wildcards", "deny"])["wildcards"].as_str(),
        Some("deny")
    );
    let metadata = metadata(&host());
    let own = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|package| package["source"].is_null());
    for dependency in own.unwrap()["dependencies"].as_array().unwrap() {
        assert_ne!(dependency["req"], "*", "{}", dependency["name"]);
    }
}

#[test]
fn every_license_on_this_target_is_allowed() {
    assert_eq!(unlicensed(&host()), [""; 0]);
}

mod needs_packages {
    #[test]
    fn every_license_on_every_target_is_allowed() {
        let graph = super::policy("graph", &["targets", "all-features"]);
        for target in super::strings(&graph["targets"]) {
            assert_eq!(super::unlicensed(&target), [""; 0], "{target}");
        }
    }
}

#[test]
fn licenses_are_parsed_as_spdx_expressions() {
    let allowed = [
        "MIT".to_owned(),
        "BSD-3-Clause".into(),
        "GPL-2.0 WITH Classpath".into(),
    ];
    for (expression, expected) in [
        ("MIT", true),
        ("Apache-2.0", false),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 OR MIT", true),
        ("Apache-2.0 AND MIT", false),
        ("Apache-2.0 OR MIT AND BSD-3-Clause", true),
        ("(Apache-2.0 OR MIT) AND Zlib", false),
        ("(Apache-2.0 OR MIT) AND (BSD-3-Clause)", true),
        ("GPL-2.0 WITH Classpath OR Zlib", true),
        ("MIT WITH Classpath", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
