//! The body of a scan's answer: gives its bytes to the connection piece by piece.
//!
//! Lives on: the service runtime; one per scan, polled by the connection when it takes something.
//! Invariants: I20, see `outbox`; an answer that was cut off ends with the reason, also in the middle of a message.
use crate::outbox::Outbox;
use crate::status::told_in;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tonic::Status;
use tonic::body::Body;

/// What encodes a scan's messages, and where their bytes lie until they are taken.
pub(crate) struct AnswerBody {
    encoder: Body,
    outbox: Outbox,
    is_over: bool,
}

impl AnswerBody {
    /// The answer of a call: as it is, unless it is a scan's.
    pub(crate) fn wrap(mut answer: http::Response<Body>) -> http::Response<Body> {
        // Of a message that is none no call of ours was told.
        told_in(answer.headers_mut());
        match answer.extensions_mut().remove::<Outbox>() {
            None => answer,
            Some(outbox) => answer.map(|encoder| Body::new(AnswerBody { encoder, outbox, is_over: false })),
        }
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.is_over = true;
        let mut trailers = HeaderMap::new();
        if status.add_header(&mut trailers).is_err() {
            // The texts of our own are sound; were one not, the code alone says that the answer is not whole.
            trailers = HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from(status.code() as i32));
        }
        Frame::trailers(trailers)
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        loop {
            if let Some(why) = this.outbox.why_cut_off() {
                return Poll::Ready(Some(Ok(this.end(&why))));
            }
            if let Some(piece) = this.outbox.piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let frame = ready!(Pin::new(&mut this.encoder).poll_frame(context));
            let Some(Ok(frame)) = frame else {
                this.is_over = true;
                return Poll::Ready(frame);
            };
            match frame.into_data() {
                Ok(bytes) => this.outbox.encoded(bytes),
                Err(trailers) => {
                    this.is_over = true;
                    return Poll::Ready(Some(Ok(trailers)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.outbox.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;
    use mink_router::BytePermit;
    use std::collections::VecDeque;

    /// What an encoder gives; then it waits.
    struct Encoded(VecDeque<Bytes>);

    impl http_body::Body for Encoded {
        type Data = Bytes;
        type Error = Status;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.pop_front().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
        }
    }

    fn next(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(body).poll_frame(&mut Context::from_waker(futures::task::noop_waker_ref()))
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_off_in_the_middle_of_a_message_ends_with_the_reason() {
        let outbox = Outbox::new(1 << 20);
        let mut answer = http::Response::new(Body::new(Encoded([vec![7; 100_000].into()].into())));
        answer.extensions_mut().insert(outbox.clone());
        let mut body = AnswerBody::wrap(answer).into_body();
        outbox.push(arrow_flight::FlightData::default(), BytePermit::default());
        let Poll::Ready(Some(Ok(first))) = next(&mut body) else { panic!("there is a piece") };
        assert!(first.into_data().expect("bytes").len() < 100_000);
        assert!(outbox.cut_off(Status::resource_exhausted("take more")));
        let Poll::Ready(Some(Ok(last))) = next(&mut body) else { panic!("there is an end") };
        let trailers = last.into_trailers().expect("trailers");
        assert_eq!(trailers.get("grpc-status").expect("a code"), "8");
        assert!(matches!(next(&mut body), Poll::Ready(None)));
    }

    #[tokio::test]
    async fn what_is_encoded_comes_out_whole_in_pieces() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let outbox = Outbox::new(1 << 20);
        let encoded = Encoded([Bytes::from(bytes.clone()), Bytes::new(), vec![1, 2, 3].into()].into());
        let mut answer = http::Response::new(Body::new(encoded));
        answer.extensions_mut().insert(outbox.clone());
        let mut body = AnswerBody::wrap(answer).into_body();
        let mut out = Vec::new();
        while let Poll::Ready(Some(frame)) = next(&mut body) {
            out.extend_from_slice(&frame.expect("sound").into_data().expect("bytes"));
        }
        assert_eq!(out, [bytes, vec![1, 2, 3]].concat());
        assert!(outbox.is_taken());
    }
}
