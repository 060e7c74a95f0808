//! A bound on the memory that one thread may take while it runs what a stranger wrote.
//!
//! Templates can double a value with one instruction, so fuel does not bound them. The allocator counts what a thread with
//! a budget takes and gives back; when the budget is spent the next allocation fails, and a failed allocation unwinds
//! instead of ending the process (`alloc_error_hook`, the one unstable feature here; see src/ffi/layer.cmake).

use std::alloc::{set_alloc_error_hook, GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Once;

/// What the unwinding itself may take.
const RESERVE: usize = 16 << 20;
const UNBOUNDED: usize = usize::MAX;

/// The panic's payload when a budget is spent, and when the system has no memory.
pub struct OutOfMemory;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(UNBOUNDED) };
}

/// From now on this thread may take so many bytes more than it gives back. For a thread that ends with its task.
pub fn bound_this_thread(bytes: usize) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| set_alloc_error_hook(|_| std::panic::resume_unwind(Box::new(OutOfMemory))));
    LEFT.with(|left| left.set(bytes));
}

fn take(bytes: usize) -> bool {
    LEFT.with(|left| match left.get() {
        UNBOUNDED => true,
        rest if bytes <= rest => {
            left.set(rest - bytes);
            true
        }
        _ => {
            left.set(RESERVE);
            false
        }
    })
}

fn give(bytes: usize) {
    LEFT.with(|left| {
        if left.get() != UNBOUNDED {
            left.set(left.get().saturating_add(bytes).min(UNBOUNDED - 1));
        }
    });
}

struct Budgeted;

#[global_allocator]
static ALLOCATOR: Budgeted = Budgeted;

// SAFETY: the system's allocator does the work; a refusal is a null pointer, as the trait allows.
unsafe impl GlobalAlloc for Budgeted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if take(layout.size()) { System.alloc(layout) } else { std::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if take(layout.size()) { System.alloc_zeroed(layout) } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        give(layout.size());
        System.dealloc(memory, layout);
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && !take(size - layout.size()) {
            return std::ptr::null_mut();
        }
        if size < layout.size() {
            give(layout.size() - size);
        }
        System.realloc(memory, layout, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_budget<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, bool> {
        let thread = std::thread::spawn(move || {
            bound_this_thread(bytes);
            work()
        });
        thread.join().map_err(|payload| payload.is::<OutOfMemory>())
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        assert_eq!(with_budget(1 << 20, || (0..100).map(|_| vec![1u8; 1 << 19].len()).sum::<usize>()), Ok(100 << 19));
    }

    #[test]
    fn a_spent_budget_unwinds() {
        assert_eq!(with_budget(1 << 20, || vec![1u8; 2 << 20].len()), Err(true));
        assert_eq!(with_budget(1 << 20, || "x".repeat(usize::MAX / 4).len()), Err(true));
        assert_eq!(with_budget(1 << 20, || (0..4096).map(|i| vec![i; 1024]).collect::<Vec<Vec<u64>>>().len()), Err(true));
    }

    #[test]
    fn other_threads_have_no_budget() {
        assert_eq!(with_budget(1 << 10, || std::thread::scope(|s| s.spawn(|| vec![1u8; 1 << 22].len()).join().unwrap())), Ok(1 << 22));
    }
}
