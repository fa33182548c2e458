//! A mutual exclusion lock on a private futex.
//!
//! Never taken in a signal handler, nor in translated code.

use super::calls::{futex_wait, futex_wake, FOREVER};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

/// Guards a `T`. Word: 0 free, 1 held, 2 held with waiters.
pub struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: access to the value is exclusive while the word is held.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub const fn new(value: T) -> Lock<T> {
        Lock { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// The value without the lock.
    ///
    /// # Safety
    /// Only for what is published by atomics and never moves: the signal handler's reads.
    pub unsafe fn peek(&self) -> &T {
        // SAFETY: the caller reads only what may be read while another thread holds the lock.
        unsafe { &*self.value.get() }
    }

    /// Gives up a lock whose guard was forgotten. Reachable from the signal handler: it never waits.
    ///
    /// # Safety
    /// The calling thread holds the lock by a guard that it gave to `core::mem::forget`.
    pub unsafe fn give_up(&self) {
        drop(Guard { lock: self });
    }

    /// The value, and nobody holds the lock any more.
    ///
    /// # Safety
    /// In a fork's child that was made without care for the lock: whoever held it is not there, and no thread of the child has come to it.
    pub unsafe fn renew(&self) -> *mut T {
        self.word.store(0, Ordering::Release);
        self.value.get()
    }

    pub fn lock(&self) -> Guard<'_, T> {
        if self.word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.word.swap(2, Ordering::Acquire) != 0 {
                futex_wait(self.word.as_ptr(), 2, FOREVER, false);
            }
        }
        Guard { lock: self }
    }
}

/// Holding it proves that no other thread is inside.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so the lock is held by this thread.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.lock.word.swap(0, Ordering::Release) == 2 {
            futex_wake(self.lock.word.as_ptr(), 1, false);
        }
    }
}
