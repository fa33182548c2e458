// what: a Rust program: panics caught by catch_unwind, in threads and callbacks, destructors, channels, thread-local keys, scoped threads
// build: -O -C debuginfo=0
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

struct Guard(&'static str);

static DROPPED: AtomicU32 = AtomicU32::new(0);

impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0.len() as u32, Ordering::SeqCst);
    }
}

thread_local! {
    static SEEN: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

#[inline(never)]
fn dive(depth: u32) -> u32 {
    let _guard = Guard("frame");
    if depth == 0 {
        panic!("bottom of {}", SEEN.with(|seen| seen.borrow().len()));
    }
    dive(depth - 1) + 1
}

fn message(result: thread::Result<u32>) -> String {
    match result {
        Ok(value) => format!("value {value}"),
        Err(cause) => cause.downcast_ref::<String>().cloned().unwrap_or_else(|| "other".to_string()),
    }
}

extern "C-unwind" fn compare(a: *const std::ffi::c_void, b: *const std::ffi::c_void) -> i32 {
    // SAFETY: qsort passes pointers to elements.
    let (a, b) = unsafe { (*a.cast::<i32>(), *b.cast::<i32>()) };
    if a == 13 || b == 13 {
        panic!("unlucky");
    }
    a - b
}

extern "C-unwind" {
    fn qsort(
        base: *mut std::ffi::c_void,
        n: usize,
        size: usize,
        compare: extern "C-unwind" fn(*const std::ffi::c_void, *const std::ffi::c_void) -> i32,
    );
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    for depth in [0, 5, 500] {
        println!("{}", message(panic::catch_unwind(|| dive(depth))));
    }
    println!("dropped {}", DROPPED.load(Ordering::SeqCst));
    let nested = panic::catch_unwind(|| {
        let inner = panic::catch_unwind(|| dive(3));
        assert!(inner.is_err(), "inner");
        dive(2)
    });
    println!("{}", message(nested));
    let mut values = [5, 3, 13, 8, 1];
    let sorted = panic::catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: five elements of four bytes.
        unsafe { qsort(values.as_mut_ptr().cast(), values.len(), 4, compare) };
    }));
    println!("sorted {}", sorted.is_ok());
    let threads: Vec<_> = (0..4u32).map(|i| thread::spawn(move || if i % 2 == 0 { dive(i * 10) } else { i })).collect();
    for handle in threads {
        println!("{}", message(handle.join()));
    }
    let (sender, receiver) = mpsc::channel();
    let total = Arc::new(Mutex::new(HashMap::new()));
    thread::scope(|scope| {
        for i in 0..4u32 {
            let (sender, total) = (sender.clone(), Arc::clone(&total));
            scope.spawn(move || {
                for j in 0..200 {
                    *total.lock().unwrap().entry((i * j) % 17).or_insert(0u64) += u64::from(j);
                }
                sender.send(i).unwrap();
            });
        }
        drop(sender);
        let mut got: Vec<u32> = receiver.iter().collect();
        got.sort_unstable();
        println!("{got:?}");
    });
    let mut sums: Vec<_> = total.lock().unwrap().iter().map(|(key, value)| (*key, *value)).collect();
    sums.sort_unstable();
    println!("{sums:?}");
    println!("overflow {:?}", panic::catch_unwind(|| [1u8, 2][std::hint::black_box(5)]).is_err());
}
