//! Tests the server, the network and the client over real sockets, byte for byte where the wire facts define it.

mod bodies;
mod client;
mod connections;
mod http;
mod messages;
mod network;
mod raw;
mod server;
mod streams;
mod tls;
