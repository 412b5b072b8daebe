//! The font of the charts, and the width of a text in it. A fresh machine has no fonts, and overlapping labels cannot
//! be read.

use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb::Database;

/// The font families that an SVG asks for: ours first, then fonts of the same widths, then any.
pub(super) const FAMILIES: &str = "DejaVu Sans, Verdana, Geneva, sans-serif";
/// The font family of the PNGs.
pub(super) const FAMILY: &str = "DejaVu Sans";

/// DejaVu Sans, regular and bold, and no other font, so the PNG is the same on every machine. Read once, because a
/// result has several charts.
pub(super) fn database() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    });
    Arc::clone(fonts)
}

/// Width of a text in px: the font's advance widths, without kerning.
pub(super) fn width_px(text: &str, size_px: f64, bold: bool) -> f64 {
    let widths = if bold { &BOLD } else { &REGULAR };
    let advance = |c: char| {
        let index = u32::from(c).checked_sub(u32::from(' '));
        let known = index.and_then(|index| widths.get(usize::try_from(index).ok()?));
        f64::from(known.copied().unwrap_or(OTHER))
    };
    text.chars().map(advance).sum::<f64>() * size_px / 1000.0
}

/// Cuts a text to a width. A `…` in its middle replaces what is cut, because names differ least there.
pub(super) fn fit(text: &str, size_px: f64, bold: bool, max_px: f64) -> String {
    if width_px(text, size_px, bold) <= max_px {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    (0..chars.len())
        .rev()
        .map(|kept| {
            let head: String = chars[..kept.div_ceil(2)].iter().collect();
            let tail: String = chars[chars.len() - kept / 2..].iter().collect();
            format!("{head}…{tail}")
        })
        .find(|cut| width_px(cut, size_px, bold) <= max_px)
        .unwrap_or_default()
}

/// Width of a character beyond ASCII: most are no wider than this.
const OTHER: u16 = 1000;

/// Advance widths of DejaVu Sans for U+0020 to U+007E in thousandths of the font size.
const REGULAR: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// The same for DejaVu Sans Bold.
const BOLD: [u16; 95] = [
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696,
    696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683,
    683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771,
    724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665,
    343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
];

#[cfg(test)]
mod tests {
    use resvg::usvg::{Node, Options, Tree};

    use super::*;

    /// The width that the renderer gives a text in the same font.
    fn rendered_px(text: &str, weight: &str) -> f64 {
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='900' height='50'><text y='30' font-family='{FAMILY}' font-size='20' font-weight='{weight}'>{text}</text></svg>"
        );
        let options = Options {
            fontdb: database(),
            ..Options::default()
        };
        let tree = Tree::from_str(&svg, &options).unwrap();
        let Some(Node::Text(text)) = tree.root().children().first() else {
            panic!("the text was not drawn: {svg}");
        };
        f64::from(text.bounding_box().width())
    }

    #[test]
    fn widths_are_those_of_the_font() {
        for text in [
            "rust-axum carries 1,650 sessions on 1 vCPU",
            "oldest_p95_ms",
            "Wi ijl MMW 0123456789",
        ] {
            for (weight, bold) in [("normal", false), ("bold", true)] {
                let (ours, theirs) = (width_px(text, 20.0, bold), rendered_px(text, weight));
                assert!(
                    (ours - theirs).abs() < 0.03 * theirs,
                    "{text} {weight}: {ours} {theirs}"
                );
            }
        }
    }

    #[test]
    fn a_long_text_is_cut_in_its_middle() {
        let cut = fit(
            "ws://a-very-long-host.example:3000/ws/stt",
            12.0,
            false,
            150.0,
        );
        assert!(cut.starts_with("ws://") && cut.ends_with("/stt") && cut.contains('…'));
        assert!(width_px(&cut, 12.0, false) <= 150.0);
        assert_eq!(fit("short", 12.0, false, 150.0), "short");
        assert_eq!(fit("long", 12.0, false, 1.0), "");
    }
}
