//! The program's signal dispositions, and what the kernel is told instead.

extern crate alloc;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::sys::calls::{check, syscall, Error, EINVAL};
use crate::sys::kernel::{
    SigAction, FAULT_SIGNALS, MEMORY_FAULTS, N_SIGNALS, SA_NOCLDWAIT, SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART,
    SA_RESTORER, SA_SIGINFO, SIGCHLD, SIGKILL, SIGSTOP, SIGSYS, SIG_DFL, SIG_IGN, UNBLOCKABLE, UNDEFERRED_SIGNALS,
};
use crate::sys::lock::Lock;
use alloc::boxed::Box;

/// Everything but what an instruction can cause, a system call among them: blocked while a signal waits to be delivered.
pub const ALL_BUT_FAULTS: u64 = {
    let mut mask = u64::MAX;
    let mut i = 0;
    while i < UNDEFERRED_SIGNALS.len() {
        mask &= !(1 << (UNDEFERRED_SIGNALS[i] - 1));
        i += 1;
    }
    mask
};

/// Everything but what a copy from or to the program's memory can cause: open while the runtime makes one, and no more,
/// because a signal that waits for the whole process may come then although the thread blocks it.
pub const ALL_BUT_MEMORY_FAULTS: u64 = !MEMORY_FAULTS;

pub struct SignalTable {
    actions: [SigAction; N_SIGNALS + 1],
    /// `take_all` was called.
    is_whole: bool,
    /// `take_calls` was.
    has_calls: bool,
}

/// What the process asked for. Taken after the engine's lock; never in the handler. A process that shares this one's
/// memory has a table of its own: see `table_of`.
pub static SIGNALS: Lock<SignalTable> = Lock::new(SignalTable {
    actions: [SigAction { handler: 0, flags: 0, restorer: 0, mask: 0 }; N_SIGNALS + 1],
    is_whole: false,
    has_calls: false,
});

/// The table that the thread's actions are in. Reachable from the signal handler.
pub fn table_of(context: &ThreadContext) -> &'static Lock<SignalTable> {
    if context.signals.table == 0 {
        return &SIGNALS;
    }
    // SAFETY: made by `copy_table`, and given back when nobody runs on the context any more.
    unsafe { &*(context.signals.table as *const Lock<SignalTable>) }
}

/// A table like the thread's, for a task that shares its memory and not its actions; as a context holds it.
pub fn copy_table(context: &ThreadContext) -> u64 {
    let (actions, has_calls) = {
        let table = table_of(context).lock();
        (table.actions, table.has_calls)
    };
    Box::into_raw(Box::new(Lock::new(SignalTable { is_whole: true, actions, has_calls }))) as u64
}

/// Gives back what `copy_table` made.
///
/// # Safety
/// No thread runs with that table any more.
pub unsafe fn free_table(table: u64) {
    // SAFETY: made by Box::into_raw in `copy_table`.
    drop(unsafe { Box::from_raw(table as *mut Lock<SignalTable>) });
}

/// Makes a kernel sigaction call; what was set before.
fn kernel_action(signal: u32, action: Option<&SigAction>) -> Result<SigAction, Error> {
    let mut old = SigAction::default();
    let new = action.map_or(0, |action| action as *const SigAction as u64);
    // SAFETY: reads `action`, writes `old`, both of the kernel's layout; 8 is the size of a mask.
    check(unsafe {
        syscall(number::RT_SIGACTION, [u64::from(signal), new, &mut old as *mut SigAction as u64, 8, 0, 0])
    })?;
    Ok(old)
}

// SAFETY: the handlers of cpu::signal define them, as they are declared here.
unsafe extern "C" {
    fn clew_signal_entry();
    fn clew_signal_return();
}

/// The runtime's own action for a signal that the program handles so.
fn runtime_action(program: &SigAction) -> SigAction {
    SigAction {
        handler: clew_signal_entry as *const () as u64,
        flags: SA_SIGINFO | SA_ONSTACK | SA_RESTORER | (program.flags & (SA_RESTART | 3)),
        restorer: clew_signal_return as *const () as u64,
        // What copies to and from the program's memory cause stays open, as the dispatcher needs it (cpu::signal::leaving).
        mask: ALL_BUT_MEMORY_FAULTS,
    }
}

impl SignalTable {
    /// Learns what the process inherited, or asked for so far.
    pub fn learn(&mut self) {
        for signal in 1..=N_SIGNALS as u32 {
            if let Ok(old) = kernel_action(signal, None) {
                self.actions[signal as usize] = old;
            }
        }
    }

    /// Takes the fault signals and those that the process handles, if that was not done before.
    pub fn take_all(&mut self) {
        if !core::mem::replace(&mut self.is_whole, true) {
            for signal in 1..=N_SIGNALS as u32 {
                self.take(signal);
            }
        }
    }

    /// Takes SIGSYS, as which system calls of threads that run natively come.
    pub fn take_calls(&mut self) {
        if !core::mem::replace(&mut self.has_calls, true) {
            self.take(SIGSYS);
        }
    }

