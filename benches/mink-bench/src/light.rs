//! Speed of light: what the machine takes for the same bytes, whatever we do.
//!
//! Lives on: the thread that measures, and one more for the round trip.
use futures::executor::block_on;
use mink_router::{Receiver, Sender, lane};

/// A copy of `bytes` into memory that is there.
pub fn copy(bytes: usize) -> impl FnMut() -> u8 {
    let from = vec![7_u8; bytes];
    let mut to = vec![0_u8; bytes];
    move || {
        to.copy_from_slice(&from);
        std::hint::black_box(to.as_mut_slice()).first().copied().unwrap_or_default()
    }
}

/// The checksum of so many bytes.
pub fn checksum(bytes: usize) -> impl FnMut() -> u32 {
    let from = vec![7_u8; bytes];
    move || crc32c::crc32c(&from)
}

/// Another thread that sends back what it is sent.
#[derive(Debug)]
pub struct Echo {
    there: Option<Sender<u64>>,
    back: Receiver<u64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Echo {
    /// Starts the thread.
    #[must_use]
    pub fn start() -> Echo {
        let (there, mut taken) = lane::<u64>(1);
        let (sends, back) = lane(1);
        let thread = std::thread::spawn(move || {
            block_on(async {
                while let Some(message) = taken.recv().await {
                    if sends.send(message).await.is_err() {
                        return;
                    }
                }
            });
        });
        Echo { there: Some(there), back, thread: Some(thread) }
    }

    /// One message there and back, both threads asleep in between.
    pub fn round_trip(&mut self) -> Option<u64> {
        block_on(async {
            self.there.as_ref()?.send(7).await.ok()?;
            self.back.recv().await
        })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.there = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            drop(thread.join());
        }
    }
}
