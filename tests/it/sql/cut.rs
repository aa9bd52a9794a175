//! A wire to a server that is cut once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// More than any answer here: a piece is what one side sends at once.
const PIECE_MAX_BYTES: usize = 65_536;

/// A proxy in front of a database that cuts a connection at one piece of traffic, once; later ones stay whole.
pub(crate) struct Cut {
    /// The database's URL, over this wire.
    pub(crate) url: String,
    script: Arc<Script>,
    serving: JoinHandle<()>,
}

struct Script {
    pieces: AtomicUsize,
    at: usize,
    arrives: bool,
}

impl Cut {
    /// Cuts at the `at`th piece, in either direction, which still arrives or does not.
    pub(crate) async fn start(url: &str, at: usize, arrives: bool) -> Self {
        let (before, database) = url.rsplit_once('/').unwrap();
        let (login, server) = before.rsplit_once('@').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{login}@{}/{database}", listener.local_addr().unwrap());
        let script = Arc::new(Script { pieces: AtomicUsize::new(0), at, arrives });
        let (server, shared) = (server.to_owned(), Arc::clone(&script));
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { return };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let ((client_in, client_out), (server_in, server_out)) = (client.into_split(), server.into_split());
                let over = Arc::new(Notify::new());
                tokio::spawn(pass(client_in, server_out, Arc::clone(&shared), Arc::clone(&over)));
                tokio::spawn(pass(server_in, client_out, Arc::clone(&shared), over));
            }
        });
        Self { url, script, serving }
    }

    /// Whether there was so much traffic.
    pub(crate) fn happened(&self) -> bool {
        self.script.pieces.load(Ordering::SeqCst) >= self.script.at
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes pieces on until one side ends or the other direction was cut; both halves close with this.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, script: Arc<Script>, over: Arc<Notify>) {
    let mut piece = vec![0; PIECE_MAX_BYTES];
    loop {
        let read = tokio::select! {
            read = from.read(&mut piece) => read,
            () = over.notified() => return,
        };
        let Ok(length @ 1..) = read else { break };
        let cut = script.pieces.fetch_add(1, Ordering::SeqCst) + 1 == script.at;
        if (!cut || script.arrives) && to.write_all(&piece[..length]).await.is_err() {
            break;
        }
        if cut {
            break;
        }
    }
    over.notify_one();
}
