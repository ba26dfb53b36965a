//! The second integration test binary: whole loops through the real agent CLIs, against a scripted model.
//!
//! `test.sh` installs the CLIs, and runs these tests where only the loopback interface can be reached.

mod claude;
mod clis;
mod codex;
mod hooks;
mod hooks_claude;
mod hooks_codex;
mod hooks_typed;
#[expect(dead_code, reason = "the suite of scripted agents needs more of it")]
#[path = "../it/kit.rs"]
mod kit;
mod model;
mod sandbox;
mod scenes;
mod stage;

mod needs_fence {
    /// `run.sh` runs the tests of this module only inside a network namespace.
    #[test]
    fn only_the_loopback_interface_exists() {
        let routes = std::fs::read_to_string("/proc/net/route").unwrap();
        let leading_away: Vec<&str> = routes
            .lines()
            .skip(1)
            .filter(|route| !route.starts_with("lo\t"))
            .collect();
        assert!(leading_away.is_empty(), "{routes}");
    }
}
