//! A relay in front of a server: it passes traffic on, and delays, loses and cuts it as a rule says.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// How long a server may take to close the connections of a client that is gone.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Which way a piece of traffic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Answer,
}

/// What becomes of one piece of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Pass,
    /// It arrives this much later.
    Late(Duration),
    /// It is lost, and its connection is closed.
    Cut,
    /// It arrives, and its connection is closed.
    CutAfter,
    /// Half of it arrives, and its connection is closed.
    Half,
    /// It is lost, as everything that follows it in its direction; the connection stays open.
    Silence,
    /// It is lost, and its receiver's connection is closed; what sent it is told no more than that nothing else comes, and nothing more is read of it.
    Deserted,
}

/// What a relay does to traffic.
pub trait Rule: Send + Sync + 'static {
    /// How many bytes are one piece at most: more than any request or answer, so that each is one piece.
    const PIECE_MAX_BYTES: usize = 65_536;

    /// Decides what becomes of the next piece in this direction, of any connection.
    fn fate(&self, direction: Direction) -> impl Future<Output = Fate> + Send;
}

/// A relay that listens but has no server yet.
#[derive(Debug)]
pub struct Unconnected {
    /// What clients connect to.
    pub address: SocketAddr,
    listener: TcpListener,
}

/// A relay. Dropping it closes its connections.
#[derive(Debug)]
pub struct Relay {
    /// What clients connect to.
    pub address: SocketAddr,
    state: watch::Sender<State>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Shut,
    Finishing,
}

impl Unconnected {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is none.
    pub async fn listen() -> io::Result<Self> {
        let listener = bound(SocketAddr::from(([127, 0, 0, 1], 0)))?.listen(BACKLOG)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Connects the relay to the server at this address (`127.0.0.1:port`).
    pub fn connect(self, server: impl Into<String>, rule: Arc<impl Rule>) -> Relay {
        let state = watch::Sender::new(State::Open);
        let serving = tokio::spawn(serve(self.listener, server.into(), rule, state.subscribe()));
        Relay { address: self.address, state, serving }
    }
}

impl Relay {
    /// Starts a relay in front of the server at this address (`127.0.0.1:port`).
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(server: impl Into<String>, rule: Arc<impl Rule>) -> io::Result<Self> {
        Ok(Unconnected::listen().await?.connect(server, rule))
    }

    /// Cuts every connection and refuses new ones, or takes them again.
    pub fn shut(&self, shut: bool) {
        self.state.send_replace(if shut { State::Shut } else { State::Open });
    }

    /// Takes no more connections, and returns when those that are open have come to their end: what is on its way arrives.
    pub async fn finish(mut self) {
        self.state.send_replace(State::Finishing);
        // OK because connections that do not end are cut.
        let _ = timeout(CLOSE_MAX, &mut self.serving).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut listener: TcpListener, server: String, rule: Arc<impl Rule>, mut state: watch::Receiver<State>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            changed = changed(&mut state) => match changed {
                State::Open => continue,
                State::Finishing => break,
                State::Shut => {
                    connections.shutdown().await;
                    let Some(reopened) = reopened(listener, &mut state).await else { return };
                    listener = reopened;
                    continue;
                }
            },
        };
        let Ok((client, _)) = accepted else { continue };
        connections.spawn(pass(client, server.clone(), Arc::clone(&rule)));
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits for the next state; a relay that is gone finishes.
async fn changed(state: &mut watch::Receiver<State>) -> State {
    match state.changed().await {
        Ok(()) => *state.borrow_and_update(),
        Err(_) => State::Finishing,
    }
}

/// Closes the listener until the relay is open again. The port stays taken all the time: on a busy machine another would get it, and
/// whoever waits for this relay would never reach it again.
async fn reopened(listener: TcpListener, state: &mut watch::Receiver<State>) -> Option<TcpListener> {
    // OK because a relay that is lost without a word fails its test in a way that nobody understands.
    let kept = listener.local_addr().and_then(bound).expect("the port is the relay's own");
    drop(listener);
    state.wait_for(|state| *state == State::Open).await.ok()?;
    Some(kept.listen(BACKLOG).expect("nothing else listens there"))
}

/// Returns a socket with this address, beside those of this relay that have it. What is bound does not listen yet.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Passes pieces on in both directions until either ends; both ends are closed then. A client whose server takes no connection is
/// closed.
async fn pass<R: Rule>(client: TcpStream, server: String, rule: Arc<R>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // OK because a delay of small pieces is no fault.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let over = watch::Sender::new(false);
    tokio::join!(
        copy(from_client, to_server, Direction::Request, &*rule, &over),
        copy(from_server, to_client, Direction::Answer, &*rule, &over),
    );
}

async fn copy<R: Rule>(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    rule: &R,
    over: &watch::Sender<bool>,
) {
    let mut piece = vec![0; R::PIECE_MAX_BYTES];
    let mut ended = over.subscribe();
    loop {
        // Only reading is given up: a piece whose fate is decided meets it, whatever becomes of the other direction.
        let read = tokio::select! {
            read = from.read(&mut piece) => read,
            _ = ended.wait_for(|over| *over) => break,
        };
        let Ok(length @ 1..) = read else { break };
        let fate = rule.fate(direction).await;
        match fate {
            Fate::Pass | Fate::CutAfter | Fate::Half => {}
            Fate::Late(by) => sleep(by).await,
            Fate::Cut => break,
            Fate::Silence => {
                let _ = ended.wait_for(|over| *over).await;
                break;
            }
            Fate::Deserted => {
                over.send_replace(true);
                drop(to);
                return pending().await;
            }
        }
        let arrives = if fate == Fate::Half { length / 2 } else { length };
        if to.write_all(&piece[..arrives]).await.is_err() || matches!(fate, Fate::CutAfter | Fate::Half) {
            break;
        }
    }
    over.send_replace(true);
}
