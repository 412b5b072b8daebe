//! The load engine: runs session machines against sockets, a thread per core.
