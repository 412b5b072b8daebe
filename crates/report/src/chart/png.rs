//! The chart as an image: the SVG rendered with the embedded font.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::font;
use crate::error::ReportError;

/// Renders an SVG at `scale` times its size.
///
/// # Errors
/// When the text is not SVG, or the image would have no size.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, ReportError> {
    let options = Options {
        fontdb: font::database(),
        font_family: font::FAMILY.to_owned(),
        ..Options::default()
    };
    let failed = |error: &dyn std::fmt::Display| ReportError::Chart(error.to_string());
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree
        .size()
        .to_int_size()
        .scale_by(scale)
        .ok_or_else(|| failed(&format!("a scale of {scale}")))?;
    let mut pixmap = Pixmap::new(size.width(), size.height())
        .ok_or_else(|| failed(&format!("{} × {} pixels", size.width(), size.height())))?;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixmap.as_mut(),
    );
    pixmap.encode_png().map_err(|error| failed(&error))
}
