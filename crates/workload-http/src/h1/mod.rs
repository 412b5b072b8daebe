//! HTTP/1.1 without I/O: what the client writes, and how it reads answers.
