use super::{Site, absent, names};
use std::fs;

fn outside(site: &Site, baseline: &super::Baseline) -> Vec<String> {
    let prefix = format!("{}/", site.root.display());
    let names = names(&site.touched(baseline).files.outside);
    names
        .iter()
        .map(|name| name.replacen(&prefix, "", 1))
        .collect()
}

#[test]
fn programs_in_path_and_settings_in_the_home_directory_are_watched() {
    let site = Site::new();
    site.write("/bin/pytest", "1")
        .write("/home/.npmrc", "1")
        .write("/home/.config/tool/rc", "1");
    site.write("/home/.local/lib/python3/site-packages/a.py", "1")
        .write("/home/notes.txt", "1");
    let baseline = site.take();
    assert_eq!(outside(&site, &baseline), [""; 0]);
    site.write("/bin/pytest", "2")
        .write("/bin/sh", "1")
        .write("/home/.npmrc", "2")
        .write("/home/.config/new/a/b", "1");
    site.write(
        "/home/.local/lib/python3/site-packages/usercustomize.py",
        "1",
    )
    .write("/home/notes.txt", "2");
    assert_eq!(
        outside(&site, &baseline),
        [
            "~bin/pytest",
            "+bin/sh",
            "+home/.config/new/",
            "+home/.local/lib/python3/site-packages/usercustomize.py",
            "~home/.npmrc"
        ]
    );
    let touched = site.touched(&baseline);
    let view = absent(&[
        "/bin/pytest",
        "/bin/sh",
        "/home/.config/new",
        "/home/.local/lib/python3/site-packages/usercustomize.py",
        "/home/.npmrc",
    ]);
    assert_eq!(site.view(&baseline, &touched), view);
}

#[test]
fn caches_and_the_paths_of_the_agent_and_of_ralph_are_not() {
    let site = Site::new();
    site.write("/home/.agent/old", "1");
    let baseline = site.take();
    for path in [
        ".cache/x",
        ".npm/x",
        ".cargo/registry/x",
        ".agent/new",
        ".ralph-state/x",
        ".bash_history",
        ".local/share/x",
    ] {
        site.write(&format!("/home/{path}"), "1");
    }
    site.write("/home/.a/b/c/d/e/too-deep", "1")
        .remove("/home/.agent/old");
    assert_eq!(outside(&site, &baseline), [""; 0]);
    site.write("/home/.a/b/c/d/deep", "1")
        .write("/home/.cargo/config.toml", "1");
    assert_eq!(
        outside(&site, &baseline),
        ["+home/.a/b/c/d/deep", "+home/.cargo/config.toml"],
        "the directories have content that is not watched"
    );
}

#[test]
fn the_program_behind_a_link_is_watched() {
    let site = Site::new();
    site.write("/opt/tool", "1");
    std::os::unix::fs::symlink(site.path("/opt/tool"), site.path("/bin/tool")).unwrap();
    let baseline = site.take();
    site.write("/opt/tool", "2");
    assert_eq!(outside(&site, &baseline), ["~opt/tool"]);
}

#[test]
fn settings_in_the_directories_above_are_watched() {
    let site = Site::new();
    site.write("/up/notes.txt", "1");
    let baseline = site.take();
    site.write("/up/conftest.py", "1")
        .write("/up/notes.txt", "2")
        .write("/up/.cargo/config.toml", "1");
    site.write("/up/node_modules/jest/index.js", "1")
        .write("/up/other/conftest.py", "1");
    assert_eq!(
        outside(&site, &baseline),
        [
            "+up/.cargo/config.toml",
            "+up/conftest.py",
            "+up/node_modules/jest/"
        ]
    );
}

#[test]
fn settings_hooks_and_info_of_the_repository_come_back() {
    let site = Site::new().with_git();
    site.write("a", "1").write(".git/info/exclude", "old\n");
    let config = fs::read_to_string(site.path(".git/config")).unwrap();
    let baseline = site.take();
    site.write(".git/config", "[core]\n\tfsmonitor = evil\n")
        .write(".git/hooks/pre-commit", "evil");
    site.write(".git/info/exclude", "tests\n")
        .write(".git/info/attributes", "* filter=evil")
        .write(".git/index", "x");
    site.write(".git/refs/heads/x", "x");
    let touched = site.touched(&baseline);
    let mut view = absent(&[".git/hooks/pre-commit", ".git/info/attributes"]);
    view.insert(".git/config".into(), Some(config));
    view.insert(".git/info/exclude".into(), Some("old\n".into()));
    assert_eq!(site.view(&baseline, &touched), view);
    assert_eq!(touched.files.outside.total, 4);
}

