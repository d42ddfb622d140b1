//! A shard on the simulator: each test runs under several seeds, with a WAL and objects that the test holds in its hands, and
//! at last with the real ones.
mod append_times;
mod appends;
mod ends;
mod epoch_ends;
mod epoll;
mod held;
mod locates;
mod metadata;
mod producers;
mod random;
mod reads;
mod rests;
mod retention;
mod rig;
mod wal;
