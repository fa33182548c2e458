//! Files of /proc that tell of this process: the program reads them without the runtime.

pub mod proc_files;
pub mod proc_kinds;
pub mod proc_open;
pub mod proc_query;
pub mod proc_reads;
pub mod proc_states;
pub mod watched;
