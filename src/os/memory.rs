//! Memory that a process has touched and does not need while it waits.

/// Lets go of the program's code. It stays in the page cache, where every process that runs it finds it, and what is
/// used again comes back by itself: whoever waits for hours need not keep what it began with.
#[cfg(target_os = "linux")]
pub fn let_go_of_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end) in maps.lines().filter_map(code) {
        // SAFETY: the range is this process's own, is mapped from a file, privately, and was never writable: what
        // the kernel reads again is what stood there. Where it refuses, everything stays as it is.
        unsafe {
            libc::madvise(
                std::ptr::with_exposed_provenance_mut(start),
                end - start,
                libc::MADV_DONTNEED,
            )
        };
    }
}

/// Elsewhere nothing is known of that.
#[cfg(not(target_os = "linux"))]
pub fn let_go_of_code() {}

/// The range of a line of `/proc/self/maps`, if it is code that comes from a file. Read-only data is left alone: the
/// linker has written into some of it.
#[cfg(any(target_os = "linux", test))]
fn code(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, inode) = (words.next()?, words.next()?, words.nth(2)?);
    let (start, end) = range.split_once('-')?;
    let is_code = rights == "r-xp" && inode != "0";
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?)).filter(|(start, end)| is_code && start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_that_a_file_holds_is_let_go_of() {
        let line = |rights: &str, inode: &str| {
            format!("1000-3000 {rights} 00015000 fd:00 {inode}   /bin/a b")
        };
        assert_eq!(code(&line("r-xp", "77")), Some((0x1000, 0x3000)));
        for (rights, inode) in [
            ("r--p", "77"),
            ("rw-p", "77"),
            ("rwxp", "77"),
            ("r-xs", "77"),
            ("r-xp", "0"),
        ] {
            assert_eq!(code(&line(rights, inode)), None, "{rights} {inode}");
        }
        assert_eq!(code(""), None);
        assert_eq!(code("3000-1000 r-xp 0 fd:00 77"), None);
    }

    #[test]
    fn a_process_that_let_go_of_its_code_goes_on() {
        let_go_of_code();
        assert_eq!(
            format!("{:?}", "still here".split(' ').collect::<Vec<_>>()),
            "[\"still\", \"here\"]"
        );
    }
}
