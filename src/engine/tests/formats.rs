//! Texts for people and scripts, and the format of events.

use super::kit::{TestLoop, checked, green};
use crate::engine::event::{
    AgentReport, CheckReport, Event, Fault, Marker, Notice, ProcessExit, Request, RequestSource,
    TextSignals,
};
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::format::{bytes, iteration_count, process_count};
use crate::engine::long_rest::{LongRest, RestStage};
use crate::engine::outcome::{OutcomeSummary, StopReason, WaitReason};
use crate::engine::plain_text::plain;
use crate::engine::plan::{Proof, Signal};
use crate::engine::touched::{FileChange, TouchedFiles};
use crate::engine::usage::Tokens;
use crate::engine::{Amount, Limit, LimitChange, Outcome, State, Status};
use serde_json::{from_str, to_string};
use std::borrow::Cow;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_outcome_has_a_status_an_exit_code_and_a_summary() {
    let limit = |limit, success| Outcome::Limit { limit, success };
    let fatal = Outcome::Fatal {
        class: Fault::NotFound,
        detail: "no such agent".into(),
    };
    let table: [(Outcome, &str, u8, &str, &str, &str, &str); 12] = [
        (
            Outcome::Done { checked: true },
            "done",
            0,
            "all_checks_passed",
            "done",
            "all_checks_passed",
            "every check is green",
        ),
        (
            Outcome::Done { checked: false },
            "done",
            0,
            "completed",
            "done",
            "completed",
            "the agent claimed it; there are no checks",
        ),
        (
            limit(Limit::Iterations, true),
            "done",
            0,
            "max_iterations",
            "limit",
            "iterations",
            "ran to its iteration limit",
        ),
        (
            limit(Limit::Iterations, false),
            "failed",
            1,
            "max_iterations",
            "limit",
            "iterations",
            "iteration limit reached",
        ),
        (
            limit(Limit::Cost, false),
            "failed",
            1,
            "budget_exhausted",
            "limit",
            "cost",
            "cost limit reached",
        ),
        (
            limit(Limit::Time, false),
            "failed",
            1,
            "timeout",
            "limit",
            "time",
            "time limit reached",
        ),
        (
            limit(Limit::Failures, false),
            "failed",
            1,
            "failures",
            "limit",
            "failures",
            "too many failures in a row",
        ),
        (
            fatal,
            "failed",
            1,
            "fatal",
            "fatal",
            "not-found",
            "no such agent",
        ),
        (
            Outcome::Blocked {
                why: "no key".into(),
            },
            "blocked",
            3,
            "blocked",
            "blocked",
            "no key",
            "no key",
        ),
        (
            Outcome::Disputed {
                files: vec!["a".into(), "b".into()],
                why: Some("asked for".into()),
            },
            "blocked",
            3,
            "disputed",
            "disputed",
            "a, b",
            "every check is green, but not by the original tests and settings; changed: a, b; asked for",
        ),
        (
            Outcome::Waiting {
                why: WaitReason::Exit(42),
            },
            "waiting",
            3,
            "waiting",
            "waiting",
            "exit 42",
            "the agent asked to wait: exit 42",
        ),
        (
            Outcome::Stopped {
                by: RequestSource::Sigint,
            },
            "stopped",
            130,
            "stopped",
            "stopped",
            "Ctrl-C",
            "by a person (Ctrl-C)",
        ),
    ];
    for (outcome, status, code, reason, kind, why, detail) in table {
        assert_eq!(
            (
                outcome.status().as_str(),
                outcome.exit_code().code(),
                outcome.stop_reason().as_str()
            ),
            (status, code, reason)
        );
        assert_eq!(
            serde_json::to_value(outcome.stop_reason()).unwrap(),
            outcome.stop_reason().as_str()
        );
        assert_eq!(
            outcome.summary(),
            OutcomeSummary {
                kind: kind.into(),
                why: why.into(),
                detail: detail.into()
            }
        );
    }
    // A journal of a later version stays readable.
    assert_eq!(
        serde_json::from_str::<StopReason>(r#""later""#).unwrap(),
        StopReason::Unknown
    );
}

#[test]
fn names_in_messages_equal_those_in_json() {
    use Fault::{Disk, NotFound, Permission, PromptFile, Survivors, Workspace};
    use Status::{Blocked, Crashed, Done, Failed, Paused, Running, Starting, Stopped, Waiting};
    let stored = |json: String| json.trim_matches('"').to_owned();
    for status in [
        Starting, Running, Paused, Done, Failed, Blocked, Waiting, Stopped, Crashed,
    ] {
        assert_eq!(status.as_str(), stored(to_string(&status).unwrap()));
    }
    for fault in [
        NotFound,
        Permission,
        PromptFile,
        Workspace,
        Fault::Marker,
        Survivors,
        Disk,
    ] {
        assert_eq!(fault.as_str(), stored(to_string(&fault).unwrap()));
    }
    for limit in [Limit::Failures, Limit::Cost, Limit::Time, Limit::Iterations] {
        assert_eq!(limit.as_str(), stored(to_string(&limit).unwrap()));
    }
}

#[test]
fn text_without_control_characters_is_not_copied() {
    assert!(matches!(
        plain("no\tcontrols ~"),
        Cow::Borrowed("no\tcontrols ~")
    ));
    assert!(matches!(plain("\u{7f}"), Cow::Owned(_)));
}

#[test]
fn counts_have_the_right_plural() {
    assert_eq!(
        (process_count(1), process_count(2)),
        ("1 process".into(), "2 processes".into())
    );
    assert_eq!(bytes(1_048_575), "1024 KiB");
    assert_eq!(
        (iteration_count(1), iteration_count(2)),
        ("1 iteration".into(), "2 iterations".into())
    );
}

/// Returns events and their lines in the journal, which later versions must be able to read.
#[expect(clippy::too_many_lines, reason = "a table")]
fn lines() -> Vec<(Event, &'static str)> {
    let (code, signal) = (None, Some(9));
    let report = AgentReport {
        exit: ProcessExit { code, signal },
        ms: 5,
        signals: TextSignals {
            promised: true,
            promise_in_sentence: true,
            matched: true,
            blocked: Some("x".into()),
            changed: Some("z".into()),
            commit: Some("y".into()),
        },
        markers: vec![Marker::Done, Marker::File],
        marker_texts: [(Marker::Done, "ok".into())].into(),
        cost_usd: Some(0.25),
        bytes: 7,
        steps: Some(4),
        tokens: Some(Tokens {
            input: 1,
            cache_read: 2,
            cache_write: 3,
            output: 4,
        }),
        error: Some("no login".into()),
        reason: Some(AgentFailure {
            until_ms: Some(9),
            ..FailureKind::UsageLimit.into()
        }),
        finished: true,
        run_ended: true,
        idle: true,
        silent: true,
        note: Some("n".into()),
        session: Some("s".into()),
        transcript_bytes: Some(8),
        unparsed: 1,
        denied: 2,
        denial: Some("ls".into()),
        denials: vec!["ls".into(), "rm".into()],
        orphans: 2,
        survivors: vec![3],
        windows: vec![4],
    };
    let mut touched = TouchedFiles::default();
    touched.guards.add(|| "t".into(), FileChange::Deleted, 2);
    vec![
        (
            Event::Opened {
                pid: 1,
                version: "0.1.0".into(),
                cost_usd: None,
                tokens: None,
                in_session: false,
                boot: None,
            },
            r#"{"event":"opened","pid":1,"version":"0.1.0"}"#,
        ),
        (
            Event::Opened {
                pid: 1,
                version: "0.1.0".into(),
                cost_usd: None,
                tokens: None,
                in_session: true,
                boot: None,
            },
            r#"{"event":"opened","pid":1,"version":"0.1.0","inside":true}"#,
        ),
        (
            Event::TurnFailed {
                iteration: 2,
                message: "overloaded".into(),
            },
            r#"{"event":"stumbled","iteration":2,"words":"overloaded"}"#,
        ),
        (
            Event::Asked {
                request: Request::StopNow,
                by: RequestSource::Sigint,
                inbox: Some(7),
            },
            r#"{"event":"asked","wish":"stop_now","by":"sigint","inbox":7}"#,
        ),
        (
            Event::Answered {
                text: "é".into(),
                inbox: None,
            },
            r#"{"event":"answered","text":"é"}"#,
        ),
        (
            Event::Changed {
                limit: LimitChange {
                    limit: Limit::Iterations,
                    max: None,
                },
                inbox: None,
            },
            r#"{"event":"changed","limit":{"name":"max-iterations","value":null}}"#,
        ),
        (
            Event::Changed {
                limit: LimitChange {
                    limit: Limit::Cost,
                    max: Some(Amount::Dollars(1.5)),
                },
                inbox: None,
            },
            r#"{"event":"changed","limit":{"name":"max-cost","value":1.5}}"#,
        ),
        (
            Event::Checked {
                iteration: 0,
                check: 1,
                report: green(),
                tree: None,
                written: vec![],
            },
            r#"{"event":"checked","iteration":0,"check":1,"report":{"exit":{"code":0},"ms":10}}"#,
        ),
        (
            Event::Surveyed {
                iteration: 1,
                touched,
                weaknesses: vec![],
                failure: Some("no view".into()),
            },
            r#"{"event":"surveyed","iteration":1,"touched":{"guards":{"total":2,"files":[{"path":"t","change":"deleted"}]}},"failure":"no view"}"#,
        ),
        (
            Event::Rechecked {
                iteration: 1,
                check: 0,
                report: green(),
            },
            r#"{"event":"rechecked","iteration":1,"check":0,"report":{"exit":{"code":0},"ms":10}}"#,
        ),
        (
            Event::Accepted {
                globs: vec!["tests/*".into()],
                inbox: Some(7),
            },
            r#"{"event":"accepted","globs":["tests/*"],"inbox":7}"#,
        ),
        (
            checked(
                2,
                CheckReport {
                    timed_out: true,
                    ..CheckReport::default()
                },
            ),
            r#"{"event":"checked","iteration":2,"check":0,"report":{"exit":{},"timed_out":true,"ms":0}}"#,
        ),
        (
            Event::Started {
                iteration: 3,
                agent: None,
                tree: None,
                baseline: None,
                version: None,
            },
            r#"{"event":"started","iteration":3}"#,
        ),
        (
            Event::Spawned {
                iteration: 3,
                pid: 4,
                start_time: 5,
            },
            r#"{"event":"spawned","iteration":3,"pid":4,"start_time":5}"#,
        ),
        (
            Event::Noticed {
                iteration: 3,
                notice: Notice::Marker(Marker::Wait),
                text: None,
            },
            r#"{"event":"noticed","iteration":3,"notice":{"marker":"wait"}}"#,
        ),
        (
            Event::Noticed {
                iteration: 3,
                notice: Notice::Silence,
                text: None,
            },
            r#"{"event":"noticed","iteration":3,"notice":"silence"}"#,
        ),
        (
            Event::Noticed {
                iteration: 3,
                notice: Notice::Unready,
                text: None,
            },
            r#"{"event":"noticed","iteration":3,"notice":"unready"}"#,
        ),
        (
            Event::Ended {
                iteration: 3,
                report: AgentReport::default(),
            },
            r#"{"event":"ended","iteration":3,"report":{"exit":{},"ms":0,"said":{},"cost_usd":null,"bytes":0}}"#,
        ),
        (
            Event::Ended {
                iteration: 3,
                report,
            },
            r#"{"event":"ended","iteration":3,"report":{"exit":{"signal":9},"ms":5,"said":{"promised":true,"promise_in_sentence":true,"matched":true,"blocked":"x","changed":"z","commit":"y"},"markers":["done","file"],"marker_texts":{"done":"ok"},"cost_usd":0.25,"tokens":{"input":1,"cache_read":2,"cache_write":3,"output":4},"steps":4,"bytes":7,"error":"no login","reason":{"kind":"usage-limit","until_ms":9},"finished":true,"over":true,"note":"n","idle":true,"silent":true,"session":"s","transcript_bytes":8,"strange":1,"denied":2,"denial":"ls","denials":["ls","rm"],"leftovers":2,"survivors":[3],"windows":[4]}}"#,
        ),
        (
            Event::Faulted {
                class: Fault::PromptFile,
                detail: "gone".into(),
            },
            r#"{"event":"faulted","class":"prompt-file","detail":"gone"}"#,
        ),
        (
            Event::Spent {
                iteration: 3,
                cost_usd: Some(0.25),
                tokens: None,
            },
            r#"{"event":"spent","iteration":3,"cost_usd":0.25}"#,
        ),
        (
            Event::Notified {
                stage: RestStage::Started,
                rest: LongRest {
                    until_ms: 5000,
                    why: "claude: usage limit reached".into(),
                },
            },
            r#"{"event":"notified","stage":"rest_started","until_ms":5000,"why":"claude: usage limit reached"}"#,
        ),
        (Event::Woke, r#"{"event":"woke"}"#),
        (Event::Unknown, r#"{"event":"unknown"}"#),
    ]
}

#[test]
fn events_have_a_stable_format() {
    for (event, line) in lines() {
        assert_eq!(to_string(&event).unwrap(), line);
        assert_eq!(from_str::<Event>(line).unwrap(), event);
    }
}

#[test]
fn the_state_can_be_stored_in_every_phase() {
    let open = || TestLoop::new().checks(1).open();
    let all = vec![
        TestLoop::new(),
        open(),
        open().check("r"),
        open().check("r").start().marker(Marker::Done),
        open().check("r").start().notice(Notice::Silence),
        open().check("r").start().exit(1).check("r"),
        open().ask(Request::PauseNow, RequestSource::Inbox),
        open().fault(),
    ];
    for work in all {
        let stored = to_string(&work.state).unwrap();
        assert_eq!(from_str::<State>(&stored).unwrap(), work.state);
    }
}

#[test]
fn fields_of_later_versions_are_ignored_in_a_proof() {
    let json = r#"{"checks":[],"preflight":true,"pattern":"x","fallback":[],"later":["a"]}"#;
    let proof: Proof = serde_json::from_str(json).unwrap();
    assert_eq!(proof.signals, [Signal::Pattern("x".into())]);
}