#[test]
fn a_check_script_outside_the_workspace_comes_back() {
    let mut site = Site::new();
    let (old, new) = (site.path("/scripts/check"), site.path("/scripts/later"));
    site.checks = vec![format!("{} && sh {}", old.display(), new.display())];
    site.write("/scripts/check", "false").write("a", "1");
    let baseline = site.take();
    site.write("/scripts/check", "true")
        .write("/scripts/later", "true");
    let touched = site.touched(&baseline);
    assert_eq!(
        outside(&site, &baseline),
        ["~scripts/check", "+scripts/later"]
    );
    let view = site.view(&baseline, &touched);
    assert_eq!(
        view.into_iter().collect::<Vec<_>>(),
        [("/scripts/check".into(), Some("false".into()))]
    );
}

#[test]
fn the_user_can_allow_a_file_outside() {
    let mut site = Site::new();
    site.allow = vec![".npmrc".into(), format!("{}/bin/*", site.root.display())];
    site.write("a", "1");
    let baseline = site.take();
    site.write("/home/.npmrc", "1")
        .write("/bin/tool", "1")
        .write("/home/.other", "1");
    assert_eq!(outside(&site, &baseline), ["+home/.other"]);
}

#[test]
fn a_workspace_in_a_hidden_directory_of_the_home_directory_is_not_listed_twice() {
    let site = Site::new();
    fs::create_dir_all(site.path("/home/.work/project")).unwrap();
    let (workspace, home) = (site.path("/home/.work/project"), site.path("/home"));
    let spec = super::BaselineSpec {
        workspace: &workspace,
        home: Some(&home),
        path_dirs: Vec::new(),
        settings: super::VariablePaths::default(),
        checks: Vec::new(),
        protect: &[],
        own: Vec::new(),
        copies_sources: false,
    };
    let baseline = super::Baseline::take(&spec, &site.path("/loop")).unwrap();
    site.write("/home/.work/project/a.py", "1")
        .write("/home/.work/other", "1");
    assert_eq!(outside(&site, &baseline), ["+home/.work/other"]);
    assert_eq!(names(&site.touched(&baseline).files.sources), ["+a.py"]);
}

#[test]
fn settings_and_modules_that_variables_name_are_watched_wherever_they_are() {
    let mut site = Site::new();
    site.variables = vec![
        ("XDG_CONFIG_HOME", "/conf"),
        ("CARGO_HOME", "/cargo"),
        ("PIP_CONFIG_FILE", "/pip/pip.conf"),
        ("npm_config_userconfig", "/npm/rc"),
        ("PYTHONPATH", "/modules"),
        ("VIRTUAL_ENV", "/venv"),
        ("ENV", "relative"),
        ("NODE_PATH", "/home"),
    ];
    site.write("/conf/tool/rc", "1")
        .write("/cargo/config.toml", "1")
        .write("/pip/pip.conf", "1")
        .write("/venv/lib/python3/site-packages/pytest/main.py", "1");
    let baseline = site.take();
    assert_eq!(outside(&site, &baseline), [""; 0]);
    site.write("/conf/tool/rc", "2")
        .write("/conf/a/b/c/d/too-deep", "1")
        .write("/conf/chromium/cache", "1")
        .write("/cargo/config.toml", "2")
        .write("/cargo/registry/index", "1")
        .write("/pip/pip.conf", "2")
        .write("/pip/other", "1")
        .write("/npm/rc", "1")
        .write("/modules/sitecustomize.py", "1")
        .write("/home/everything", "1")
        .write("/venv/lib/python3/site-packages/pytest/main.py", "2");
    assert_eq!(
        outside(&site, &baseline),
        [
            "~cargo/config.toml",
            "~conf/tool/rc",
            "+modules/sitecustomize.py",
            "+npm/rc",
            "~pip/pip.conf",
            "~venv/lib/python3/site-packages/pytest/main.py"
        ]
    );
    let opened = super::Baseline::open(&site.path("/loop"), baseline.digest()).unwrap();
    assert_eq!(outside(&site, &opened.unwrap()).len(), 6);
}
