//! A request to do something, done once for each form.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use claimant_core::Error;
use futures_util::StreamExt as _;

use crate::ask::{Ask, Reader};
use crate::console::{Console, FORM};
use crate::done::Done;
use crate::fields::{BODY, FIELDS_MAX, Fields, shown, too_many};
use crate::ui::nav::Tab;

/// The most bytes of a form: a message is 1 MiB at most, and of it every line end is escaped as two bytes, which are six.
const FORM_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most bytes of a form that are read: a browser that is not heard to the end shows no answer.
const READ_BYTES_MAX: usize = 16 * FORM_BYTES_MAX;

/// The content type of an act that is no form.
const JSON: &str = "application/json";

/// A request to do something: a form, or a JSON object with the same fields.
pub(crate) struct Act {
    /// What was asked for.
    pub(crate) fields: Fields,
    /// The request that it came with.
    pub(crate) ask: Ask,
    /// Whether a person typed it in a browser: it is a form, and a program does not ask for it. Then lines end as the browser ends them, and
    /// what is empty was emptied. A program means what it sends.
    pub(crate) is_typed: bool,
}

impl FromRequest<Console> for Act {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let ask = Ask::of(&parts);
        let kind = kind(&parts.headers);
        match read(body).await.and_then(|body| fields(kind, &body)) {
            Ok(fields) => Ok(Self { fields, is_typed: kind != JSON && ask.reader != Reader::Program, ask }),
            Err(error) => Err(ask.refused(console, Tab::Overview, &error)),
        }
    }
}

impl Act {
    /// Checks that it has no other fields than these, beside the number of its form, none in its address, and each with a value and once,
    /// but for the one that names `several` things. An act with one less means more, or something else: `ids` for `id` all letters of a
    /// cause.
    ///
    /// # Errors
    /// When it has another one, or one in its address, or one that is `null`, or one twice.
    pub(crate) fn takes(&self, names: &[&str], several: Option<&str>) -> Result<(), Error> {
        if let Some(name) = self.ask.query.names().next() {
            return Err(Error::invalid(format!("{} came in the address: send it in the body", shown(name))));
        }
        if let Some(other) = self.fields.names().find(|name| *name != FORM && !names.contains(name)) {
            let takes = if names.is_empty() { "no field".to_owned() } else { names.join(", ") };
            return Err(Error::invalid(format!("{} is no field of this act: it takes {takes}", shown(other))));
        }
        let mut came = BTreeSet::new();
        let mut of_one = self.fields.names().filter(|name| Some(*name) != several);
        if let Some(name) = of_one.find(|name| !came.insert(*name)) {
            return Err(Error::invalid(format!("{name} came several times: send it once")));
        }
        // Of a body there is more to say.
        let mut lost = self.fields.without_value().filter(|name| *name != BODY);
        lost.try_for_each(|name| self.fields.narrowing(name).map(drop))
    }

    /// Returns the body, if one came. What a program sends is what it means, to the last byte; what was typed in a browser has lines that
    /// end as in mail, and these end as they were typed.
    ///
    /// # Errors
    /// When it came and is empty: SQS takes none that is, and what was lost does not mean that nothing is changed. A program is told to leave
    /// it out where there is one without it (`has_own`), which a form cannot.
    pub(crate) fn body(&self, has_own: bool) -> Result<Option<String>, Error> {
        match self.fields.all(BODY).next() {
            None | Some("") if self.fields.came(BODY) => {
                let leave_out = has_own && !self.is_typed;
                let or = if leave_out { ", or leave body out to send what is there" } else { "" };
                Err(Error::invalid(format!("SQS takes no empty body: fill it in{or}")))
            }
            Some(body) if self.is_typed => Ok(Some(body.replace("\r\n", "\n"))),
            body => Ok(body.map(str::to_owned)),
        }
    }

    /// Does it, once for each form: where a form is sent again with the same in it, as by a double click, waits for what becomes of the
    /// first and has the same answer. A form has the same in it however often its page is drawn again. What programs send is of no form.
    /// Returns the request with what became of it.
    pub(crate) async fn once<F>(
        self,
        console: &Console,
        work: impl FnOnce(Console, Arc<Self>) -> F,
    ) -> (Arc<Self>, Result<Done, Error>)
    where
        F: Future<Output = Result<Done, Error>> + Send + 'static,
    {
        let act = Arc::new(self);
        let work = work(console.clone(), Arc::clone(&act));
        if act.fields.get(FORM).is_none() {
            let done = work.await;
            return (act, done);
        }
        let mut hash = DefaultHasher::new();
        (&act.ask.uri, &act.fields).hash(&mut hash);
        let outcome = console.outcome(hash.finish(), work);
        let done = outcome.clone().wait().await;
        if done.is_err() {
            console.forget(&outcome);
        }
        (act, done)
    }
}

/// Reads the body of a request.
async fn read(body: Body) -> Result<Vec<u8>, Error> {
    let (mut chunks, mut form, mut bytes) = (body.into_data_stream(), Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes = chunk.map_err(|e| Error::invalid("the form did not come whole").caused_by(e))?;
        bytes += chunk.len();
        if bytes <= FORM_BYTES_MAX {
            form.extend_from_slice(&chunk);
        } else if bytes > READ_BYTES_MAX {
            break;
        }
    }
    if bytes > FORM_BYTES_MAX {
        return Err(Error::invalid(format!(
            "the form has more than {FORM_BYTES_MAX} bytes, and a message 1048576 at most: send less"
        )));
    }
    Ok(form)
}

/// Returns the content type, without its parameters.
fn kind(headers: &HeaderMap) -> &str {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

fn fields(kind: &str, body: &[u8]) -> Result<Fields, Error> {
    match kind {
        JSON => Fields::of_json(body),
        "application/x-www-form-urlencoded" | "" => {
            let form = String::from_utf8_lossy(body);
            if form.split('&').count() > FIELDS_MAX { Err(too_many()) } else { Ok(Fields::of_form(&form)) }
        }
        other => Err(Error::invalid(format!(
            "the content type is {other}: send application/x-www-form-urlencoded or application/json"
        ))),
    }
}
