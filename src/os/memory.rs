//! Releases memory that a process does not need while it waits.

/// Releases the resident pages of the program's code. A supervisor waits for hours and needs little
/// of the code it used at startup. The code stays in the page cache, shared by all processes that
/// run it, and the kernel maps a page again when it is needed.
#[cfg(target_os = "linux")]
pub(crate) fn release_code_pages() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end) in maps.lines().filter_map(code_range) {
        // SAFETY: the range belongs to this process, is a private file mapping and was never
        // writable, so the kernel reads back the same bytes. If it refuses, nothing changes.
        unsafe {
            libc::madvise(
                std::ptr::with_exposed_provenance_mut(start),
                end - start,
                libc::MADV_DONTNEED,
            )
        };
    }
}

/// Does nothing, because only Linux lists a process's mappings in `/proc`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release_code_pages() {}

/// Parses a line of `/proc/self/maps`. Returns the address range if the line describes code mapped
/// from a file; `None` otherwise. Read-only data is excluded, because the linker has written
/// relocations to some of it.
#[cfg(any(target_os = "linux", test))]
fn code_range(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, permissions, inode) = (fields.next()?, fields.next()?, fields.nth(2)?);
    let (start, end) = range.split_once('-')?;
    let is_code = permissions == "r-xp" && inode != "0";
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?)).filter(|(start, end)| is_code && start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_mapped_from_a_file_is_released() {
        let line = |permissions: &str, inode: &str| {
            format!("1000-3000 {permissions} 00015000 fd:00 {inode}   /bin/a b")
        };
        assert_eq!(code_range(&line("r-xp", "77")), Some((0x1000, 0x3000)));
        for (permissions, inode) in [
            ("r--p", "77"),
            ("rw-p", "77"),
            ("rwxp", "77"),
            ("r-xs", "77"),
            ("r-xp", "0"),
        ] {
            assert_eq!(
                code_range(&line(permissions, inode)),
                None,
                "{permissions} {inode}"
            );
        }
        assert_eq!(code_range(""), None);
        assert_eq!(code_range("3000-1000 r-xp 0 fd:00 77"), None);
    }

    #[test]
    fn the_process_still_runs_after_releasing_its_code() {
        release_code_pages();
        assert_eq!(
            format!("{:?}", "still here".split(' ').collect::<Vec<_>>()),
            "[\"still\", \"here\"]"
        );
    }
}
