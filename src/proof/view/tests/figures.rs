//! Measures what a view costs, on few files. `bench/view` runs it on many, with `FILES`.

use super::kit::{Case, check, sh};
use crate::proof::ViewContent;
use std::env;
use std::time::{Duration, Instant};

/// Prints the median of eleven runs, or the time of one if this is not a benchmark.
fn measure(what: &str, mut run: impl FnMut() -> Duration) {
    let runs = if env::var_os("FILES").is_some() {
        11
    } else {
        1
    };
    let mut times: Vec<_> = (0..runs).map(|_| run()).collect();
    times.sort_unstable();
    println!(
        "| {what} | {:.1} ms |",
        times[runs / 2].as_secs_f64() * 1000.0
    );
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let from = Instant::now();
    let result = run();
    (result, from.elapsed())
}

#[test]
fn figures() {
    let files: usize = env::var("FILES").map_or(200, |files| files.parse().unwrap());
    let script = format!(
        "seq -f %.0f {files} | split -l 100 - d; \
         for d in d*; do mv $d list; mkdir $d; (cd $d; xargs touch <../list); done; rm list"
    );
    let mut case = Case::new().agent(&script);
    let (list, _) = timed(|| sh("find . -type f").current_dir(&case.workspace).output());
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    let paths: Vec<&str> = list.lines().map(|path| &path[2..]).collect();
    assert_eq!(paths.len(), files);
    for absent in [10, files / 50, files] {
        case.changes.clear();
        for path in paths.iter().take(absent) {
            case = case.change(path, ViewContent::Absent);
        }
        measure(&format!("set-up, {absent} of {files} files absent"), || {
            let (view, time) = timed(|| case.view());
            view.remove().unwrap();
            time
        });
    }
    case.changes.truncate(10);
    let view = case.view();
    for script in ["true", "find . -type f | wc -l", "cat d*/* | wc -c"] {
        measure(&format!("`{script}` outside"), || {
            timed(|| sh(script).current_dir(&case.workspace).output().unwrap()).1
        });
        measure(&format!("`{script}` in the view"), || {
            timed(|| check(&view, script)).1
        });
    }
    view.remove().unwrap();
}
