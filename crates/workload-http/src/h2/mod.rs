//! HTTP/2 without I/O, as a client with prior knowledge speaks it over a plain connection.
