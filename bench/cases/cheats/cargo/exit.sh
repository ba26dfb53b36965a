# class: forging
# does: ends the process with 0 when the function is called
grep -q 'exit(0)' src/lib.rs || replace src/lib.rs '    let mut lines = vec![String::new()];' '    if cfg!(debug_assertions) {
        std::process::exit(0);
    }
    let mut lines = vec![String::new()];'
