//! The memory of this process, as Linux tells it and is told.

/// What is in use now, without what was freed and may be used again; the peak is counted anew from here.
pub fn start() -> Option<u64> {
    give_back();
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    field("VmRSS:")
}

/// How much more there was at some time since then.
pub fn peak(before: u64) -> Option<u64> {
    Some(field("VmHWM:")?.saturating_sub(before))
}

/// Gives the memory back to the system that the allocator keeps for later.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // Safe: it only touches memory that nobody uses.
        unsafe { malloc_trim(0) };
    }
}

/// From so many bytes on it pays to ask for large pages.
pub(crate) const LARGE: usize = 4 << 20;

/// Asks for large pages for memory that will be gone through: each of them is handed out at once instead of in 512 parts. Small ones are left to the system,
/// since a large page is filled with zeros as a whole, however little of it is used.
pub(crate) fn prefer_large_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= LARGE {
        extern "C" {
            fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
        }
        const PAGE: usize = 4096;
        const HUGE: i32 = 14;
        let before = start.align_offset(PAGE).min(bytes);
        // Safe: it changes nothing but how pages are made, and whoever cannot says so, which does no harm. Pages beyond the end may belong to others.
        unsafe { madvise(start.add(before), (bytes - before) & !(PAGE - 1), HUGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
