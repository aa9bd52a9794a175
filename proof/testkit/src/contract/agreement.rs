//! Two stores, or two ways of asking one, give the same answers to the same random calls.

use std::time::{Duration, Instant};

use claimant_core::protocol::Ending;
use claimant_core::{Meter, Store};
use futures_util::future::{try_join, try_join_all};

use super::reference::{NAMES, Random, SEED_VARIABLE, STRIDE_MAX_MS, seed};
use super::scene::{answer, answers, call, fresh_id};
use super::watched::in_time;
use crate::fuzz::seconds;
use crate::player::{Player, ended};
use crate::script::{ClaimStep, Step};

/// How many keys a sequence is played on.
const KEYS: usize = 6;

/// How many rounds a sequence has; each is a call for many keys, or one for one.
const ROUNDS: usize = 30;

/// How long a round may take: it has some calls, one after the other.
const ROUND_MAX: Duration = Duration::from_mins(1);

/// Of so many rounds, the last one looks at every key: that a call changed another key than its own shows then.
const LOOK_EVERY: usize = 10;

/// How many sequences are played at least.
const SEQUENCES: u64 = 12;

/// One store, and how it is asked.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// Whether it gets the keys of a round in one call, or each in a call of its own.
    pub together: bool,
}

/// What is done next.
#[derive(Debug)]
enum Round {
    /// Claims of different keys.
    Claims(Vec<(usize, ClaimStep)>),
    /// Settlements of different keys' claims.
    Settlements(Vec<(usize, &'static str, Ending)>),
    /// Any call, for one key.
    One(usize, Step),
    /// A look at every key.
    Looks,
}

impl Round {
    /// Tells whether it has a call for this key.
    fn touches(&self, key: usize) -> bool {
        match self {
            Self::Claims(claims) => claims.iter().any(|(claimed, _)| *claimed == key),
            Self::Settlements(settlements) => settlements.iter().any(|(settled, ..)| *settled == key),
            Self::One(one, _) => *one == key,
            Self::Looks => true,
        }
    }
}

/// Plays random sequences of calls on several keys on both sides, for as long as `CLAIMANT_FUZZ_SECONDS` says or a few. The
/// two sides must not share their records. Gives how many answers and records were compared.
///
/// # Panics
/// Where an answer, or a record after a call, is not the same on both sides; with all that was done until then.
pub async fn agree(left: Side<'_>, right: Side<'_>) -> usize {
    let (begun, seed) = (Instant::now(), seed());
    println!("random calls with {SEED_VARIABLE}={seed}");
    let (mut compared, mut sequence) = (0, 0);
    while sequence < SEQUENCES || begun.elapsed() < seconds() {
        let mut random = Random::with_seed(seed.wrapping_add(sequence));
        match play(left, right, &mut random).await {
            Ok(count) => compared += count,
            Err(why) => panic!("sequence {sequence} of those with {SEED_VARIABLE}={seed}: {why}"),
        }
        sequence += 1;
    }
    println!("fuzz: {sequence} sequences, {compared} answers and records compared");
    compared
}

async fn play(left: Side<'_>, right: Side<'_>, random: &mut Random) -> Result<usize, String> {
    let ids: [_; KEYS] = std::array::from_fn(|_| fresh_id("agreement"));
    let mut ours = ids.clone().map(|id| Player::new(left.store, id, false));
    let mut theirs = ids.map(|id| Player::new(right.store, id, false));
    let (mut now, mut compared, mut history) = (STRIDE_MAX_MS, 0, Vec::new());
    for number in 1..=ROUNDS {
        now = random.later(now);
        let round = if number % LOOK_EVERY == 0 { Round::Looks } else { next(random, &ours, now) };
        history.push(format!("at {now}: {round:?}"));
        let (seen, wanted) =
            in_time(ROUND_MAX, try_join(show(left, &mut ours, &round, now), show(right, &mut theirs, &round, now)))
                .await
                .and_then(|answers| answers)
                .map_err(|why| format!("{why}, after\n  {}", history.join("\n  ")))?;
        if seen != wanted {
            return Err(format!("{seen:?}, but {wanted:?}, after\n  {}", history.join("\n  ")));
        }
        compared += seen.len();
    }
    Ok(compared)
}

fn next(random: &mut Random, players: &[Player<'_>], now: u64) -> Round {
    let some: Vec<usize> = (0..KEYS).filter(|_| random.below(3) > 0).collect();
    match random.below(4) {
        0 => {
            let key = random.below(KEYS);
            Round::One(key, random.step(now, |who| players[key].has(who)))
        }
        1 => {
            let all = some.into_iter().map(|key| (key, random.pick(&NAMES), random.ending()));
            Round::Settlements(all.filter(|(key, who, _)| players[*key].has(who)).collect())
        }
        _ => {
            let claim = |key| {
                let who = random.pick(&NAMES);
                (key, random.claim(who, now))
            };
            Round::Claims(some.into_iter().map(claim).collect())
        }
    }
}

/// Plays a round, and gives its answers and then the record of each key that it touches.
async fn show(side: Side<'_>, players: &mut [Player<'_>], round: &Round, now: u64) -> Result<Vec<String>, String> {
    let mut seen = match round {
        Round::Claims(claims) => claim(side, players, claims).await?,
        Round::Settlements(settlements) => settle(side, players, settlements, now).await?,
        Round::One(key, step) => vec![players[*key].step(step).await?],
        Round::Looks => Vec::new(),
    };
    let touched = players.iter_mut().enumerate().filter(|(key, _)| round.touches(*key));
    seen.extend(try_join_all(touched.map(|(_, player)| player.step(&Step::Look))).await?);
    Ok(seen)
}

async fn claim(
    side: Side<'_>,
    players: &mut [Player<'_>],
    claims: &[(usize, ClaimStep)],
) -> Result<Vec<String>, String> {
    let requests: Vec<_> = claims.iter().map(|(key, step)| players[*key].request(step)).collect();
    let given = if side.together {
        answers(side.store, &requests).await?
    } else {
        let mut given = Vec::with_capacity(requests.len());
        for request in &requests {
            given.push(answer(side.store, request).await?);
        }
        given
    };
    claims.iter().zip(given).map(|((key, step), given)| players[*key].answered(step, given)).collect()
}

async fn settle(
    side: Side<'_>,
    players: &[Player<'_>],
    settlements: &[(usize, &'static str, Ending)],
    now: u64,
) -> Result<Vec<String>, String> {
    let all = settlements.iter().map(|(key, who, ending)| players[*key].settlement(who, ending, now));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let meter = Meter::default();
    if side.together {
        return side.store.settle_all(all, call(&meter)).await.into_iter().map(ended).collect();
    }
    let mut seen = Vec::with_capacity(all.len());
    for (claim, settlement) in all {
        seen.push(ended(side.store.settle(claim, &settlement, call(&meter)).await)?);
    }
    Ok(seen)
}
