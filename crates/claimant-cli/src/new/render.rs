//! Files from templates: words for `{{word}}`, and lines that are there only under a condition.

use std::collections::BTreeMap;

/// What a template is filled in with.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: BTreeMap<&'static str, String>,
    conditions: BTreeMap<&'static str, bool>,
}

impl Words {
    /// Sets what stands for `{{word}}`.
    pub(super) fn word(&mut self, word: &'static str, text: impl Into<String>) {
        self.words.insert(word, text.into());
    }

    /// Sets whether the lines between `{{#condition}}` and `{{/condition}}` are there; those after `{{^condition}}` are
    /// where they are not.
    pub(super) fn condition(&mut self, condition: &'static str, holds: bool) {
        self.conditions.insert(condition, holds);
    }

    /// Fills in a template of this crate, in which every word and condition is one of those that were set.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut text = String::with_capacity(template.len());
        // Whether each of the conditions around this line lets it through.
        let mut around = Vec::new();
        for line in template.lines() {
            match line.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
                Some(mark) if mark.starts_with(['#', '^']) => {
                    let holds = self.conditions.get(&mark[1..]).copied().unwrap_or_default();
                    around.push(holds == mark.starts_with('#'));
                }
                Some(mark) if mark.starts_with('/') => drop(around.pop()),
                _ if around.iter().all(|through| *through) => {
                    text.push_str(&self.words_in(line));
                    text.push('\n');
                }
                _ => {}
            }
        }
        text
    }

    fn words_in(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (word, text) in &self.words {
            line = line.replace(&format!("{{{{{word}}}}}"), text);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_conditions() {
        let mut words = Words::default();
        words.word("a", "1");
        words.condition("yes", true);
        words.condition("no", false);
        let template = "x{{a}}{{a}} {\n{{#yes}}\nyes\n{{^no}}\nnot no\n{{/no}}\n{{#no}}\nno\n{{/no}}\n{{/yes}}\n{{^yes}}\nno\n{{#no}}\nno\n{{/no}}\n{{/yes}}\n}\n";
        assert_eq!(words.fill(template), "x11 {\nyes\nnot no\n}\n");
    }
}
