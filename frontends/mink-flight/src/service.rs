//! The calls of Arrow Flight, each given to the file of its verb.
//!
//! Lives on: the service runtime.
use crate::line::Line;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::paid_body::Paid;
use crate::reader::Messages;
use crate::scan::Plan;
use crate::status::{OrStatus, told};
use crate::{action, exchange, info, put, reader};
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use mink_proto::ticket;
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// [`FlightService`] of a node.
#[derive(Clone, Debug)]
pub(crate) struct Calls(pub(crate) Arc<Node>);

type Answer<T> = Result<Response<T>, Status>;
type Answers<T> = BoxStream<'static, Result<T, Status>>;

impl Calls {
    /// Counts a call and its refusal.
    fn answer<T>(&self, answer: Result<T, Status>) -> Answer<T> {
        self.0.counters.call();
        let answer = answer.map_err(told);
        if let Err(status) = &answer {
            self.0.counters.refused();
            tracing::debug!(code = ?status.code(), why = status.message(), "a call of Flight is refused");
        }
        answer.map(Response::new)
    }
}

fn paid<T>(request: &Request<T>) -> Paid {
    request.extensions().get::<Paid>().cloned().unwrap_or_default()
}

/// The connection that a call came by.
fn line<T>(request: &Request<T>) -> Line {
    request.extensions().get::<Line>().cloned().unwrap_or_default()
}

/// Tells the body of an answer where its bytes lie.
fn lies_in<T>(mut answer: Response<T>, outbox: Outbox) -> Response<T> {
    answer.extensions_mut().insert(outbox);
    answer
}

#[tonic::async_trait]
impl FlightService for Calls {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    /// There is nobody to prove who one is to: whatever is sent is taken, so that clients which begin with it go on.
    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        self.answer(Ok(stream::empty().boxed()))
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let criteria = request.into_inner().expression;
        let text = std::str::from_utf8(&criteria).map_err(|_| {
            Status::invalid_argument("the criteria are the beginning of a table's address, as text")
        });
        self.answer(text.map(|text| stream::iter(info::flights(&self.0, text)).boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        self.answer(info::flight_info(&self.0, request.into_inner()).await)
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        self.answer(Err(Status::unimplemented("no call takes so long that it is polled; use GetFlightInfo")))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        self.answer(info::schema(&self.0, &request.into_inner()))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let line = line(&request);
        let plan = mink_proto::Ticket::read(&request.into_inner().ticket)
            .or_status()
            .and_then(|ticket::Ticket::Scan(scan)| Plan::of(&self.0.admin.state(), &scan));
        let rows: Messages = self.answer(plan.map(|plan| reader::start(&self.0, plan, line)))?.into_inner();
        let outbox = rows.outbox();
        Ok(lies_in(Response::new(rows.map_err(told).boxed()), outbox))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let paid = paid(&request);
        let acks = put::put(&self.0, request.into_inner(), paid).await;
        self.answer(acks.map(|acks| acks.map_err(told).boxed()))
    }

    async fn do_exchange(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        let line = line(&request);
        let rows = exchange::exchange(&self.0, request.into_inner(), line).await;
        let (rows, outbox) = self.answer(rows)?.into_inner();
        Ok(lies_in(Response::new(rows.map_err(told).boxed()), outbox))
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let results = action::action(&self.0, request.into_inner()).await;
        let one = |body: Vec<u8>| Ok(arrow_flight::Result { body: body.into() });
        self.answer(results.map(|results| stream::iter(results.into_iter().map(one)).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        let known = action::ACTIONS.map(|(name, description)| {
            Ok(ActionType { r#type: name.into(), description: description.into() })
        });
        self.answer(Ok(stream::iter(known).boxed()))
    }
}
