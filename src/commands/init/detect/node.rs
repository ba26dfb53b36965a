//! Detects the check scripts of a Node project or workspace, and the tool that runs them.

use super::ProjectDir;
use serde_json::Value;

/// The names of scripts that are checks.
const SCRIPTS: [&str; 11] = [
    "test",
    "lint",
    "typecheck",
    "type-check",
    "check-types",
    "check",
    "format:check",
    "check-format",
    "fmt:check",
    "prettier:check",
    "build",
];

/// Lock files and the package managers that write them.
const LOCKS: [(&str, &str); 5] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
];

/// Returns the checks of the project: its own scripts, then those that only its packages have.
pub(super) fn checks(project: &ProjectDir<'_>, file: &str) -> Vec<String> {
    let package = read_json(project, file);
    let manager = manager(project, &package);
    let packages = packages(project, &package);
    SCRIPTS
        .into_iter()
        .filter_map(|script| {
            if has_script(&package, script) {
                return Some(match (manager, script) {
                    ("npm" | "pnpm" | "yarn", "test") => format!("{manager} test"),
                    // `bun test` would run bun's own test runner instead of the script.
                    _ => format!("{manager} run {script}"),
                });
            }
            build_system(project, manager, script)
                .or_else(|| in_packages(project, &package, manager, &packages, script))
        })
        .collect()
}

fn read_json(project: &ProjectDir<'_>, file: &str) -> Value {
    serde_json::from_str(&project.read(file)).unwrap_or_default()
}

fn has_script(package: &Value, script: &str) -> bool {
    let text = package["scripts"][script].as_str().unwrap_or_default();
    // The placeholder of `npm init` always fails.
    !text.trim().is_empty() && !text.contains("no test specified")
}

fn manager(project: &ProjectDir<'_>, package: &Value) -> &'static str {
    let named = package["packageManager"].as_str().unwrap_or_default();
    let named = named.split('@').next().unwrap_or_default();
    let by_name = LOCKS.iter().find(|(_, manager)| *manager == named);
    let found = by_name.or_else(|| LOCKS.iter().find(|(lock, _)| project.has(lock)));
    found.map_or("npm", |(_, manager)| manager)
}

/// Returns the command that runs a task of Turborepo or Nx; `None` if they do not define it.
fn build_system(project: &ProjectDir<'_>, manager: &str, script: &str) -> Option<String> {
    let exec = match manager {
        "pnpm" => "pnpm exec",
        "yarn" => "yarn",
        "bun" => "bunx",
        _ => "npx",
    };
    if project.has("turbo.json") {
        let turbo = read_json(project, "turbo.json");
        // Turborepo 1 calls its tasks a pipeline.
        let defined = !turbo["tasks"][script].is_null() || !turbo["pipeline"][script].is_null();
        return defined.then(|| format!("{exec} turbo run {script}"));
    }
    if project.has("nx.json") {
        let targets = &read_json(project, "nx.json")["targetDefaults"];
        // Plugins of Nx define targets that no file lists; these are the usual ones.
        let defined = match targets.as_object() {
            Some(targets) => targets.contains_key(script),
            None => ["test", "lint"].contains(&script),
        };
        return defined.then(|| format!("{exec} nx run-many -t {script}"));
    }
    None
}

/// Returns the `package.json` of each package of a workspace.
fn packages(project: &ProjectDir<'_>, package: &Value) -> Vec<Value> {
    let pnpm: Value =
        serde_saphyr::from_str(&project.read("pnpm-workspace.yaml")).unwrap_or_default();
    let workspaces = &package["workspaces"];
    let lists = [workspaces, &workspaces["packages"], &pnpm["packages"]];
    let patterns: Vec<String> = lists
        .iter()
        .filter_map(|list| list.as_array())
        .flatten()
        .filter_map(|pattern| pattern.as_str().map(str::to_owned))
        .collect();
    project
        .members(&patterns)
        .iter()
        .map(|path| ProjectDir { path })
        .filter(|member| member.has("package.json"))
        .map(|member| read_json(&member, "package.json"))
        .collect()
}

/// Returns the command that runs a script in all packages that have it; `None` if there is none.
fn in_packages(
    project: &ProjectDir<'_>,
    package: &Value,
    manager: &str,
    packages: &[Value],
    script: &str,
) -> Option<String> {
    let having = packages
        .iter()
        .filter(|package| has_script(package, script))
        .count();
    let named = package["packageManager"].as_str().unwrap_or_default();
    let is_yarn_1 =
        !project.has(".yarnrc.yml") && (named.is_empty() || named.starts_with("yarn@1"));
    match manager {
        _ if having == 0 => None,
        "pnpm" => Some(format!("pnpm -r run {script}")),
        // Yarn 1 fails if one package lacks the script.
        "yarn" if is_yarn_1 => {
            (having == packages.len()).then(|| format!("yarn workspaces run {script}"))
        }
        "yarn" => Some(format!("yarn workspaces foreach -A run {script}")),
        "bun" => Some(format!("bun run --filter '*' {script}")),
        _ => Some(format!("npm run {script} --workspaces --if-present")),
    }
}
