//! A tap in the line to a server: it passes bytes on, and loses the next request or answer when told to.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What is lost next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The server never sees it; its connection is closed.
    Request,
    /// The server has done what it was asked for; the connection is closed.
    Answer,
    /// As for an answer, but the connection stays open and nothing comes over it any more.
    Silence,
}

/// A tap that passes connections on to one server.
#[derive(Clone)]
pub struct Tap {
    /// `127.0.0.1:port`, to be used in place of the server's.
    pub address: String,
    next: Arc<Mutex<Option<Loss>>>,
    /// Whether nobody listens, and no connection lasts.
    shut: watch::Sender<bool>,
}

impl Tap {
    /// A tap before the server at this address.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address").to_string();
        let tap = Self { address, next: Arc::default(), shut: watch::Sender::new(false) };
        tokio::spawn(tap.clone().listen(listener, server.to_owned()));
        tap
    }

    /// Cuts every connection, and refuses new ones until it is opened again: the server is away.
    pub fn shut(&self, shut: bool) {
        self.shut.send_replace(shut);
    }

    async fn listen(self, mut listener: TcpListener, server: String) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => Some(accepted),
                () = self.until_shut() => None,
            };
            let Some(accepted) = accepted else {
                drop(listener);
                let _ = self.shut.subscribe().wait_for(|shut| !*shut).await;
                listener = TcpListener::bind(&self.address).await.expect("the port is still the tap's");
                continue;
            };
            let Ok((client, _)) = accepted else { return };
            let Ok(server) = TcpStream::connect(&server).await else { continue };
            tokio::spawn(self.clone().pass(client, server));
        }
    }

    /// Loses this next, once.
    pub fn lose(&self, loss: Loss) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss);
    }

    /// Whether what was to be lost is lost.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn take(&self, any_of: &[Loss]) -> Option<Loss> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.take_if(|loss| any_of.contains(loss))
    }

    /// Until either side, or a loss, ends it; both ends are closed then.
    async fn pass(self, client: TcpStream, server: TcpStream) {
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            () = self.copy(from_client, to_server, &[Loss::Request]) => {}
            () = self.copy(from_server, to_client, &[Loss::Answer, Loss::Silence]) => {}
            () = self.until_shut() => {}
        }
    }

    async fn until_shut(&self) {
        let _ = self.shut.subscribe().wait_for(|shut| *shut).await;
    }

    async fn copy(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, losses: &[Loss]) {
        let mut piece = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            match self.take(losses) {
                Some(Loss::Silence) => return std::future::pending().await,
                Some(Loss::Request | Loss::Answer) => return,
                None if to.write_all(&piece[..length]).await.is_err() => return,
                None => {}
            }
        }
    }
}
