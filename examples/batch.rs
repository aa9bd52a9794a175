//! A handler for many messages at once: one bulk write, and a result for each.
//!
//! ```text
//! a call with 3 articles
//! m-1 completed, m-2 rejected, m-3 completed, m-4 duplicate
//! ```

use std::collections::BTreeMap;
use std::sync::Mutex;

use claimant::batch::{BatchHandler, Items};
use claimant::engine::Engine;
use claimant::memory::MemoryStore;
use claimant::{Consumer, HandlerError};

#[derive(serde::Deserialize)]
struct Article {
    id: String,
    title: String,
}

/// What takes many documents in one request, and says of each whether it took it.
#[derive(Default)]
struct SearchIndex(Mutex<BTreeMap<String, String>>);

impl SearchIndex {
    fn bulk<'a>(&self, articles: impl Iterator<Item = &'a Article>) -> Result<Vec<Option<&'static str>>, &'static str> {
        let mut index = self.0.lock().map_err(|_| "the index is broken")?;
        let take = |article: &Article| {
            if article.title.is_empty() {
                return Some("an article needs a title");
            }
            index.insert(article.id.clone(), article.title.clone());
            None
        };
        Ok(articles.map(take).collect())
    }
}

impl BatchHandler<Article> for SearchIndex {
    type Output = Vec<Result<(), HandlerError>>;

    async fn handle(&self, articles: Items<Article>) -> Result<Self::Output, HandlerError> {
        println!("a call with {} articles", articles.len());
        // An error here fails all of them: each is tried again, in a call of its own.
        let answers = self.bulk(articles.payloads())?;
        // One here fails one.
        Ok(answers.into_iter().map(|error| error.map_or(Ok(()), |why| Err(HandlerError::terminal(why)))).collect())
    }
}

fn consumer() -> Consumer<Article> {
    let consumer = Consumer::batch("index", MemoryStore::new(), SearchIndex::default());
    consumer.key(|article| &article.id).items_max(100)
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer())?;
    let tea = r#"{"id": "a-1", "title": "Tea"}"#;
    let batch = [
        ("m-1", tea),
        ("m-2", r#"{"id": "a-2", "title": ""}"#),
        ("m-3", r#"{"id": "a-3", "title": "Cups"}"#),
        ("m-4", tea),
    ];
    crate::support::deliver(&engine, &batch).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};
    use serde_json::json;

    use super::*;

    fn article(id: &str, title: &str) -> TestMessage {
        TestMessage::json(&json!({ "id": id, "title": title }))
    }

    #[tokio::test(start_paused = true)]
    async fn each_article_is_indexed_whatever_happens_to_the_call() {
        for scenario in Scenario::all() {
            let articles = [article("a-1", "Tea"), article("a-2", "Cups"), article("a-3", "Pots")];
            TestQueue::new(consumer()).play(&scenario, &articles).await.assert_done();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_without_a_title_is_rejected_alone() {
        let queue = TestQueue::new(consumer());
        queue.send(&[article("a-1", "Tea"), article("a-2", "")]);
        let played = queue.drain().await;
        assert_eq!(played.outcomes(), ["m-1: completed", "m-2: rejected"]);
        assert_eq!(played.dead_letters(), ["m-2: an article needs a title"]);
    }
}
