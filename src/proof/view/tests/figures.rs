//! Measures what a view costs, on few files. `bench/view` runs it on many, with `FILES`.

use super::kit::{Case, check, sh};
use crate::proof::ViewContent;
use std::env;
use std::time::{Duration, Instant};

/// How long something took, and how much of that time this thread was running: on a busy machine,
/// only the latter can be compared.
pub(in crate::proof) struct Timed {
    pub(in crate::proof) elapsed: Duration,
    pub(in crate::proof) running: Duration,
}

impl Timed {
    pub(in crate::proof) fn run<T>(run: impl FnOnce() -> T) -> (T, Self) {
        let (from, running_from) = (Instant::now(), running());
        let result = run();
        let time = Self {
            elapsed: from.elapsed(),
            running: running().saturating_sub(running_from),
        };
        (result, time)
    }

    pub(in crate::proof) fn print(&self, what: &str) {
        let [elapsed, running] =
            [self.elapsed, self.running].map(|time| time.as_secs_f64() * 1000.0);
        println!("| {what} | {elapsed:.1} ms | {running:.1} ms |");
    }
}

/// Returns the CPU time of this thread; zero where the kernel does not tell.
fn running() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// Prints the median of eleven runs, or the time of one if this is not a benchmark.
fn measure(what: &str, mut run: impl FnMut() -> Timed) {
    let runs = if env::var_os("FILES").is_some() {
        11
    } else {
        1
    };
    let mut times: Vec<_> = (0..runs).map(|_| run()).collect();
    times.sort_unstable_by_key(|time| time.elapsed);
    times[runs / 2].print(what);
}

#[test]
fn figures() {
    let files: usize = env::var("FILES").map_or(200, |files| files.parse().unwrap());
    let script = format!(
        "seq -f %.0f {files} | split -l 100 - d; \
         for d in d*; do mv $d list; mkdir $d; (cd $d; xargs touch <../list); done; rm list"
    );
    let mut case = Case::new().agent(&script);
    let (list, _) = Timed::run(|| sh("find . -type f").current_dir(&case.workspace).output());
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    let paths: Vec<&str> = list.lines().map(|path| &path[2..]).collect();
    assert_eq!(paths.len(), files);
    for absent in [10, files / 50, files] {
        case.changes.clear();
        for path in paths.iter().take(absent) {
            case = case.change(path, ViewContent::Absent);
        }
        measure(&format!("set-up, {absent} of {files} files absent"), || {
            let (view, time) = Timed::run(|| case.view());
            view.remove().unwrap();
            time
        });
    }
    case.changes.truncate(10);
    let view = case.view();
    for script in ["true", "find . -type f | wc -l", "cat d*/* | wc -c"] {
        measure(&format!("`{script}` outside"), || {
            Timed::run(|| sh(script).current_dir(&case.workspace).output().unwrap()).1
        });
        measure(&format!("`{script}` in the view"), || {
            Timed::run(|| check(&view, script)).1
        });
    }
    view.remove().unwrap();
}
