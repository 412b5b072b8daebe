//! As much of a terminal as the live view uses. Anything else that is written to it is a fault.

/// A terminal of any width and height: lines never wrap and never scroll away.
#[derive(Debug)]
pub(crate) struct Emulated {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Whether text is painted now.
    painted: bool,
    /// Whether any text was ever painted.
    was_painted: bool,
}

impl Default for Emulated {
    fn default() -> Self {
        Self {
            rows: vec![Vec::new()],
            row: 0,
            column: 0,
            painted: false,
            was_painted: false,
        }
    }
}

impl Emulated {
    /// Takes what a program writes. `\n` starts a new line, as with a terminal's driver.
    pub(crate) fn feed(&mut self, written: &str) {
        let mut characters = written.chars();
        while let Some(character) = characters.next() {
            match character {
                '\r' => self.column = 0,
                '\n' => self.new_line(),
                '\u{1b}' => {
                    assert_eq!(characters.next(), Some('['), "after ESC in {written:?}");
                    let mut parameter = String::new();
                    let code = loop {
                        match characters.next().expect("a code ends") {
                            part @ ('0'..='9' | ';') => parameter.push(part),
                            code => break code,
                        }
                    };
                    self.control(code, &parameter);
                }
                control if control.is_control() => panic!("{control:?} in {written:?}"),
                character => self.write(character),
            }
        }
    }

    /// The lines on the terminal, without the empty ones at its end.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
        let mut lines: Vec<String> = self.rows.iter().map(text).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// Whether nothing is painted any more, and the cursor is at the beginning of a line with nothing in or below it.
    pub(crate) fn is_whole(&self) -> bool {
        !self.painted && self.column == 0 && self.row >= self.lines().len()
    }

    /// Whether any text was ever painted.
    pub(crate) fn was_painted(&self) -> bool {
        self.was_painted
    }

    fn new_line(&mut self) {
        self.row += 1;
        self.column = 0;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn write(&mut self, character: char) {
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = character;
        self.column += 1;
    }

    fn control(&mut self, code: char, parameter: &str) {
        match (code, parameter) {
            ('A', up) => {
                let up: usize = up.parse().expect("a number of lines");
                assert!(up <= self.row, "above the beginning");
                self.row -= up;
            }
            ('K', "") => self.rows[self.row].truncate(self.column),
            ('J', "") => {
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
            }
            ('m', paint) => {
                self.painted = !matches!(paint, "" | "0");
                self.was_painted |= self.painted;
            }
            other => panic!("unknown code {other:?}"),
        }
    }
}
