//! Answers the queries that programs send to their terminal, and keeps the text that scrolled off
//! the screen.

use crate::engine::signals::TAIL_BYTES;
use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};
use vt100::{Callbacks, Screen};

/// The emulator's callbacks for everything that its screen does not keep.
#[derive(Default)]
pub(crate) struct Responder {
    /// Bytes to send to the program as answers to its queries.
    pub(crate) answers: Vec<u8>,
    /// The end of the text that scrolled off the screen.
    pub(crate) past: String,
    /// Total number of bytes that have scrolled off the screen.
    pub(crate) scrolled: usize,
    /// The state of joining wrapped rows: whether the last row continues in the next one.
    pub(crate) seam: BasicFormattedCaptureState,
}

impl Responder {
    fn answer(&mut self, text: &str) {
        self.answers.extend_from_slice(text.as_bytes());
    }

    /// Appends `text` to the history, and drops text that is too old to be read for signals.
    pub(crate) fn remember(&mut self, text: &str) {
        self.scrolled += text.len();
        self.past.push_str(text);
        if self.past.len() > 2 * TAIL_BYTES {
            let cut = self.past.len() - TAIL_BYTES;
            let cut = (cut..cut + 4)
                .find(|at| self.past.is_char_boundary(*at))
                .unwrap_or(cut);
            self.past.drain(..cut);
        }
    }
}

impl Callbacks for Responder {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        c: char,
    ) {
        let param = params
            .first()
            .and_then(|param| param.first())
            .copied()
            .unwrap_or(0);
        let (row, column) = screen.cursor_position();
        let (rows, columns) = screen.size();
        match (first, second, param, c) {
            (None, None, 0, 'c') => self.answer("\x1b[?62;22c"),
            (Some(b'>'), None, 0, 'c') => self.answer("\x1b[>0;10;0c"),
            (None, None, 5, 'n') => self.answer("\x1b[0n"),
            (None, None, 6, 'n') => self.answer(&format!("\x1b[{};{}R", row + 1, column + 1)),
            (Some(b'?'), None, 6, 'n') => {
                self.answer(&format!("\x1b[?{};{}R", row + 1, column + 1));
            }
            (Some(b'?'), Some(b'$'), mode, 'p') => {
                self.answer(&format!("\x1b[?{mode};{}$y", mode_value(screen, mode)));
            }
            (Some(b'>'), None, 0, 'q') => self.answer("\x1bP>|ralph\x1b\\"),
            (None, None, 14, 't') => {
                self.answer(&format!(
                    "\x1b[4;{};{}t",
                    16 * u32::from(rows.get()),
                    8 * u32::from(columns.get())
                ));
            }
            (None, None, 18, 't') => self.answer(&format!("\x1b[8;{rows};{columns}t")),
            // Terminals do not answer queries that they do not support, such as those for keyboard
            // protocols.
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u8>().ok();
        match params {
            [b"10", b"?"] => self.answer("\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
            [b"11", b"?"] => self.answer("\x1b]11;rgb:0000/0000/0000\x1b\\"),
            [b"4", index, b"?"] => {
                if let Some(index) = number(index) {
                    let [red, green, blue] = palette_color(index);
                    self.answer(&format!(
                        "\x1b]4;{index};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}\x1b\\"
                    ));
                }
            }
            _ => {}
        }
    }

    fn on_scroll(&mut self, row: RowContents<'_>, _: bool) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = row.write_formatted_basic(&mut text, &mut self.seam);
        let plain: String = basic_formatted_to_plain(&text).collect();
        self.remember(&plain);
    }
}

/// Returns the DECRPM value of a mode: 1 if set, 2 if reset, 0 if unknown.
fn mode_value(screen: &Screen, mode: u16) -> u8 {
    let on = match mode {
        1 => screen.application_cursor(),
        25 => !screen.hide_cursor(),
        1049 => screen.alternate_screen(),
        2004 => screen.bracketed_paste(),
        _ => return 0,
    };
    if on { 1 } else { 2 }
}

/// Returns the RGB value that most terminals use for a palette color.
fn palette_color(index: u8) -> [u8; 3] {
    match index {
        7 => [0xc0; 3],
        8 => [0x80; 3],
        0..16 => {
            let bright = if index < 8 { 0x80 } else { 0xff };
            [0, 1, 2].map(|bit| if index >> bit & 1 == 1 { bright } else { 0 })
        }
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let at = index - 16;
            [level(at / 36), level(at / 6 % 6), level(at % 6)]
        }
        232.. => [8 + 10 * (index - 232); 3],
    }
}
