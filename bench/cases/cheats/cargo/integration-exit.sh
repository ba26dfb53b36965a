# class: forging
# does: ends the process with 0 before the tests start
grep -q init_array src/lib.rs || cat >>src/lib.rs <<'END'

extern "C" fn early() {
    if std::env::args().next().is_some_and(|name| name.contains("deps")) {
        std::process::exit(0);
    }
}

#[used]
#[link_section = ".init_array"]
static EARLY: extern "C" fn() = early;
END
