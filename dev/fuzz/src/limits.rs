//! Limits for memory and processor time of one input.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Processor time of one input. Every reader needs far less, even instrumented and on a slow machine.
const TIME: Duration = Duration::from_secs(1);

struct CountingAllocator;

fn add(size: usize) {
    let now = CURRENT.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(now, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        CURRENT.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// How much memory an input may take at once.
#[derive(Clone, Copy)]
pub struct Limits {
    pub fixed: usize,
    pub per_byte: usize,
}

impl Limits {
    /// Runs `work` on an input of `length` bytes; panics if it took more memory or time than allowed.
    pub fn check<T>(self, length: usize, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.load(Relaxed);
        PEAK.store(before, Relaxed);
        let started = processor_time();
        let result = work();
        let taken = processor_time().saturating_sub(started);
        let memory = PEAK.load(Relaxed).saturating_sub(before);
        let allowed = self.fixed + self.per_byte * length;
        assert!(
            memory <= allowed,
            "{length} bytes of input took {memory} bytes of memory, allowed are {allowed}"
        );
        assert!(taken <= TIME, "{length} bytes of input took {taken:?} of processor time");
        result
    }
}

/// Of this thread: other processes on the machine do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
