//! Who renews a lease, and when: before a handler starts whose claim came late, and while it runs. A renewal also hides
//! the message for as long as the lease lasts; the last one hides it until the batch is reported.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::context::BatchContext;
use super::work::{Claimed, Delivery};
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::invocation_time::time_until;
use crate::limits::STORE_RETRY_MAX_MS;
use crate::options::Lease;
use crate::protocol::Renewal;
use crate::queue::HideAnswer;
use crate::store::{Call, Renewed};

/// How often a renewed lease is renewed while it lasts.
const RENEWALS_PER_LEASE: u32 = 3;

/// A renewal may take this part of the lease.
const RENEWAL_TRIES: u32 = 6;

/// Returns the lease for which a claim is renewed before it is decided whether its handler starts, if there is little left of it.
pub(crate) fn lease_to_renew_first(cx: BatchContext<'_>, claimed: &Claimed) -> Option<Duration> {
    let decides_late = cx.shared.limit.is_some() || cx.shared.breaker.is_some();
    match cx.options().lease {
        Lease::Renewed(lease) if decides_late && is_little(cx, &claimed.claim, lease) => Some(lease),
        _ => None,
    }
}

/// Renews that lease. A store that did not do it is asked again before the turn, and not at the start: by then the call that begins in this
/// turn would be late. It is not asked without a pause, as long as that before another try of any call.
pub(crate) async fn renew_first(cx: BatchContext<'_>, mut claimed: Claimed, lease: Duration) -> (Claimed, Renewed) {
    let next_at = Instant::now() + (lease / RENEWAL_TRIES).min(Duration::from_millis(STORE_RETRY_MAX_MS));
    let renewed = renew(&cx, &claimed.work.delivery, &mut claimed.claim, lease, None).await;
    if renewed == Renewed::Held && is_little(cx, &claimed.claim, lease) {
        sleep_until(next_at.min(cx.slot_by())).await;
    }
    (claimed, renewed)
}

/// Renews the lease of a grant that came late, and has little left of it or nothing; hides its message until the batch is reported:
/// where its handler is quick, or does not start, nothing renews it again.
pub(crate) async fn renew_late(
    cx: &BatchContext<'_>,
    delivery: &Delivery,
    claim: &mut Claim,
    lease: Duration,
) -> Renewed {
    if is_little(*cx, claim, lease) { renew(cx, delivery, claim, lease, None).await } else { Renewed::Held }
}

/// Renews a lease as long as it can be, while its handler runs; returns when it is lost.
pub(crate) async fn until_lost(cx: &BatchContext<'_>, delivery: &Delivery, claim: &mut Claim, lease: Duration) {
    loop {
        sleep(lease / RENEWALS_PER_LEASE).await;
        let by = claim.lease_until;
        if renew(cx, delivery, claim, lease, Some(by)).await == Renewed::Lost {
            return;
        }
    }
}

/// Renews the leases of a call's items as long as they can be; returns when one is `lost`.
pub(crate) async fn until_any_lost(cx: &BatchContext<'_>, members: &mut [Claimed<()>], lost: &mut [bool]) {
    let Lease::Renewed(lease) = cx.options().lease else { return std::future::pending().await };
    while !lost.contains(&true) {
        sleep(lease / RENEWALS_PER_LEASE).await;
        // All of them end with the first lease that does: they run together.
        let by = members.iter().map(|member| member.claim.lease_until).min();
        let renewals = members.iter_mut().zip(lost.iter_mut()).map(|(member, lost)| async move {
            let Claimed { work, claim, .. } = member;
            *lost = renew(cx, &work.delivery, claim, lease, by).await == Renewed::Lost;
        });
        join_all(renewals).await;
    }
}

/// Hides the message until its batch is reported, if its lease was renewed while its handler ran, which began then: until here it
/// was hidden a little longer than that.
pub(crate) async fn stay_hidden(cx: &BatchContext<'_>, delivery: &Delivery, began: Instant, lease: Duration) {
    if began.elapsed() >= lease / RENEWALS_PER_LEASE {
        let rest = time_until(cx.time.lease_end);
        let _ = timeout(cx.grace(), cx.queue().hide(delivery.index, rest)).await;
    }
}

/// Returns whether a claim has little left of its lease, or nothing.
fn is_little(cx: BatchContext<'_>, claim: &Claim, lease: Duration) -> bool {
    claim.lease_until < cx.now().plus(lease / RENEWALS_PER_LEASE * 2)
}

/// Renews the lease, and hides the message until another owner could take over; before its handler runs, until the batch is reported.
/// Held only where both are.
///
/// A store that gives no answer is asked again at the next turn, as long as the lease lasts. While the handler runs, an answer is waited
/// for until `by`, if that is to come: one that goes on after the end of its lease would run beside that of another owner.
async fn renew(
    cx: &BatchContext<'_>,
    delivery: &Delivery,
    claim: &mut Claim,
    lease: Duration,
    by: Option<Timestamp>,
) -> Renewed {
    let now = cx.now();
    let renewal = Renewal { lease_until: now.plus(lease), now, policy: cx.policy() };
    // So that a request without an answer leaves time for another one before the lease ends, and never longer than handlers have.
    let within = || (lease / RENEWAL_TRIES).min(time_until(cx.time.cancel_at));
    let rest = by.map(|by| by.since(now)).filter(|rest| !rest.is_zero());
    let most = rest.map_or_else(within, |rest| within().min(rest));
    let renewing = cx.store().renew(claim, renewal, Call { within: most, meter: cx.meter });
    match timeout(most, renewing).await {
        Ok(Ok(Renewed::Lost)) => return Renewed::Lost,
        Ok(Ok(Renewed::Held)) => {}
        Ok(Err(_)) | Err(_) => {
            let lasts = cx.now().plus(lease / RENEWALS_PER_LEASE) < claim.lease_until;
            return if lasts { Renewed::Held } else { Renewed::Lost };
        }
    }
    // Back any earlier, it would be a receive for nothing.
    let lasts = lease + cx.policy().skew;
    let hidden = if by.is_some() { lasts } else { lasts.max(time_until(cx.time.lease_end)) };
    match timeout(within(), cx.queue().hide(delivery.index, hidden)).await {
        Ok(HideAnswer::Lost) => Renewed::Lost,
        Ok(HideAnswer::Hidden) | Err(_) => Renewed::Held,
    }
}