    /// Whether the runtime needs the signal, whatever the program asks for.
    fn is_needed(&self, signal: u32) -> bool {
        FAULT_SIGNALS.contains(&signal) || self.has_calls && signal == SIGSYS
    }

    /// Takes a signal, if it is one of those.
    pub fn take(&self, signal: u32) {
        if self.is_taken(signal) {
            let _ = kernel_action(signal, Some(&runtime_action(&self.actions[signal as usize])));
        }
    }

    /// Takes a signal so that its handler runs on whatever stack is in use.
    pub fn take_without_stack(&self, signal: u32) {
        let action = runtime_action(&self.actions[signal as usize]);
        let _ = kernel_action(signal, Some(&SigAction { flags: action.flags & !SA_ONSTACK, mask: u64::MAX, ..action }));
    }

    /// Whether the kernel knows the runtime's action instead of the program's.
    fn is_taken(&self, signal: u32) -> bool {
        let handler = self.actions[signal as usize].handler;
        self.is_needed(signal) || (handler != SIG_DFL && handler != SIG_IGN)
    }

    pub fn action(&self, signal: u32) -> SigAction {
        self.actions.get(signal as usize).copied().unwrap_or_default()
    }

    /// Whether children are buried as they end, and nobody waits for them.
    pub fn buries_children(&self) -> bool {
        let action = self.action(SIGCHLD);
        action.handler == SIG_IGN || action.flags & SA_NOCLDWAIT != 0
    }

    /// The program's rt_sigaction: sets `new` if given and returns what was there.
    pub fn change(&mut self, signal: u32, new: Option<SigAction>) -> Result<SigAction, Error> {
        if signal == 0 || signal as usize > N_SIGNALS {
            return Err(Error(EINVAL));
        }
        let old = self.actions[signal as usize];
        if let Some(new) = new {
            if signal == SIGKILL || signal == SIGSTOP {
                return Err(Error(EINVAL));
            }
            let is_plain = new.handler == SIG_DFL || new.handler == SIG_IGN;
            let given = if is_plain && !self.is_needed(signal) { new } else { runtime_action(&new) };
            kernel_action(signal, Some(&given))?;
            // The kernel keeps no bits that it does not know, nor SIGKILL and SIGSTOP in the mask (sigaction(2)).
            let known = SA_RESTORER | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND | 0x803;
            self.actions[signal as usize] =
                SigAction { flags: new.flags & known, mask: new.mask & !UNBLOCKABLE, ..new };
        }
        Ok(old)
    }

    /// A handler that runs once: the default comes back before it runs.
    pub fn reset_handler(&mut self, signal: u32) {
        let old = self.action(signal);
        let _ = self.change(signal, Some(SigAction { handler: SIG_DFL, ..old }));
    }

    /// As the kernel does for a child made with CLONE_CLEAR_SIGHAND: no handlers any more.
    pub fn clear_handlers(&mut self) {
        for signal in 1..=N_SIGNALS as u32 {
            let action = self.action(signal);
            if action.handler != SIG_DFL && action.handler != SIG_IGN {
                self.actions[signal as usize] = SigAction::default();
            }
            if self.is_needed(signal) {
                let _ = kernel_action(signal, Some(&runtime_action(&self.actions[signal as usize])));
            }
        }
    }

    /// Before execve: what the program ignores, the next program ignores, too. `false` undoes it.
    pub fn pass_ignored(&self, is_passed: bool) {
        for signal in 1..=N_SIGNALS as u32 {
            let action = self.actions[signal as usize];
            if self.is_needed(signal) && action.handler == SIG_IGN {
                let given = if is_passed { action } else { runtime_action(&action) };
                let _ = kernel_action(signal, Some(&given));
            }
        }
    }

    /// Tells the kernel what the program asked for: this process is not followed any more. Without `handlers` only what is
    /// ignored: the kernel has cleared the rest.
    pub fn restore_native(&self, handlers: bool) {
        for signal in 1..=N_SIGNALS as u32 {
            if handlers || self.actions[signal as usize].handler == SIG_IGN {
                self.restore(signal);
            }
        }
    }

    /// Tells the kernel what the program asked for, but for one signal.
    pub fn restore_all_but(&self, signal: u32) {
        for other in (1..=N_SIGNALS as u32).filter(|other| *other != signal) {
            self.restore(other);
        }
    }

    /// Tells the kernel what the program asked for one signal.
    pub fn restore(&self, signal: u32) {
        // Setting the others again could throw pending signals away (kernel/signal.c, do_sigaction).
        if self.is_taken(signal) {
            let _ = kernel_action(signal, Some(&self.actions[signal as usize]));
        }
    }

    /// Where the program's action for a signal is.
    pub fn address_of(&self, signal: u32) -> u64 {
        &raw const self.actions[signal as usize] as u64
    }

    /// The kernel's own default for one signal: the next one ends the process as it would have.
    pub fn restore_default(&self, signal: u32) {
        let _ = kernel_action(signal, Some(&SigAction::default()));
    }
}
