//! Identifies the running system: process IDs and start times are only valid until it restarts.

/// Returns an ID that changes whenever the system boots; `None` if the system has none.
#[cfg(target_os = "linux")]
pub(crate) fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Returns an ID that changes whenever the system boots; `None` if the system has none.
#[cfg(target_os = "macos")]
pub(crate) fn boot_id() -> Option<String> {
    let mut text = [0u8; 64];
    let mut length = text.len();
    // SAFETY: the buffer is valid for `length` bytes, and nothing is set.
    let failed = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    } != 0;
    let text = std::ffi::CStr::from_bytes_until_nul(&text).ok()?;
    let text = text.to_str().ok().filter(|id| !failed && !id.is_empty())?;
    Some(text.to_owned())
}

/// Returns an ID that changes whenever the system boots; `None` if the system has none.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn boot_id() -> Option<String> {
    None
}
