//! A small reader of JSON: objects, lists, numbers, strings without escapes beyond \" and \\, true, false, null.

use std::collections::BTreeMap;

pub enum Json {
    Null,
    Bool,
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

type Read<T> = Result<T, String>;

impl Json {
    pub fn field(&self, name: &str) -> Read<&Json> {
        match self {
            Json::Object(fields) => fields.get(name).ok_or(format!("no field is called {name}")),
            _ => Err(format!("wanted an object with {name}")),
        }
    }

    pub fn object(&self) -> Read<&BTreeMap<String, Json>> {
        if let Json::Object(fields) = self { Ok(fields) } else { Err("wanted an object".into()) }
    }

    pub fn list(&self) -> Read<&[Json]> {
        if let Json::List(items) = self { Ok(items) } else { Err("wanted a list".into()) }
    }

    pub fn number(&self) -> Read<f64> {
        if let Json::Number(value) = self { Ok(*value) } else { Err("wanted a number".into()) }
    }

    pub fn text(&self) -> Read<&str> {
        if let Json::Text(text) = self { Ok(text) } else { Err("wanted a string".into()) }
    }

    pub fn numbers(&self) -> Read<Vec<f64>> {
        self.list()?.iter().map(Json::number).collect()
    }

    pub fn integers(&self) -> Read<Vec<i64>> {
        Ok(self.numbers()?.into_iter().map(|x| x as i64).collect())
    }

    pub fn rows(&self) -> Read<Vec<Vec<f64>>> {
        self.list()?.iter().map(Json::numbers).collect()
    }
}

pub fn parse(text: &str) -> Read<Json> {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    let value = reader.value()?;
    if reader.peek().is_some() { Err(reader.wanted("the end of the text")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wanted(&self, what: &str) -> String {
        format!("JSON: wanted {what} at byte {}", self.at)
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, c: u8) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, c: u8) -> Read<()> {
        if self.take(c) { Ok(()) } else { Err(self.wanted(&(c as char).to_string())) }
    }

    fn word(&mut self, word: &str, value: Json) -> Read<Json> {
        if !self.text[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wanted(word));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self) -> Read<Json> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b't') => self.word("true", Json::Bool),
            Some(b'f') => self.word("false", Json::Bool),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Read<Json> {
        let length = self.text[self.at..].iter().take_while(|c| b"+-.eE0123456789".contains(c)).count();
        let digits = std::str::from_utf8(&self.text[self.at..self.at + length]).unwrap_or("");
        let number = digits.parse().map_err(|_| self.wanted("a value"))?;
        self.at += length;
        Ok(Json::Number(number))
    }

    fn list(&mut self) -> Read<Json> {
        let mut items = Vec::new();
        self.want(b'[')?;
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            if !self.take(b',') {
                break;
            }
        }
        self.want(b']')?;
        Ok(Json::List(items))
    }

    fn object(&mut self) -> Read<Json> {
        let mut fields = BTreeMap::new();
        self.want(b'{')?;
        if self.take(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            let name = self.string()?;
            self.want(b':')?;
            fields.insert(name, self.value()?);
            if !self.take(b',') {
                break;
            }
        }
        self.want(b'}')?;
        Ok(Json::Object(fields))
    }

    fn string(&mut self) -> Read<String> {
        self.want(b'"')?;
        let mut bytes = Vec::new();
        while let Some(&c) = self.text.get(self.at).filter(|&&c| c != b'"') {
            self.at += usize::from(c == b'\\');
            bytes.extend(self.text.get(self.at));
            self.at += 1;
        }
        self.want(b'"')?;
        String::from_utf8(bytes).map_err(|_| self.wanted("UTF-8"))
    }
}
