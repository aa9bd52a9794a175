//! Consumers and engines whatever their payloads are.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::clock::Clock;
use crate::consumer::Consumer;
use crate::deadline::Schedule;
use crate::engine::Engine;
use crate::engine::invocation::Part;
use crate::error::Error;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::report::Report;
use crate::store::Before;
use crate::threads::HandlerThreads;

/// A consumer that has not started.
pub(crate) trait Start: Send + Sync {
    fn start(self: Box<Self>, concurrency: usize) -> Result<Box<dyn AnyEngine>, Error>;
    fn behind(&mut self, before: Before<'_>);
}

impl<T: Send + 'static> Start for Consumer<T> {
    fn start(self: Box<Self>, concurrency: usize) -> Result<Box<dyn AnyEngine>, Error> {
        Ok(Box::new(Engine::new(*self, concurrency)?))
    }

    fn behind(&mut self, before: Before<'_>) {
        self.behind(before);
    }
}

/// An [`Engine`].
pub(crate) trait AnyEngine: Send + Sync {
    fn name(&self) -> &ConsumerName;
    fn concurrency(&self) -> usize;
    fn with_clock(self: Box<Self>, clock: Arc<dyn Clock>) -> Box<dyn AnyEngine>;
    fn with_handlers_on(self: Box<Self>, threads: HandlerThreads) -> Box<dyn AnyEngine>;
    fn with_receives_max(self: Box<Self>, receives: u32) -> Box<dyn AnyEngine>;
    fn process_part<'a>(
        &'a self,
        batch: &'a [Message],
        schedule: Schedule,
        part: &'a Part<'a>,
    ) -> BoxFuture<'a, Report>;
}

impl<T: Send + 'static> AnyEngine for Engine<T> {
    fn name(&self) -> &ConsumerName {
        self.name()
    }

    fn concurrency(&self) -> usize {
        self.concurrency()
    }

    fn with_clock(self: Box<Self>, clock: Arc<dyn Clock>) -> Box<dyn AnyEngine> {
        Box::new((*self).clock(clock))
    }

    fn with_handlers_on(self: Box<Self>, threads: HandlerThreads) -> Box<dyn AnyEngine> {
        Box::new((*self).handlers_on(threads))
    }

    fn with_receives_max(self: Box<Self>, receives: u32) -> Box<dyn AnyEngine> {
        Box::new((*self).receives_max(receives))
    }

    fn process_part<'a>(
        &'a self,
        batch: &'a [Message],
        schedule: Schedule,
        part: &'a Part<'a>,
    ) -> BoxFuture<'a, Report> {
        Box::pin(self.process_part(batch, schedule, part))
    }
}
