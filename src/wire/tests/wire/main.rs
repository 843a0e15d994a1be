//! The server, the network and the client over real sockets, byte by byte where the wire facts say so.

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
