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

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let consumer = Consumer::batch("index", MemoryStore::new(), SearchIndex::default());
    let engine = Engine::with_defaults(consumer.key(|article| &article.id).items_max(100))?;
    let tea = r#"{"id": "a-1", "title": "Tea"}"#;
    let batch = [
        ("m-1", tea),
        ("m-2", r#"{"id": "a-2", "title": ""}"#),
        ("m-3", r#"{"id": "a-3", "title": "Cups"}"#),
        ("m-4", tea),
    ];
    crate::support::deliver(&engine, &batch).await
}
