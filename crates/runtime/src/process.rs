//! The memory of this process, as Linux tells it.

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

fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
