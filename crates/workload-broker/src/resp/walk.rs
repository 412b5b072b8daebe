//! Where a token stands in its reply, and where the reply ends.

use super::token::{Flaw, Token};

/// How deep arrays may stand in arrays. A reply to `XREADGROUP` has five levels.
const LEVELS_MAX: usize = 8;

/// A token of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// How many arrays it stands in. A map counts as an array of pairs, which are arrays too: so that a reply in
    /// version 3, with maps, looks like that in version 2.
    pub depth: u8,
    /// The token.
    pub token: Token<'a>,
    /// The reply ends with it.
    pub ends: bool,
}

/// The arrays around the next token.
#[derive(Debug, Clone, Default)]
pub struct Walk {
    levels: Vec<Level>,
    /// What stands around the next token is no part of a reply.
    is_aside: bool,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    left: u32,
    depth: u8,
    is_hidden: bool,
}

impl Walk {
    /// At the beginning of a reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next token. `None` if it is part of no reply: a push, an attribute, or a part of a token.
    ///
    /// # Errors
    /// The reply is deeper than we follow, or has a push inside.
    pub fn take<'a>(&mut self, token: Token<'a>) -> Result<Option<Seen<'a>>, Flaw> {
        // The children, and how much deeper they stand.
        let (children, deeper) = match token {
            Token::Part => return Ok(None),
            Token::Push(_) if !self.levels.is_empty() => return Err(Flaw::PushInside),
            Token::Array(count) | Token::Push(count) => (count, 1),
            Token::Map(pairs) => (2 * pairs, 2),
            Token::Attribute(pairs) => (2 * pairs, 1),
            _ => (0, 0),
        };
        let counts = !matches!(token, Token::Push(_) | Token::Attribute(_));
        let (depth, is_hidden) = self
            .levels
            .last()
            .map_or((0, false), |level| (level.depth, level.is_hidden));
        if counts && let Some(level) = self.levels.last_mut() {
            level.left -= 1;
        }
        if children > 0 {
            if self.levels.len() == LEVELS_MAX {
                return Err(Flaw::TooDeep);
            }
            self.is_aside |= self.levels.is_empty() && !counts;
            self.levels.push(Level {
                left: children,
                depth: depth + deeper,
                is_hidden: is_hidden || !counts,
            });
        }
        let is_over = self.leave();
        let ends = is_over && counts && !self.is_aside;
        self.is_aside &= !is_over;
        Ok((counts && !is_hidden).then_some(Seen { depth, token, ends }))
    }

    /// Leaves the arrays that have no more elements. True if none is left.
    fn leave(&mut self) -> bool {
        while self.levels.last().is_some_and(|level| level.left == 0) {
            self.levels.pop();
        }
        self.levels.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::token::TokenReader;

    /// Depth and token of what is part of a reply; `|` where one ends.
    fn walked(bytes: &[u8]) -> Result<String, Flaw> {
        let (mut reader, mut walk) = (TokenReader::new(), Walk::new());
        let (mut rest, mut text) = (bytes, String::new());
        while let Some((used, token)) = reader.next(rest)? {
            if let Some(seen) = walk.take(token)? {
                let name = match seen.token {
                    Token::Number(number) => number.to_string(),
                    Token::Bulk(bytes) | Token::Simple(bytes) => {
                        String::from_utf8(bytes.to_vec()).unwrap()
                    }
                    Token::Array(_) => "a".to_owned(),
                    Token::Map(_) => "m".to_owned(),
                    other => format!("{other:?}"),
                };
                text += &format!("{}{name}{}", seen.depth, if seen.ends { "|" } else { " " });
            }
            rest = &rest[used..];
        }
        Ok(text)
    }

    #[test]
    fn depths_and_ends_are_those_of_the_arrays() {
        assert_eq!(
            walked(b"*2\r\n*3\r\n:1\r\n$5\r\nhello\r\n:2\r\n:9\r\n:7\r\n").unwrap(),
            "0a 1a 21 2hello 22 19|07|"
        );
        assert_eq!(walked(b"*0\r\n*1\r\n*0\r\n").unwrap(), "0a|0a 1a|");
        assert_eq!(
            walked(b"*-1\r\n$-1\r\n_\r\n").unwrap(),
            "0Null|0Null|0Null|"
        );
    }

    #[test]
    fn a_map_is_an_array_of_pairs() {
        let two = walked(b"*1\r\n*2\r\n+key\r\n*1\r\n:1\r\n").unwrap();
        let three = walked(b"%1\r\n+key\r\n*1\r\n:1\r\n").unwrap();
        assert_eq!(two, "0a 1a 2key 2a 31|");
        assert_eq!(three, "0m 2key 2a 31|");
    }

    #[test]
    fn attributes_and_pushes_are_no_part_of_a_reply() {
        // The example of `protocol/RESP3.md`, and an attribute inside an array.
        let attribute = b"|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n*2\r\n:2039123\r\n:9543892\r\n";
        assert_eq!(walked(attribute).unwrap(), "0a 12039123 19543892|");
        assert_eq!(
            walked(b"*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n").unwrap(),
            "0a 11 12 13|"
        );
        assert_eq!(
            walked(b">2\r\n+invalidate\r\n*1\r\n:1\r\n:5\r\n>0\r\n:6\r\n").unwrap(),
            "05|06|"
        );
        assert_eq!(walked(b"|0\r\n:5\r\n").unwrap(), "05|");
    }

    #[test]
    fn there_are_limits() {
        assert_eq!(walked(&b"*1\r\n".repeat(9)), Err(Flaw::TooDeep));
        assert!(walked(&b"*1\r\n".repeat(8)).is_ok());
        assert_eq!(walked(b"*1\r\n>1\r\n:1\r\n"), Err(Flaw::PushInside));
    }
}
