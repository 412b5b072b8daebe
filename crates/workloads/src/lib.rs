//! Sans-IO session machines, one module per workload, and the codecs they share.
