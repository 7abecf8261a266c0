//! The time that the processor spent on this thread: on a busy machine it tells more than the clock on the wall.

use std::time::Duration;

#[cfg(target_os = "linux")]
pub fn cpu_time() -> Option<Duration> {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const THREAD_CPU_TIME: i32 = 3;
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // The C library fills in the structure, whose form POSIX fixes.
    let status = unsafe { clock_gettime(THREAD_CPU_TIME, &mut time) };
    (status == 0).then(|| Duration::new(time.seconds as u64, time.nanoseconds as u32))
}

/// Not known here.
#[cfg(not(target_os = "linux"))]
pub fn cpu_time() -> Option<Duration> {
    None
}
