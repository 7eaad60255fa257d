//! Commands of clients, and the answers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One command about one key.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub key: String,
    pub action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Get,
    Set(String),
    Delete,
}

/// A line, without its end. `None` if it makes no sense.
pub fn parse(line: &str) -> Option<Command> {
    let mut words = line.trim_end().splitn(3, ' ');
    let (name, key) = (words.next()?, words.next()?);
    let action = match (name, words.next()) {
        ("GET", None) => Action::Get,
        ("DEL", None) => Action::Delete,
        ("SET", Some(text)) => Action::Set(text.to_owned()),
        _ => return None,
    };
    let is_word = !key.is_empty();
    is_word.then(|| Command {
        key: key.to_owned(),
        action,
    })
}

impl Command {
    /// To which of so many executors the key belongs: the same everywhere.
    pub fn owner(&self, shards: usize) -> usize {
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        (hasher.finish() % shards as u64) as usize
    }

    /// Executes it, and returns the answer.
    pub fn apply(self, map: &mut HashMap<String, String>) -> String {
        match self.action {
            Action::Get => map
                .get(&self.key)
                .cloned()
                .unwrap_or_else(|| NOTHING.to_owned()),
            Action::Set(text) => {
                map.insert(self.key, text);
                "OK".to_owned()
            }
            Action::Delete => match map.remove(&self.key) {
                Some(_) => "OK".to_owned(),
                None => NOTHING.to_owned(),
            },
        }
    }
}

const NOTHING: &str = "NONE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_make_no_sense() {
        let parsed = |line| parse(line).map(|it| (it.key, it.action));
        assert_eq!(parsed("GET a\r"), Some(("a".to_owned(), Action::Get)));
        assert_eq!(parsed("DEL a"), Some(("a".to_owned(), Action::Delete)));
        let text = Action::Set("b  c ".trim_end().to_owned());
        assert_eq!(parsed("SET a b  c "), Some(("a".to_owned(), text)));
        for nonsense in ["", "GET", "GET ", "GET a b", "SET a", "get a", "SET  b"] {
            assert_eq!(parsed(nonsense), None, "{nonsense}");
        }
    }
}
