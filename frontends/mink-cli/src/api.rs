//! A node's HTTP listener: JSON under `/api/v1`, and its plain pages.
//!
//! Lives on: any tokio runtime.
use crate::address::{Listener, Origin, unreachable};
use crate::failure::Failure;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::time::Duration;

/// Longest time for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A node's administration.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    http: reqwest::Client,
    /// HOST:PORT.
    authority: String,
    /// Who said that it is there.
    origin: Origin,
}

/// A page as it came.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// When the node says it is.
    pub(crate) date: Option<String>,
}

impl Api {
    /// The listener at HOST:PORT.
    pub(crate) fn at(authority: String, origin: Origin) -> Result<Api, Failure> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build();
        let http = http.map_err(|error| Failure::failed(format!("HTTP client: {error}")))?;
        Ok(Api { http, authority, origin })
    }

    /// HOST:PORT.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Page, Failure> {
        let mut request = self.http.request(method, format!("http://{}{path}", self.authority));
        // A node takes no change without it, which keeps web pages from sending any.
        request = request.header("content-type", "application/json");
        if let Some(body) = body {
            request = request.json(body);
        }
        let sent = async {
            let answer = request.send().await?;
            let status = answer.status();
            let date = answer.headers().get("date").and_then(|date| date.to_str().ok()).map(str::to_owned);
            Ok::<_, reqwest::Error>(Page { status, text: answer.text().await?, date })
        };
        match sent.await {
            Ok(page) => Ok(page),
            Err(error) => {
                let why = innermost(&error);
                Err(unreachable(Listener::Http, &self.authority, &self.origin, why).await)
            }
        }
    }

    /// A page, whatever its status.
    pub(crate) async fn page(&self, path: &str) -> Result<Page, Failure> {
        self.send(Method::GET, path, None).await
    }

    /// Asks the API; a refusal fails with the node's own words.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let path = format!("/api/v1{path}");
        let page = self.send(method, &path, body).await?;
        let value = serde_json::from_str::<Value>(&page.text);
        if !page.status.is_success() {
            let words = value.ok().and_then(|value| value.get("error")?.as_str().map(str::to_owned));
            let words = words.unwrap_or_else(|| page.text.trim().to_owned());
            return Err(Failure::failed(if words.is_empty() { page.status.to_string() } else { words }));
        }
        if page.text.is_empty() {
            return Ok(Value::Null);
        }
        value.map_err(|error| {
            Failure::failed(format!("http://{}{path}: not a Mink node's answer: {error}", self.authority))
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }
}

/// What is behind a chain of errors that each say little.
fn innermost(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => innermost(source),
        None => error.to_string(),
    }
}
