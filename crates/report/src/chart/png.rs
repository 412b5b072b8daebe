//! The chart as an image: the SVG rendered with the embedded font.

use png::{BitDepth, ColorType, Encoder, EncodingError, Filter};
use resvg::tiny_skia::{Color, Pixmap, Transform};
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
    pixmap.fill(Color::WHITE);
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixmap.as_mut(),
    );
    opaque(&pixmap).map_err(|error| failed(&error))
}

/// The image without its opacity. Filters help photographs: without one, flat colours take a fifth less, and half of the
/// time.
fn opaque(pixmap: &Pixmap) -> Result<Vec<u8>, EncodingError> {
    let (pixels, _) = pixmap.data().as_chunks();
    let mut colours = vec![0; pixels.len() * 3];
    for (colour, [red, green, blue, _]) in colours.as_chunks_mut().0.iter_mut().zip(pixels) {
        *colour = [*red, *green, *blue];
    }
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, pixmap.width(), pixmap.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_filter(Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(file)
}
