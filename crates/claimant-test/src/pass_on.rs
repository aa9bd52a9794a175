//! How a store passes calls on to the one that it wraps.

/// Writes the named methods of a [`Store`](claimant_core::Store) or [`Records`](claimant_core::Records), inside its `impl`, so that they
/// pass their call on to another store:
/// `pass_on!(self => self.inner; renew, get);`. Not part of the kit's public interface.
#[doc(hidden)]
#[macro_export]
macro_rules! pass_on {
    ($self:ident => $inner:expr; claim) => {
        fn claim<'a>(
            &'a $self,
            request: &'a ::claimant_core::protocol::ClaimRequest,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, Result<::claimant_core::ClaimAnswer, ::claimant_core::StoreError>> {
            $inner.claim(request, call)
        }
    };
    ($self:ident => $inner:expr; renew) => {
        fn renew<'a>(
            &'a $self,
            claim: &'a mut ::claimant_core::Claim,
            renewal: ::claimant_core::protocol::Renewal,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, Result<::claimant_core::Renewed, ::claimant_core::StoreError>> {
            $inner.renew(claim, renewal, call)
        }
    };
    ($self:ident => $inner:expr; settle) => {
        fn settle<'a>(
            &'a $self,
            claim: ::claimant_core::Claim,
            settlement: &'a ::claimant_core::protocol::Settlement,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, ::claimant_core::Settled> {
            $inner.settle(claim, settlement, call)
        }
    };
    ($self:ident => $inner:expr; get) => {
        fn get<'a>(
            &'a $self,
            id: &'a ::claimant_core::RecordId,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<
            'a,
            Result<Option<::claimant_core::Record>, ::claimant_core::StoreError>,
        > {
            $inner.get(id, call)
        }
    };
    ($self:ident => $inner:expr; claim_all) => {
        fn claim_all<'a>(
            &'a $self,
            requests: &'a [::claimant_core::protocol::ClaimRequest],
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<
            'a,
            Vec<Result<::claimant_core::BatchedClaim, ::claimant_core::StoreError>>,
        > {
            $inner.claim_all(requests, call)
        }
    };
    ($self:ident => $inner:expr; settle_all) => {
        fn settle_all<'a>(
            &'a $self,
            settlements: Vec<(::claimant_core::Claim, ::claimant_core::protocol::Settlement)>,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, Vec<::claimant_core::Settled>> {
            $inner.settle_all(settlements, call)
        }
    };
    ($self:ident => $inner:expr; replace) => {
        fn replace<'a>(
            &'a $self,
            id: &'a ::claimant_core::RecordId,
            seen: &'a ::claimant_core::Record,
            next: &'a ::claimant_core::Record,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, Result<::claimant_core::Replaced, ::claimant_core::StoreError>> {
            $inner.replace(id, seen, next, call)
        }
    };
    ($self:ident => $inner:expr; list) => {
        fn list<'a>(
            &'a $self,
            filter: &'a ::claimant_core::Filter,
            from: &'a ::claimant_core::Cursor,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, Result<::claimant_core::Page, ::claimant_core::StoreError>> {
            $inner.list(filter, from, call)
        }
    };
    ($self:ident => $inner:expr; size) => {
        fn size<'a>(
            &'a $self,
            call: ::claimant_core::Call<'a>,
        ) -> ::claimant_core::BoxFuture<'a, Result<::claimant_core::Size, ::claimant_core::StoreError>> {
            $inner.size(call)
        }
    };
    ($self:ident => $inner:expr; claims_max) => {
        fn claims_max(&$self) -> Option<usize> {
            $inner.claims_max()
        }
    };
    ($self:ident => $inner:expr; claims_outlive_owners) => {
        fn claims_outlive_owners(&$self) -> bool {
            $inner.claims_outlive_owners()
        }
    };
    ($self:ident => $inner:expr; records_outlive_process) => {
        fn records_outlive_process(&$self) -> bool {
            $inner.records_outlive_process()
        }
    };
    ($self:ident => $inner:expr; $($method:ident),+) => {
        $($crate::pass_on!($self => $inner; $method);)+
    };
}
