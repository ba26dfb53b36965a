//! A loop inside Codex sessions only: which hooks it trusts.

use crate::hooks::{CODEX, Session};
use crate::model::say;
use crate::stage::PATIENCE;

/// Codex silently skips hooks that are not trusted; ralph reports them.
#[test]
fn untrusted_hooks_are_reported() {
    let session = Session::bare(&CODEX, [say("One.")]);
    session
        .ralph(&["plugin", "install", "codex"])
        .exits(0)
        .says("ralph plugin install codex --trust");
    session
        .begin("$ralph-loop Build it")
        .end_within(PATIENCE)
        .exits(0);
    session.stage.model.assert_played(1);
    session.ralph(&["ls"]).exits(0).says("no loops yet");
    let doctor = session.ralph(&["doctor"]).out;
    assert!(
        doctor.contains("does not trust the hooks yet: start codex and press t"),
        "{doctor}"
    );
    session.install().exits(0).says("Installed.");
    let doctor = session.ralph(&["doctor"]).out;
    assert!(!doctor.contains("does not trust the hooks yet"), "{doctor}");
}
