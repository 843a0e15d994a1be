//! HTTP and libprocess on one port: serving, calling, content negotiation, streams.
#![forbid(unsafe_code)]
