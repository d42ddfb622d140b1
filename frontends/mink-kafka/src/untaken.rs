//! Holds a request back whose client has not taken what it was sent before, while memory for answers is scarce.
//!
//! Lives on: the service runtime.
//! Owns: nothing beyond a call.
//! Invariants: I20: what the system holds of a connection's answers tells whether its client reads. While memory is scarce no further answer is
//! begun for one that does not: it would lie in memory as long as the ones before lie in the system. Hundreds that ask again and
//! again and take nothing so hold nothing, and go at the same time, not one after the other as each comes to hold an answer.
use crate::answer_permits::Part;
use rustix::ioctl::{Getter, Opcode, ioctl};
use std::ffi::c_int;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pauses between two looks at what the system holds: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// How long a client may take nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// While others wait.
    pub(crate) short: Duration,
    /// In any case.
    pub(crate) long: Duration,
}

/// Waits until the client has taken what it was sent, or until `part` has room again; false if it must go.
pub(crate) async fn is_taken(socket: impl AsFd, part: &Part, patience: Patience) -> bool {
    let mut untaken = untaken_bytes(&socket);
    if untaken == 0 || !part.is_scarce() {
        return true;
    }
    let held_back = part.hold_back();
    let (mut since, mut pause) = (Instant::now(), PAUSE);
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
        let now = untaken_bytes(&socket);
        if now == 0 {
            return true;
        }
        if now < untaken {
            since = Instant::now();
        }
        untaken = now;
        let stalled = since.elapsed();
        // Before it is seen whether there is room again: as a rule that is what those leave who go at the same time.
        if stalled >= patience.long || (stalled >= patience.short && held_back.others_wait()) {
            return false;
        }
        if !part.is_scarce() {
            return true;
        }
    }
}

/// Bytes that were written to the socket and that its peer has not acknowledged. A socket that cannot say is broken.
#[expect(unsafe_code, reason = "the system has no other way to ask for it")]
pub(crate) fn untaken_bytes(socket: impl AsFd) -> u64 {
    /// As Linux numbers it on x86, Arm and RISC-V.
    const SIOCOUTQ: Opcode = 0x5411;
    // SAFETY: `SIOCOUTQ` is a getter opcode that gets a `c_int`.
    let getter = unsafe { Getter::<SIOCOUTQ, c_int>::new() };
    // SAFETY: the socket is open while it is borrowed, and the getter writes into memory of its own only.
    let bytes = unsafe { ioctl(socket, getter) };
    bytes.ok().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_its_peer_has_not_taken_is_told_by_the_system() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("accepted");
        let (mut socket, _) = listener.accept().expect("there is one");
        assert_eq!(untaken_bytes(&socket), 0);
        socket.set_nonblocking(true).expect("a socket");
        let piece = vec![7; 64 << 10];
        let mut sent = 0;
        while let Ok(more) = socket.write(&piece) {
            sent += more;
        }
        let untaken = untaken_bytes(&socket);
        assert!(untaken > 0 && untaken < sent as u64, "{untaken} of {sent}: some is with the peer");
        client.read_exact(&mut vec![0; sent]).expect("all of it");
        let mut answer = [0];
        client.write_all(&[1]).expect("sent");
        socket.set_nonblocking(false).expect("a socket");
        socket.read_exact(&mut answer).expect("sent behind the acknowledgement");
        assert_eq!(untaken_bytes(&socket), 0);
    }
}
