//! The demonstration on the project's own template: what it says is what the mailbox, the gateway and the journal have.

use claimant_local::cloud::CloudConfig;
use claimant_local::journal::What;
use claimant_local::sqs::NewMessage;
use claimant_operate::demo;
use claimant_operate::target::{Account, Target};
use claimant_servers::repository;

use crate::cloud::{built, start, wait_for};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries: make test"]
async fn the_demonstration_shows_what_it_says() {
    let binaries = built(&["order-confirmation", "payment"]);
    let mut config = CloudConfig::new(repository().unwrap().join("template.yaml"), binaries);
    config.only = vec!["order-confirmation".to_owned(), "payment".to_owned()];
    let (cloud, _) = start(config).await;
    let mut place = Target::Local(cloud.endpoints().control.clone()).open(&Account::default()).await.unwrap();
    let runs: Vec<_> = place.functions.iter().filter(|function| function.runs).map(|function| &function.name).collect();
    assert_eq!(runs, ["OrderConfirmationFunction", "PaymentFunction"]);
    // Letters of earlier days: more than are read at once.
    for _ in 0..2_001 {
        cloud.sqs().send("OrderDeadLetterQueue", NewMessage::new("old")).unwrap();
    }
    let mut chapters = Vec::new();
    demo::run(&place, &mut |chapter| chapters.push(chapter)).await.unwrap();

    let [duplicate, takeover, redrive] = chapters.as_slice() else { panic!("{chapters:?}") };
    assert_eq!((cloud.mailbox().mails().len(), cloud.gateway().charges().len()), (2, 1));
    let journal = &cloud.view().journal;
    let has = |id: &str, what: &dyn Fn(&What) -> bool| journal.of_message(id).iter().any(|event| what(&event.what));
    // Lines arrive a moment after what they tell of.
    let ends = [
        (&duplicate.messages[1], "duplicate"),
        (&takeover.messages[0], "completed"),
        (&redrive.messages[0], "rejected"),
        (&redrive.messages[2], "completed"),
    ];
    for (shown, word) in ends {
        wait_for(word, || has(&shown.id, &|what| matches!(what, What::Done(done) if *done.outcome == *word))).await;
    }
    let [copy, killed] = takeover.messages.as_slice() else { panic!("{takeover:?}") };
    assert!(has(&copy.id, &|what| matches!(what, What::Claimed(claimed) if claimed.taken_over)), "{takeover:?}");
    assert!(has(&killed.id, &|what| matches!(what, What::InvocationEnded { .. })), "{takeover:?}");
    assert!(journal.after(0, usize::MAX).iter().any(|event| matches!(event.what, What::ProcessKilled)));
    cloud.stop().await;
    // Where one of them does not run, it is not offered, and says why.
    place.functions.iter_mut().for_each(|function| function.runs = function.name != "PaymentFunction");
    let refused = demo::check(&place).unwrap_err().to_string();
    assert!(refused.contains("PaymentFunction, which does not run here"), "{refused}");
}
