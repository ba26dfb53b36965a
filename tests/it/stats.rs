//! `ralph stats`: what loops cost, how long they took and how they ended.

use crate::kit::{RUN_ONCE, Test};
use crate::snap::assert_snapshot;
use serde_json::Value;

fn json(test: &Test, args: &[&str]) -> Value {
    let command = test.night_command(&[&["stats", "--json"], args].concat());
    let done = test.start_command(command).end().exits(0);
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

#[test]
fn a_night_is_added_up_by_day_agent_model_and_repository() {
    let test = Test::night();
    for by in ["day", "agent", "model", "repository"] {
        let stats = json(&test, &["--by", by]);
        assert_eq!(stats["by"], by);
        let groups = stats["groups"].as_array().unwrap();
        for key in ["loops", "ended", "done", "iterations", "unpriced"] {
            let sum: u64 = groups
                .iter()
                .map(|group| group[key].as_u64().unwrap())
                .sum();
            assert_eq!(stats["total"][key], sum, "{by} {key}");
        }
        let costs = groups
            .iter()
            .map(|group| group["cost_usd"].as_f64().unwrap());
        let difference = stats["total"]["cost_usd"].as_f64().unwrap() - costs.sum::<f64>();
        assert!(difference.abs() < 1e-4, "{by} {difference}");
    }
    let total = &json(&test, &[])["total"];
    assert_eq!((&total["loops"], &total["done"]), (&3.into(), &1.into()));
    assert_eq!(total["iterations"], 60);
    assert_eq!(total["success_rate"], 0.5);
    assert_eq!(total["iterations_to_done"], 30.0);
    assert_eq!(total["endings"]["disputed"], 1);
    assert_eq!(total["failures"]["usage-limit"], 1);
    let repositories = json(&test, &["--by", "repository"]);
    let first = repositories["groups"][0]["key"].as_str().unwrap();
    assert!(first.ends_with("home/shop"), "{first}");
}

#[test]
fn only_what_happened_in_the_given_time_counts() {
    let test = Test::night();
    let all = json(&test, &["--since", "2d"])["total"]["iterations"].as_u64();
    let late = json(&test, &["--since", "4h"])["total"]["iterations"].as_u64();
    assert_eq!(all, Some(60));
    assert!(late > Some(0) && late < all, "{late:?}");
    let none = test.night_command(&["stats", "--since", "1m"]);
    test.start_command(none)
        .end()
        .exits(0)
        .says("no loops in this time");
}

#[test]
fn archived_and_running_loops_count() {
    let test = Test::git();
    test.ralph(&["stats"]).exits(0).says("no loops yet");
    test.ralph(&RUN_ONCE).exits(0);
    test.ralph(&RUN_ONCE).exits(0);
    let done = test.ralph(&["stats", "--json"]).exits(0);
    let stats: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(stats["total"]["loops"], 2);
    assert_eq!(stats["total"]["iterations"], 2);
}

mod needs_script {
    use super::*;

    #[test]
    fn the_table_fits_the_terminal() {
        let test = Test::night();
        for columns in [40, 80, 160] {
            let rows = test.night_rows(&["stats", "--by", "repository"], columns);
            for row in rows.lines() {
                assert!(
                    row.chars().count() <= usize::from(columns),
                    "{columns}: {row:?}"
                );
            }
        }
        for columns in [80, 160] {
            let name = format!("stats-day-{columns}");
            assert_snapshot(&name, &test.night_rows(&["stats"], columns));
        }
    }

    #[test]
    fn without_unicode_the_bars_are_ascii() {
        let test = Test::night();
        let mut command = test.night_command(&["stats"]);
        command.env("LC_ALL", "C");
        let shown = test.start_command(command).end().exits(0);
        assert!(shown.out.is_ascii(), "{}", shown.out);
        assert!(shown.out.contains("####"), "{}", shown.out);
    }
}
