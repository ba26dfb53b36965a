//! Full disks and endless output.

use super::{AGENT, supervisor};
use crate::kit::{Done, Test, until};
use std::fs;

#[test]
fn endless_output_uses_bounded_disk_space_and_memory() {
    const MIB: u64 = 1 << 20;
    let test = Test::new().script(
        "iteration 1\n say the head\n flood 80MiB\n say the tail\n sh touch here; until test -e go; do sleep 0.01; done\n promise COMPLETE\n",
    );
    let live = test.start(&["run", "x", "--name", "a", "--agent", AGENT, "--no-stream"]);
    until("the flood's end", || test.workspace().join("here").exists());
    for pid in [live.pid(), supervisor(live.pid()).unwrap()] {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let most = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        let kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        // Half of the output. About 20 MiB are pages of the program itself, without optimization.
        assert!(kib < 40 * 1024, "process {pid} took {kib} KiB");
    }
    test.write("go", "");
    live.end().exits(0);
    let path = test.loop_dir("a").join("iterations/0001/output.log");
    let log = fs::read(&path).unwrap();
    assert!(
        (64 * MIB..64 * MIB + 200).contains(&(log.len() as u64)),
        "{}",
        log.len()
    );
    assert!(log.starts_with(b"the head\n"));
    assert!(String::from_utf8_lossy(&log[log.len() - 200..]).contains("the tail\n"));
    let middle =
        String::from_utf8_lossy(&log[32 * MIB as usize..32 * MIB as usize + 200]).into_owned();
    assert!(
        middle.contains(
            "[ralph: 16 MiB of output dropped here; the log keeps the first 32 MiB and the last 32 MiB]"
        ),
        "{middle}"
    );
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        3,
        "prompt, output and activity alone"
    );
    let activity = fs::read_to_string(path.with_file_name("activity.jsonl")).unwrap();
    assert!(activity.len() as u64 <= MIB, "{}", activity.len());
    assert!(activity.contains("the head\\n") && activity.contains("the tail\\n"));
    assert_eq!(
        test.events("a", "ended")[0]["report"]["bytes"]
            .as_u64()
            .map(|bytes| bytes / MIB),
        Some(80)
    );
}

mod needs_mounts {
    use super::*;

    /// Runs a shell script whose state directory is a separate file system of that size.
    fn on_a_disk(test: &Test, size: &str, script: &str) -> Done {
        let mut command = test.command("unshare");
        command.args([
            "-Urm",
            "sh",
            "-c",
            &format!("mount -t tmpfs -o size={size} tmpfs \"$RALPH_STATE_DIR\" && {{ {script}\n}}"),
        ]);
        command.env("RALPH", env!("CARGO_BIN_EXE_ralph"));
        test.start_command(command).end()
    }

    #[test]
    fn too_little_disk_space_is_reported_before_anything_starts() {
        let test = Test::new().script("iteration *\n write started\n");
        let script = format!(
            "$RALPH run x --name a --agent {AGENT}; echo exit $?; $RALPH status a --json; ls $RALPH_STATE_DIR/loops/a/iterations"
        );
        let done = on_a_disk(&test, "1m", &script);
        let done = done
            .says("KiB free on the disk that holds ")
            .says("ralph needs 100 MiB")
            .says("\nexit 1\n");
        done.says("\"why\":\"disk\"")
            .says("\"current_iteration\":0");
        assert!(!test.workspace().join("started").exists());
    }

    #[test]
    fn a_full_disk_ends_the_loop_cleanly() {
        let test = Test::new().script(
            "iteration 1\n cost 0.25\niteration 2\n cost 0.25\n sh head -c 200000000 /dev/zero > $RALPH_STATE_DIR/filler\n flood 1MiB\n hang\n\
             iteration *\n cost 0.25\n promise COMPLETE\n",
        );
        let script = format!(
            "$RALPH run x --name a --agent {AGENT} --no-stream; echo exit $?; $RALPH status a; cat $RALPH_STATE_DIR/loops/a/journal.jsonl\n\
             echo; $RALPH resume a --no-stream; echo again $?\n\
             rm $RALPH_STATE_DIR/filler; $RALPH resume a --no-stream; echo then $?; $RALPH status a --json"
        );
        let done = on_a_disk(&test, "150m", &script);
        let done = done
            .says("\nexit 1\n")
            .says("Status: failed")
            .says("o space left on ");
        let done = done
            .says("\nagain 1\n")
            .says("\nthen 0\n")
            .says("\"status\":\"done\"");
        let lines = done.out.lines().filter(|line| line.starts_with("{\"at\""));
        let events: Vec<serde_json::Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(events.last().unwrap()["event"], "finished");
        assert_eq!(events.last().unwrap()["outcome"]["why"], "disk");
        assert_eq!(
            events
                .iter()
                .filter(|line| line["event"] == "ended")
                .count(),
            2
        );
    }

    #[test]
    fn no_resume_is_suggested_for_a_loop_that_never_started() {
        let test = Test::new().script("iteration *\n write started\n");
        let script = format!(
            "head -c 2000000 /dev/zero > $RALPH_STATE_DIR/filler; $RALPH run x --name a --agent {AGENT}; echo exit $?; $RALPH ls --names"
        );
        let done = on_a_disk(&test, "1m", &script);
        assert!(done.out.ends_with("exit 1\n"), "{done:?}");
        let done = done
            .complains("o space left on ")
            .complains("hint: free some disk space, then try again\n");
        assert!(!done.err.contains("resume"), "{}", done.err);
    }
}
